"""Translates SQLite statements and values for PostgreSQL.

Most need only `%s` placeholders and a cast of JSON text. The others are in one table, by their SQLite text. Deletions
that any server may do skip locked rows, so that two servers never wait for each other.
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

from qwed.store import batch_job_table, change_handlers, data_subjects, sql, token_buckets, usage_rows

_EXPIRED = (
    "DELETE FROM idempotency_keys WHERE (agent_id, key) IN (SELECT agent_id, key FROM idempotency_keys WHERE expires_at"
)
_JOBS = "(SELECT job_id FROM jobs WHERE expires_at <= ? ORDER BY expires_at, job_id LIMIT ? FOR UPDATE SKIP LOCKED)"
POSTGRES_STATEMENTS = {
    sql.SELECT_DUE: (
        "SELECT o.notice_id, o.organisation_id, w.url, w.secret, o.event, o.body, o.created_at, o.attempts "
        "FROM webhooks w CROSS JOIN LATERAL (SELECT d.* FROM outbox d WHERE d.organisation_id = w.organisation_id "
        "AND d.due_at <= ? ORDER BY d.due_at LIMIT 8) o ORDER BY o.due_at LIMIT ?"
    ),
    sql.DELETE_SOME_EXPIRED_ANSWERS: f"{_EXPIRED} < ? LIMIT 16 FOR UPDATE SKIP LOCKED)",
    data_subjects.DELETE_EXPIRED_ANSWERS: f"{_EXPIRED} <= ? LIMIT ? FOR UPDATE SKIP LOCKED)",
    usage_rows.DELETE_OLD_USES: usage_rows.DELETE_OLD_USES.replace("LIMIT ?", "LIMIT ? FOR UPDATE SKIP LOCKED"),
    token_buckets.DELETE_FULL: (
        "DELETE FROM token_buckets WHERE (organisation_id, pair) IN (SELECT organisation_id, pair FROM token_buckets "
        "WHERE full_at <= ? LIMIT 16 FOR UPDATE SKIP LOCKED)"
    ),
    change_handlers.ERASE_SUBJECT[0]: change_handlers.ERASE_SUBJECT[0].replace(
        "LIMIT 10000", "LIMIT 10000 FOR UPDATE SKIP LOCKED"
    ),
    batch_job_table.DELETE_EXPIRED_JOBS[0]: f"DELETE FROM job_items WHERE job_id IN {_JOBS}",  # noqa: S608 - constants
    # Never a job whose items another server is deleting.
    batch_job_table.DELETE_EXPIRED_JOBS[1]: (
        f"DELETE FROM jobs j WHERE job_id IN {_JOBS} "  # noqa: S608 - constants
        "AND NOT EXISTS (SELECT 1 FROM job_items i WHERE i.job_id = j.job_id)"
    ),
    data_subjects.DROP_APPROVAL_TEXT: (
        "UPDATE approvals SET request = NULL, resolution = CAST(jsonb_set(CAST(resolution AS JSONB) - 'said' "  # noqa: S608
        f"- 'approver', '{{reason}}', '\"expired\"') AS TEXT) WHERE {data_subjects.IN_SEQUENCE_RANGE}"
    ),
}
_JSON = re.compile(r"\b([a-z_.]+) ->> ")


@cache
def translate(statement: str) -> str:
    """Return the statement for PostgreSQL."""
    text = POSTGRES_STATEMENTS.get(statement, statement)
    return _JSON.sub(r"CAST(\1 AS JSON) ->> ", text.replace("%", "%%")).replace("?", "%s")


class _BoolDumper(Int8Dumper):
    """Writes True and False as the numbers that SQLite stores."""

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _StrEnumDumper(StrDumper):
    """Writes a StrEnum member by its value; psycopg would write its name."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(str(obj))


_DUMPERS: tuple[tuple[type, type[Dumper]], ...] = ((int, Int8Dumper), (bool, _BoolDumper), (StrEnum, _StrEnumDumper))


def register_dumpers(connection: psycopg.Connection[Any]) -> None:
    """Make the connection write values as SQLite does.

    Every integer is a BIGINT, however small: otherwise one statement would be prepared once per size.
    """
    for kind, dumper in _DUMPERS:
        connection.adapters.register_dumper(kind, dumper)


def is_storable(values: Iterable[Any]) -> bool:
    """Return True if PostgreSQL can store these values. A value that it cannot store is in no table, so a query for it
    finds nothing."""
    return all(not isinstance(value, str) or _is_text(value) for value in values)


def _is_text(value: str) -> bool:
    if "\x00" in value:
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
