"""The columns of each table, in the order in which rows are written and read.

Statements name them, so that a migration which adds a column changes nothing for whoever does not know it yet. Of the
tables that every decision writes, the trigger in `migrations/` names them instead. The statements are read by SQLite
and by PostgreSQL alike: see `postgres/dialect.py` for the few that are not.
"""

from collections.abc import Iterable
from functools import cache

_COLUMNS = {
    "organisations": "organisation_id name created_at",
    "keys": "key_id organisation_id name role prefix digest created_at revoked_at",
    "agents": (
        "agent_id organisation_id name type principal_id trust status permissions limits token_prefix token_digest "
        "created_at description framework model"
    ),
    "tools": "organisation_id name row",
    "conversations": "agent_id conversation_id last_step steps fingerprint repeats window",
    "approvals": (
        "approval_id organisation_id agent_id activity_id action_hash state cost tokens high_risk_calls created_at "
        "expires_at kind requested_by request"
    ),
    "memories": "agent_id key body_hash activity_id answer expires_at subject_id",
    "usage": (
        "agent_id hour day requests_hour requests_day tool_calls_hour cost_day tokens_day high_risk_day pending_cost "
        "pending_tokens pending_high_risk open_approvals recent rest exceeded since actions denied attestations"
    ),
    "executions": "activity_id success result_hash at",
    "webhooks": "organisation_id url events secret changed_at delivered given_up delivered_at last_error waiting",
    "outbox": "notice_id organisation_id event body created_at due_at attempts",
    "jobs": (
        "job_id organisation_id asked_by role max_parallel fail_fast total created_at expires_at finished_at subject_id"
    ),
    "job_items": "job_id position query type params state result error latency_ms",
    "subjects": "subject_id organisation_id name key created_at erased_at",
    "heads": "organisation_id size signature",
    "revocations": "attestation_id organisation_id activity_id at",
    "chains": "organisation_id chain_id links last",
    "message_lists": "organisation_id list sender receiver",
    "buckets": "organisation_id pair tokens at full_at",
    "meta": "name value",
}
COLUMNS: dict[str, tuple[str, ...]] = {table: tuple(names.split()) for table, names in _COLUMNS.items()}
_PRIMARY = {
    "tools": ("organisation_id", "name"),
    "conversations": ("agent_id", "conversation_id"),
    "memories": ("agent_id", "key"),
    "webhooks": ("organisation_id",),
    "chains": ("organisation_id", "chain_id"),
    "buckets": ("organisation_id", "pair"),
    "meta": ("name",),
}
"""What a row is found by, of the tables whose rows are replaced."""
_RESERVED = frozenset({"window"})
"""Words that PostgreSQL wants in quotes; SQLite takes them so as well."""


def _named(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' if name in _RESERVED else name for name in columns)


def into(table: str) -> str:
    """`table (its, columns)`, for what follows INSERT INTO."""
    return f"{table} ({_named(COLUMNS[table])})"


@cache
def insert(table: str) -> str:
    """The statement that adds one row of plain values."""
    return f"INSERT INTO {into(table)} VALUES ({', '.join('?' * len(COLUMNS[table]))})"  # noqa: S608 - constants


@cache
def put(table: str) -> str:
    """The statement that adds one row of plain values, or puts it in the place of the one that was there."""
    return f"{insert(table)} {replaces(table)}"


def replaces(table: str) -> str:
    """What follows the values of a row that takes the place of the one that was there."""
    primary = _PRIMARY[table]
    others = [_named([name]) for name in COLUMNS[table] if name not in primary]
    taken_over = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"ON CONFLICT ({_named(primary)}) DO UPDATE SET {taken_over}"


@cache
def select(table: str, rest: str) -> str:
    """The statement that reads whole rows; `rest` says which."""
    return f"SELECT {_named(COLUMNS[table])} FROM {table} {rest}"  # noqa: S608 - constants
