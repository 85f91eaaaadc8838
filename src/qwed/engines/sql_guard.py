"""`SQLGuard`: whether one query may be sent to a database, judged in-process and for reads only unless told otherwise.

A query nobody can read in its dialect, or whose functions nobody knows, is not verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.errors import SqlglotError

from qwed.engines._sql.effects import UNRESOLVED_STATEMENT
from qwed.engines._sql.parse import Reading, dialect_named, read, read_as_any
from qwed.engines.protocol import EngineRequest
from qwed.engines.sql import verify
from qwed.words import Record, Risk, Status, Verdict, risk_of

MAX_CHARACTERS = 50_000
_DEFAULT = "postgres"
_UNPRINTABLE = (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError, NotImplementedError)


@dataclass(frozen=True)
class SQLSafety(Record):
    """What the guard says: `normalized_query` is the one statement as it was understood, None where it was not."""

    verified: bool
    message: str
    risk: str
    normalized_query: str | None = None
    violations: tuple[str, ...] = ()


class SQLGuard:
    """Refuses injection shapes, dangerous functions, sensitive columns and, unless `allow_mutation`, every change."""

    def __init__(self, allow_mutation: bool = False) -> None:
        self.allow_mutation = allow_mutation

    def verify_query(self, sql: str, dialect: str = _DEFAULT, allowed_tables: Sequence[str] | None = None) -> SQLSafety:
        """Whether the query may be sent; never raises, whatever is given."""
        problem = _unfit(sql, allowed_tables)
        if problem:
            return SQLSafety(verified=False, message=problem, risk=Risk.CRITICAL.word)
        tables = None if allowed_tables is None else list(allowed_tables)
        verdict, used = self._judged(sql, dialect, tables)
        return SQLSafety(
            verified=verdict.verified,
            message="the query is safe to send" if verdict.verified else verdict.message,
            risk=_risk(verdict).word,
            normalized_query=_normalized(sql, used),
            violations=verdict.violations,
        )

    def _judged(self, sql: str, dialect: str, tables: list[str] | None) -> tuple[Verdict, str]:
        """The verdict and the dialect it was reached in.

        The default is only a guess at the database: a text it cannot read is tried as any dialect, and one that MySQL
        would read otherwise, by its backslashes, must be harmless there too.
        """
        verdict = self._ask(sql, dialect, tables)
        if dialect != _DEFAULT or set(verdict.violations) - {UNRESOLVED_STATEMENT}:
            return verdict, dialect
        if "syntax_valid" in verdict.checks_failed:
            return self._ask(sql, "", tables), ""
        if "\\" in sql:
            other = self._ask(sql, "mysql", tables)
            return (other, "mysql") if other.violations else (verdict, dialect)
        return verdict, dialect

    def _ask(self, sql: str, dialect: str, tables: list[str] | None) -> Verdict:
        parameters = {"dialect": dialect} if tables is None else {"dialect": dialect, "allowed_tables": tables}
        return verify(EngineRequest(query=sql, parameters=parameters, strict=not self.allow_mutation))


def _unfit(sql: object, allowed_tables: object) -> str:
    if not isinstance(sql, str):
        return "the query must be a text"
    if len(sql) > MAX_CHARACTERS:
        return f"the query is longer than {MAX_CHARACTERS} characters: split it"
    listed = isinstance(allowed_tables, list | tuple | set | frozenset)
    if allowed_tables is not None and not (listed and all(isinstance(name, str) for name in _items(allowed_tables))):
        return "`allowed_tables` must be a list of table names"
    return ""


def _items(listed: object) -> list[object]:
    return list(listed) if isinstance(listed, list | tuple | set | frozenset) else []


def _risk(verdict: Verdict) -> Risk:
    if verdict.violations or verdict.status is Status.BLOCKED:
        return Risk.CRITICAL
    return risk_of(verdict.effects)


def _normalized(sql: str, dialect: str) -> str | None:
    """The statement printed anew, without comments."""
    try:
        reading = read(sql, _known(dialect)) if dialect else read_as_any(sql)
        if not isinstance(reading, Reading) or len(reading.statements) != 1:
            return None
        return f"{reading.prefix} ".lstrip() + reading.statements[0].sql(dialect=reading.dialect, comments=False)
    except _UNPRINTABLE:
        return None


def _known(dialect: object) -> str:
    name = dialect_named(dialect)
    return "" if name is None else name
