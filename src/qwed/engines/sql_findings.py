"""Effects of SQL text that is embedded in another action: a command line, a program, a tool's parameters."""

from dataclasses import dataclass, replace

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from qwed.engines._sql.lexer import other_readings
from qwed.engines._sql.transactions import read_block
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.sql import verify
from qwed.engines.sql_dialect import dialect_named
from qwed.model import Effect, EffectKind, Status, Verdict

MAX_STATEMENTS = 100
_UNRESOLVED = Effect(EffectKind.UNRESOLVED, "query")


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlFindings:
    """Effects of all statements of a text, together."""

    effects: tuple[Effect, ...]
    violations: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Messages on the statements that are not verified."""

    @property
    def verified(self) -> bool:
        """True if every statement is understood and permitted; its effects decide the risk."""
        return not self.problems


def classify_sql(text: str, dialect: str | None = None, permissions: DataPolicy | None = None) -> SqlFindings:
    """Return the effects of every statement in a text; never raises.

    Args:
        text: One or more statements, as a client program would send them.
        dialect: Dialect of the database that executes them, from the program or its configuration; None if it is not
            known. A dialect that the agent states is not one: leave it out.
        permissions: Data permissions of the agent; without them only the effects are judged.
    """
    policy = permissions or DataPolicy()
    target = policy.dialect or (dialect if dialect and dialect_named(dialect) is not None else None)
    policy = replace(policy, dialect=target)
    statements = _split(text, dialect_named(target or "") or "")
    problem = _split_problem(text, statements, target)
    if problem:
        return SqlFindings(effects=(_UNRESOLVED,), problems=(problem,))
    verdicts = [verify(EngineRequest(query=statement, policy=policy)) for statement in statements]
    return SqlFindings(
        effects=tuple(dict.fromkeys(effect for verdict in verdicts for effect in _effects(verdict))),
        violations=tuple(dict.fromkeys(violation for verdict in verdicts for violation in verdict.violations)),
        problems=tuple(dict.fromkeys(verdict.message for verdict in verdicts if not verdict.verified)),
    )


def _split_problem(text: str, statements: list[str], target: str | None) -> str:
    if not statements or len(statements) > MAX_STATEMENTS:
        return f"the text has {'no statement' if not statements else f'more than {MAX_STATEMENTS} statements'}"
    if len(statements) > 1 and not target and any(True for _ in other_readings(text, "")):
        return "databases end the statements of this text in different places"
    return ""


def _effects(verdict: Verdict) -> tuple[Effect, ...]:
    """Return the effects of a statement; what a limit refuses keeps them, what is not understood is unresolved."""
    understood = verdict.status in {Status.VERIFIED, Status.FAILED} and "syntax_valid" not in verdict.checks_failed
    return verdict.effects if understood else tuple(dict.fromkeys((*verdict.effects, _UNRESOLVED)))


def _split(text: str, dialect: str) -> list[str]:
    """Return the statements of a text, without those around a transaction block; the whole text if it has no tokens in
    this dialect."""
    block = read_block(text, dialect)
    if block is not None and not block.problem:
        return [statement.text for statement in block.statements]
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return [text]
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    bounds = [(part[0].start, part[-1].end + 1) for part in parts if part]
    return [text[start:end] for start, end in bounds] if len(bounds) > 1 else [text] * len(bounds)
