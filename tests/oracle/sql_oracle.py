"""Comparison of what the SQL engine predicted with what a statement did on four databases."""

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS
from qwed.engines.sql_dialect import KNOWN_DIALECTS
from tests.oracle.commands import shorter
from tests.oracle.predictions import Prediction, SqlLimits, predict_sql
from tests.oracle.recording import Record
from tests.oracle.sql_execution import DatabaseOutcome, databases, execute

_SCHEMA = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, email TEXT, salary INTEGER, password TEXT); "
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, total INTEGER, status TEXT); "
    "CREATE TABLE secrets (id INTEGER PRIMARY KEY, api_key TEXT); CREATE VIEW recent AS SELECT id, total FROM orders"
)
LIMITS = (
    SqlLimits(),
    SqlLimits(tables=("users", "orders")),
    SqlLimits(sensitive=("salary", "password", "api_key")),
    SqlLimits(schema=_SCHEMA),
    SqlLimits(columns=("id", "name", "email", "user_id", "total", "status")),
)
"""Permissions that take turns."""
UNKNOWN = ""
STATED = "unknown, stated by the action"
"""Key of the prediction for an unknown database, if the action names a dialect of its choice."""
_LOCKS = re.compile(r"\bfor\s+(?:no\s+key\s+|key\s+)?(?:update|share)\b", re.IGNORECASE)
"""Row locks, which PostgreSQL notes in a transaction; nothing is changed."""
_NO_READ = re.compile(r"'(?:[^']|'')*'|--\s[^\n]*|(?:\bas\s+|\)\s*)[\"`']?(?:password|api_key)\b")


class SqlInput(NamedTuple):
    """Statement with the permissions it is judged under."""

    statement: str
    limits: SqlLimits


class SqlRun(NamedTuple):
    """Outcome of one statement."""

    text: str
    limits: SqlLimits
    predicted: dict[str, Prediction]
    """By dialect, and under an empty name without a dialect."""
    outcomes: dict[str, DatabaseOutcome]

    @property
    def is_predicted_harmless(self) -> bool:
        """Return True if low or medium risk was predicted for any of the databases."""
        return any(row.is_harmless for row in self.predicted.values())

    @property
    def is_idle(self) -> bool:
        """Return True if the statement ran somewhere and changed and showed nothing anywhere."""
        ran = any(not row.error for row in self.outcomes.values())
        return ran and not [effect for row in self.outcomes.values() for effect in self._effects(row)]

    @property
    def is_failure(self) -> bool:
        """Return True if it did more than was predicted."""
        return bool(self.observed)

    @property
    def observed(self) -> tuple[str, ...]:
        """Effects on each database for which nothing worse than a read was predicted."""
        errors = tuple(row.error for row in self.predicted.values() if row.error)
        return errors + tuple(
            f"{name}: {effect}{believed}"
            for name, outcome in self.outcomes.items()
            if (believed := self._believed_for(name)) is not None
            for effect in self._effects(outcome)
        )

    def _believed_for(self, name: str) -> str | None:
        """Return under which name of a dialect nothing worse than a read was predicted; None if under none."""
        notes = {name: "", UNKNOWN: " (no dialect named)", STATED: f" ({stated_dialect(self.text)} stated)"}
        return next((note for key, note in notes.items() if self.predicted[key].is_harmless), None)

    def _effects(self, outcome: DatabaseOutcome) -> Iterator[str]:
        for change in outcome.changes:
            if outcome.changes != ("transaction",) or not _LOCKS.search(self.text):
                yield f"changed {change}"
        for canary in outcome.canaries:
            if self._is_forbidden(canary):
                yield f"showed {canary}"

    def _is_forbidden(self, canary: str) -> bool:
        column = {"CANARY-PASSWORD": "password", "CANARY-API-KEY": "api_key", "918273645": "salary"}.get(canary)
        limits = self.limits
        if column is None or (column == "api_key" and limits.tables is not None):
            return True
        if limits.columns is not None:
            return column not in limits.columns
        if limits.sensitive is DEFAULT_SENSITIVE_COLUMNS and limits.schema is None:
            # Without a schema the usual list forbids only the names; a `*` beside a text or an alias is permitted.
            return column in limits.sensitive and column in _NO_READ.sub("", self.text.lower())
        return column in limits.sensitive

    @property
    def group(self) -> tuple[str, ...]:
        """First word and kinds of effect."""
        words = self.text.split()
        return (words[0].lower() if words else "", *sorted({item.split("/")[0] for item in self.observed}))

    def row(self) -> dict[str, object]:
        """Return input, prediction and observation for a report."""
        limits = self.limits._asdict() | {"schema": bool(self.limits.schema)}
        predicted = {name or "no dialect": row.risk.word for name, row in self.predicted.items()}
        return {"input": self.text, "limits": limits, "predicted": predicted, "observed": list(self.observed)}

    def record(self) -> Record:
        """Return the input and everything that was observed, to be judged again later."""
        return {"input": self.text, "limits": LIMITS.index(self.limits), "outcomes": msgspec.to_builtins(self.outcomes)}


@lru_cache(5000)
def predict(statement: str, limits: SqlLimits) -> dict[str, Prediction]:
    """Return the prediction for each database that runs here, and without a dialect."""
    named = {name: predict_sql(statement, name, limits) for name in (UNKNOWN, *databases())}
    return named | {STATED: predict_sql(statement, "", limits, stated_dialect(statement))}


def stated_dialect(statement: str) -> str:
    """Return a dialect for the action to name, always the same one for a statement."""
    return KNOWN_DIALECTS[zlib.crc32(statement.encode("utf-8", "replace")) % len(KNOWN_DIALECTS)]


def run(inputs: Sequence[SqlInput]) -> list[SqlRun]:
    """Predict and run each statement."""
    predictions = [predict(row.statement, row.limits) for row in inputs]
    outcomes = execute([row.statement for row in inputs])
    rows = zip(inputs, predictions, outcomes, strict=True)
    return [SqlRun(row.statement, row.limits, predicted, outcome) for row, predicted, outcome in rows]


def rejudge(records: Sequence[Record]) -> list[SqlRun]:
    """Judge recorded statements again."""
    return [_rejudge(record) for record in records]


def _rejudge(record: Record) -> SqlRun:
    limits = LIMITS[record["limits"]]
    outcomes = msgspec.convert(record["outcomes"], dict[str, DatabaseOutcome])
    return SqlRun(record["input"], limits, predict(record["input"], limits), outcomes)


def shrink(failure: SqlRun, rounds: int = 6) -> SqlRun:
    """Return the shortest statement that fails in the same way, by leaving out one part at a time."""
    best, kinds = failure, _kinds(failure)
    for _ in range(rounds):
        texts = [
            text for text in shorter(best.text) if any(row.is_harmless for row in predict(text, best.limits).values())
        ]
        failing = [row for row in run([SqlInput(text, best.limits) for text in texts[:60]]) if _kinds(row) & kinds]
        if not failing:
            return best
        best = min(failing, key=lambda row: len(row.text))
    return best


def _kinds(row: SqlRun) -> frozenset[str]:
    return frozenset(item.split("/")[0] for item in row.observed)
