"""How values stand in the tables of `migrations/`."""

from typing import Any

import msgspec

from qwed.store.agent import Agent, AgentStatus, Key, Limits, Permissions
from qwed.store.protocol import ActivityQuery, Approval, Memory, Settled, Settlement
from qwed.words import Trust

Row = tuple[Any, ...]

INSERT_KEY = "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_AGENT = "INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_APPROVAL = "INSERT INTO approvals VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)"
INSERT_MEMORY = "INSERT OR REPLACE INTO memories VALUES (?, ?, ?, ?, ?, ?)"
DELETE_EXPIRED_MEMORIES = (
    "DELETE FROM memories WHERE (agent_id, key) IN (SELECT agent_id, key FROM memories WHERE expires_at < ? LIMIT 16)"
)
SELECT_CONVERSATION = (
    "SELECT last_step, steps, fingerprint, repeats, window FROM conversations "
    "WHERE agent_id = ? AND conversation_id = ?"
)
ENTRY = "sequence, log_index, organisation_id, leaf, payload"
SELECT_ACTIVITIES = (
    f"SELECT {ENTRY} FROM activities WHERE agent_id = ? "  # noqa: S608 - a constant
    "AND at >= ? AND at < ? AND (? IS NULL OR decision = ?) "
    "AND (? IS NULL OR (at, sequence) < ((SELECT at FROM activities WHERE sequence = ?), ?)) "
    "ORDER BY at DESC, sequence DESC LIMIT ?"
)
SELECT_TALLY = (
    "SELECT decision, sum(actions), sum(cost) FROM tallies WHERE agent_id = ? AND day >= ? AND day < ? "
    "GROUP BY decision"
)
COUNT_ACTIVITIES = (
    "SELECT decision, count(*), sum(coalesce(leaf ->> 'cost_micros', 0)) FROM activities "
    "WHERE agent_id = ? AND at >= ? AND at < ? GROUP BY decision"
)
BEGINNING, END = 0.0, 1e11
"""Moments before and after anything that is kept."""

_permissions = msgspec.json.Decoder(Permissions)
_limits = msgspec.json.Decoder(Limits)


def of_key(key: Key) -> Row:
    """The row of an API key."""
    return (
        key.key_id,
        key.organisation_id,
        key.name,
        key.role,
        key.prefix,
        key.digest,
        key.created_at,
        key.revoked_at,
    )


def to_key(row: Row) -> Key:
    """The API key in a row."""
    key_id, organisation_id, name, role, prefix, digest, created_at, revoked_at = row
    return Key(
        key_id=key_id,
        organisation_id=organisation_id,
        name=name,
        role=role,
        prefix=prefix,
        digest=digest,
        created_at=created_at,
        revoked_at=revoked_at,
    )


def of_agent(agent: Agent) -> Row:
    """The row of an agent."""
    return (
        agent.agent_id,
        agent.organisation_id,
        agent.name,
        agent.type,
        agent.principal_id,
        int(agent.trust),
        str(agent.status),
        msgspec.json.encode(agent.permissions),
        msgspec.json.encode(agent.limits),
        agent.token_prefix,
        agent.token_digest,
        agent.created_at,
        agent.description,
        agent.framework,
        agent.model,
    )


def to_agent(row: Row) -> Agent:
    """The agent in a row."""
    return Agent(
        agent_id=row[0],
        organisation_id=row[1],
        name=row[2],
        type=row[3],
        principal_id=row[4],
        trust=Trust(row[5]),
        status=AgentStatus(row[6]),
        permissions=_permissions.decode(row[7]),
        limits=_limits.decode(row[8]),
        token_prefix=row[9],
        token_digest=row[10],
        created_at=row[11],
        description=row[12],
        framework=row[13],
        model=row[14],
    )


def of_approval(settlement: Settlement, approval: Approval) -> Row:
    """The row of the approval a PENDING decision asks for."""
    return (
        approval.approval_id,
        settlement.agent.organisation_id,
        settlement.agent.agent_id,
        settlement.activity.activity_id,
        approval.action_hash,
        approval.cost,
        approval.tokens,
        approval.high_risk_calls,
        approval.created_at,
        approval.expires_at,
    )


def of_memory(settlement: Settlement, memory: Memory, settled: Settled) -> Row:
    """The row of an answer kept under an idempotency key."""
    return (
        settlement.agent.agent_id,
        memory.key,
        memory.body_hash,
        settlement.activity.activity_id,
        memory.answer_of(settled),
        memory.expires_at,
    )


def of_activity_query(query: ActivityQuery) -> Row:
    """The values of SELECT_ACTIVITIES."""
    return (
        query.agent_id,
        BEGINNING if query.since is None else query.since,
        END if query.until is None else query.until,
        query.decision,
        query.decision,
        query.before,
        query.before,
        query.before,
        query.limit,
    )
