"""Predictions of the classifiers in the form the oracle compares."""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec

from qwed.engines import shell, sql
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, DataPolicy, EngineRequest
from qwed.guards.code_guard import CodeGuard
from qwed.model import EffectKind, Risk, risk_of

P = ParamSpec("P")


class Prediction(NamedTuple):
    """Verdict of a classifier on an input."""

    risk: Risk
    kinds: frozenset[EffectKind] = frozenset()
    programs: frozenset[str] = frozenset()
    reason: str = ""
    error: str = ""
    """Exception that the classifier raised, which promises to raise none."""

    @property
    def is_harmless(self) -> bool:
        """Return True if nothing worse than a read or a connection was predicted."""
        return self.risk <= Risk.MEDIUM


def _guarded(predict: Callable[P, Prediction]) -> Callable[P, Prediction]:
    """Let an exception of a classifier be a failure of the input, not of the campaign."""

    @wraps(predict)
    def call(*arguments: P.args, **named: P.kwargs) -> Prediction:
        try:
            return predict(*arguments, **named)
        except Exception as error:  # noqa: BLE001 - a classifier that raises is what the oracle looks for
            return Prediction(Risk.LOW, error=f"raised {type(error).__name__}: {error}"[:120])

    return call


@_guarded
def predict_shell(command: str) -> Prediction:
    """Return what the shell engine predicts, with the judges of embedded statements and programs."""
    findings = shell.findings(command)
    kinds = frozenset(effect.kind for effect in findings.effects)
    risk = Risk.CRITICAL if findings.violations else risk_of(findings.effects)
    reason = "; ".join((*findings.violations, *findings.unresolved))
    return Prediction(risk, kinds, frozenset(findings.programs), reason)


@_guarded
def predict_python(code: str) -> Prediction:
    """Return what CodeGuard predicts: low for a verified program, critical otherwise."""
    safety = CodeGuard().verify_safety(code)
    return Prediction(Risk.LOW if safety.verified else Risk.CRITICAL, reason=safety.message)


class SqlLimits(NamedTuple):
    """Permissions under which statements are judged."""

    tables: tuple[str, ...] | None = None
    sensitive: tuple[str, ...] = DEFAULT_SENSITIVE_COLUMNS
    columns: tuple[str, ...] | None = None
    schema: str | None = None


@_guarded
def predict_sql(statement: str, dialect: str, limits: SqlLimits, stated: str = "") -> Prediction:
    """Return what the SQL engine predicts for a database of this dialect, or of an unknown one.

    `stated` is the dialect that the action names.
    """
    policy = DataPolicy(
        allowed_tables=limits.tables,
        sensitive_columns=limits.sensitive,
        allowed_columns=limits.columns,
        schema_ddl=limits.schema,
        dialect=dialect or None,
    )
    parameters = {"dialect": stated or dialect} if stated or dialect else {}
    verdict = sql.verify(EngineRequest(query=statement, parameters=parameters, policy=policy))
    kinds = frozenset(effect.kind for effect in verdict.effects)
    risk = risk_of(verdict.effects) if verdict.verified else Risk.CRITICAL
    return Prediction(risk, kinds, reason=verdict.message)
