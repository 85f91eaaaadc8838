"""Columns of each table, in the order in which rows are written and read.

Statements name the columns, so that a migration that adds one does not affect statements that do not use it. For the
tables that every decision writes, the trigger in `migrations/` names them instead. SQLite and PostgreSQL read the same
statements; `postgres/dialect.py` has the exceptions.
"""

from collections.abc import Iterable
from functools import cache

_COLUMNS = {
    "organisations": "organisation_id name created_at",
    "keys": "key_id organisation_id name role prefix digest created_at revoked_at approver_groups",
    "agents": (
        "agent_id organisation_id name type principal_id trust status permissions limits token_prefix token_digest "
        "created_at description framework model registered_by labels max_steps name_key registered_trust "
        "restorable_trust retired_at"
    ),
    "tools": "organisation_id name definition",
    "policy_sets": "organisation_id version digest documents changes changed_at changed_by",
    "conversations": "agent_id conversation_id last_step steps fingerprint repeats recent_states",
    "approvals": (
        "approval_id organisation_id agent_id activity_id action_hash state cost tokens high_risk_calls created_at "
        "expires_at kind requested_by request approver_groups"
    ),
    "idempotency_keys": "agent_id key body_hash activity_id answer expires_at subject_id",
    "usage": (
        "agent_id hour day requests_hour requests_day tool_calls_hour cost_day tokens_day high_risk_day pending_cost "
        "pending_tokens pending_high_risk open_approvals recent_flags denial_cooldown exceeded_times level_since "
        "actions denied attestations"
    ),
    "usage_series": "owner_id tool argument total held last",
    "usage_entries": "owner_id tool argument at total_before",
    "usage_holds": "approval_id owner_id tool argument amount",
    "executions": "activity_id success result_hash at",
    "webhooks": "organisation_id url events secret changed_at delivered given_up delivered_at last_error waiting",
    "outbox": "notice_id organisation_id event body created_at due_at attempts",
    "jobs": (
        "job_id organisation_id requested_by role max_parallel fail_fast total created_at expires_at finished_at "
        "subject_id"
    ),
    "job_items": "job_id position query type params state result error latency_ms",
    "subjects": "subject_id organisation_id name key created_at erased_at",
    "heads": "organisation_id size signature",
    "revocations": "attestation_id organisation_id activity_id at",
    "attestation_chains": "organisation_id chain_id length last_attestation_id",
    "message_lists": "organisation_id list sender receiver",
    "token_buckets": "organisation_id pair tokens updated_at full_at",
    "meta": "name value",
}
COLUMNS: dict[str, tuple[str, ...]] = {table: tuple(names.split()) for table, names in _COLUMNS.items()}
PRIMARY_KEYS = {
    "tools": ("organisation_id", "name"),
    "conversations": ("agent_id", "conversation_id"),
    "idempotency_keys": ("agent_id", "key"),
    "usage_series": ("owner_id", "tool", "argument"),
    "webhooks": ("organisation_id",),
    "attestation_chains": ("organisation_id", "chain_id"),
    "token_buckets": ("organisation_id", "pair"),
    "meta": ("name",),
}
"""Primary keys of the tables whose rows are replaced."""


def _column_list(columns: Iterable[str]) -> str:
    return ", ".join(columns)


def table_columns(table: str) -> str:
    """Return `table (column, ...)`, for INSERT INTO."""
    return f"{table} ({_column_list(COLUMNS[table])})"


@cache
def insert(table: str) -> str:
    """Return the statement that inserts one row."""
    return f"INSERT INTO {table_columns(table)} VALUES ({', '.join('?' * len(COLUMNS[table]))})"  # noqa: S608 - constants


@cache
def upsert(table: str) -> str:
    """Return the statement that inserts one row or replaces the existing one."""
    return f"{insert(table)} {on_conflict_replace(table)}"


def on_conflict_replace(table: str) -> str:
    """Return the clause that replaces an existing row."""
    primary = PRIMARY_KEYS[table]
    others = [_column_list([name]) for name in COLUMNS[table] if name not in primary]
    assignments = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"ON CONFLICT ({_column_list(primary)}) DO UPDATE SET {assignments}"


@cache
def select(table: str, rest: str) -> str:
    """Return the statement that reads whole rows; `rest` is the clause after the table."""
    return f"SELECT {_column_list(COLUMNS[table])} FROM {table} {rest}"  # noqa: S608 - constants
