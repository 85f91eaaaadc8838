"""How PostgreSQL reads the statements that are written for SQLite, and the values that go with them.

Most are read alike: placeholders are spelled `%s`, and JSON in a text is read as such. The others stand in one table,
by what SQLite is told. Rows that anybody may delete who comes along are passed over where somebody else does it: two
servers that wait for each other would be one too many.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from qwed.store import buckets, changes, jobs, rows, subjects

_EXPIRED = "DELETE FROM memories WHERE (agent_id, key) IN (SELECT agent_id, key FROM memories WHERE expires_at"
_JOBS = "(SELECT job_id FROM jobs WHERE expires_at <= ? ORDER BY expires_at, job_id LIMIT ? FOR UPDATE SKIP LOCKED)"
_DIFFERENT = {
    rows.SELECT_DUE: (
        "SELECT o.notice_id, o.organisation_id, w.url, w.secret, o.event, o.body, o.created_at, o.attempts "
        "FROM webhooks w CROSS JOIN LATERAL (SELECT d.* FROM outbox d WHERE d.organisation_id = w.organisation_id "
        "AND d.due_at <= ? ORDER BY d.due_at LIMIT 8) o ORDER BY o.due_at LIMIT ?"
    ),
    rows.DELETE_EXPIRED_MEMORIES: f"{_EXPIRED} < ? LIMIT 16 FOR UPDATE SKIP LOCKED)",
    subjects.FORGET_MEMORIES: f"{_EXPIRED} <= ? LIMIT ? FOR UPDATE SKIP LOCKED)",
    buckets.DELETE_FULL: (
        "DELETE FROM buckets WHERE (organisation_id, pair) IN (SELECT organisation_id, pair FROM buckets "
        "WHERE full_at <= ? LIMIT 16 FOR UPDATE SKIP LOCKED)"
    ),
    changes.ERASE[0]: changes.ERASE[0].replace("LIMIT 10000", "LIMIT 10000 FOR UPDATE SKIP LOCKED"),
    jobs.FORGET_JOBS[0]: f"DELETE FROM job_items WHERE job_id IN {_JOBS}",  # noqa: S608 - constants
    # Never one whose items were somebody else's to delete.
    jobs.FORGET_JOBS[1]: (
        f"DELETE FROM jobs j WHERE job_id IN {_JOBS} "  # noqa: S608 - constants
        "AND NOT EXISTS (SELECT 1 FROM job_items i WHERE i.job_id = j.job_id)"
    ),
    subjects.DROP_SAID: (
        "UPDATE approvals SET request = NULL, resolution = CAST(jsonb_set(CAST(resolution AS JSONB) - 'said' "  # noqa: S608
        f"- 'approver', '{{reason}}', '\"expired\"') AS TEXT) WHERE {subjects.OLD}"
    ),
}
_JSON = re.compile(r"\b([a-z_.]+) ->> ")


@cache
def translated(statement: str) -> str:
    """The statement as PostgreSQL reads it."""
    text = _DIFFERENT.get(statement, statement)
    return _JSON.sub(r"CAST(\1 AS JSON) ->> ", text.replace("%", "%%")).replace("?", "%s")


class _Truth(Int8Dumper):
    """True and False as the numbers that SQLite keeps."""

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _Word(StrDumper):
    """A word of a closed set by its value; psycopg would write its name."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(str(obj))


_DUMPERS: tuple[tuple[type, type[Dumper]], ...] = ((int, Int8Dumper), (bool, _Truth), (StrEnum, _Word))


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let the connection write values as SQLite does.

    Every whole number is a BIGINT, however small it is: else the same statement would be prepared once for each size.
    """
    for kind, dumper in _DUMPERS:
        connection.adapters.register_dumper(kind, dumper)


def keepable(values: Iterable[Any]) -> bool:
    """Whether PostgreSQL can hold these values. What it cannot hold is in no table, and a look for it finds nothing."""
    return all(not isinstance(value, str) or _is_text(value) for value in values)


def _is_text(value: str) -> bool:
    if "\x00" in value:
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
