"""`SQLGuard`: checks in-process if one query may be sent to a database; reads only, unless mutation is allowed.

A query that cannot be parsed in its dialect, or that calls an unknown function, is not verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.errors import SqlglotError

from qwed.engines._sql.effects import UNRESOLVED_STATEMENT
from qwed.engines._sql.parse import ParsedSql, parse_any_dialect, parse_sql
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.sql import verify
from qwed.engines.sql_dialect import dialect_named
from qwed.model import Record, Risk, Status, Verdict, risk_of

MAX_CHARACTERS = 50_000
_DEFAULT = "postgres"
_PRINTING_ERRORS = (
    SqlglotError,
    RecursionError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    NotImplementedError,
)


@dataclass(frozen=True)
class SQLSafety(Record):
    """Result of the guard: `normalized_query` is the parsed statement printed again, None if it was not parsed."""

    verified: bool
    message: str
    risk: str
    normalized_query: str | None = None
    violations: tuple[str, ...] = ()


class SQLGuard:
    """Refuses injection patterns, dangerous functions, sensitive columns and, unless `allow_mutation`, every change."""

    def __init__(self, allow_mutation: bool = False) -> None:
        self.allow_mutation = allow_mutation

    def verify_query(self, sql: str, dialect: str = _DEFAULT, allowed_tables: Sequence[str] | None = None) -> SQLSafety:
        """Check that the query may be sent; never raises, whatever the arguments."""
        problem = _argument_problem(sql, allowed_tables)
        if problem:
            return SQLSafety(verified=False, message=problem, risk=Risk.CRITICAL.word)
        tables = None if allowed_tables is None else list(allowed_tables)
        verdict, used = self._verify_with_fallback(sql, dialect, tables)
        return SQLSafety(
            verified=verdict.verified,
            message="the query is safe to send" if verdict.verified else verdict.message,
            risk=_risk(verdict).word,
            normalized_query=_normalize(sql, used),
            violations=verdict.violations,
        )

    def _verify_with_fallback(self, sql: str, dialect: str, tables: list[str] | None) -> tuple[Verdict, str]:
        """Return the verdict and the dialect it was reached in.

        A dialect that the caller names is that of the database. The default is only a guess: a text that it cannot
        parse is tried in any dialect, and what other databases would read counts.
        """
        verdict = self._run_engine(sql, dialect, tables)
        if dialect != _DEFAULT or set(verdict.violations) - {UNRESOLVED_STATEMENT}:
            return verdict, dialect
        if "syntax_valid" in verdict.checks_failed:
            return self._run_engine(sql, "", tables), ""
        return verdict, dialect

    def _run_engine(self, sql: str, dialect: str, tables: list[str] | None) -> Verdict:
        parameters: dict[str, object] = {} if tables is None else {"allowed_tables": tables}
        if dialect == _DEFAULT:
            parameters["dialect"] = dialect
        policy = DataPolicy(dialect=None if dialect == _DEFAULT else dialect)
        return verify(EngineRequest(query=sql, parameters=parameters, policy=policy, strict=not self.allow_mutation))


def _argument_problem(sql: object, allowed_tables: object) -> str:
    if not isinstance(sql, str):
        return "the query must be a text"
    if len(sql) > MAX_CHARACTERS:
        return f"the query is longer than {MAX_CHARACTERS} characters: split it"
    is_list = isinstance(allowed_tables, list | tuple | set | frozenset)
    if allowed_tables is not None and not (is_list and all(isinstance(name, str) for name in _items(allowed_tables))):
        return "`allowed_tables` must be a list of table names"
    return ""


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def _risk(verdict: Verdict) -> Risk:
    if verdict.violations or verdict.status is Status.BLOCKED:
        return Risk.CRITICAL
    return risk_of(verdict.effects)


def _normalize(sql: str, dialect: str) -> str | None:
    """Return the statement printed again, without comments."""
    try:
        parsed = parse_sql(sql, _dialect_name(dialect)) if dialect else parse_any_dialect(sql)
        if not isinstance(parsed, ParsedSql) or len(parsed.statements) != 1:
            return None
        return f"{parsed.prefix} ".lstrip() + parsed.statements[0].sql(dialect=parsed.dialect, comments=False)
    except _PRINTING_ERRORS:
        return None


def _dialect_name(dialect: object) -> str:
    name = dialect_named(dialect)
    return "" if name is None else name
