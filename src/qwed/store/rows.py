"""How values stand in the tables of `migrations/`."""

from typing import Any

import msgspec

from qwed.store.agent import Agent, AgentStatus, Key, Limits, Permissions
from qwed.store.columns import insert, into, put, replaces, select
from qwed.store.conduct import Conduct
from qwed.store.merit import Merit
from qwed.store.parts import Approval, Webhook
from qwed.store.protocol import ActivityQuery, ApprovalQuery, Memory, Settled, Settlement
from qwed.store.usage import Spent, Usage
from qwed.words import Trust

Row = tuple[Any, ...]

INSERT_ORGANISATION = insert("organisations")
INSERT_KEY = insert("keys")
INSERT_AGENT = insert("agents")
UPDATE_AGENT = "UPDATE agents SET trust = ?, status = ?, token_prefix = ?, token_digest = ? WHERE agent_id = ?"
INSERT_APPROVAL = f"INSERT INTO {into('approvals')} VALUES (?, ?, ?, ?, '', 'pending', ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
RESOLVE_APPROVAL = (
    "UPDATE approvals SET state = ?, resolution = ?, resolved_in = ? WHERE approval_id = ? AND state = 'pending'"
)
SELECT_ELEVATION = "SELECT 1 FROM approvals WHERE agent_id = ? AND kind = 'trust_elevation' AND state = 'pending'"
SELECT_KEYS = select("keys", "WHERE organisation_id = ? ORDER BY created_at, rowid")
SELECT_KEY = select("keys", "WHERE prefix = ?")
SELECT_AGENT = select("agents", "WHERE agent_id = ?")
SELECT_AGENTS = select("agents", "WHERE organisation_id = ? AND agent_id > ? ORDER BY agent_id LIMIT ?")
PUT_WEBHOOK = (
    f"INSERT INTO {into('webhooks')} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "  # noqa: S608 - constants
    f"(SELECT count(*) FROM outbox o WHERE o.organisation_id = ?)) {replaces('webhooks')}"
)
SELECT_WEBHOOK = select("webhooks", "WHERE organisation_id = ?")
COUNT_NOTICE = (
    "UPDATE webhooks SET waiting = waiting + 1 "
    "WHERE organisation_id = ? AND EXISTS (SELECT 1 FROM outbox WHERE notice_id = ?)"
)
"""Right behind INSERT_NOTICE: a running number, because counting rows would slow every commit of a dead webhook."""
INSERT_NOTICE = (
    f"INSERT INTO {into('outbox')} SELECT ?, organisation_id, ?, ?, ?, ?, 0 FROM webhooks "  # noqa: S608 - constants
    "WHERE organisation_id = ? AND waiting < ?"
)
# CROSS keeps SQLite from walking the whole outbox: a few of each organisation, so that no backlog hides the others.
SELECT_DUE = (
    "SELECT o.notice_id, o.organisation_id, w.url, w.secret, o.event, o.body, o.created_at, o.attempts "
    "FROM webhooks w CROSS JOIN outbox o ON o.notice_id IN (SELECT d.notice_id FROM outbox d "
    "WHERE d.organisation_id = w.organisation_id AND d.due_at <= ? ORDER BY d.due_at LIMIT 8) "
    "ORDER BY o.due_at LIMIT ?"
)
INSERT_MEMORY = put("memories")
PUT_CHAIN = put("chains")
DELETE_EXPIRED_MEMORIES = (
    "DELETE FROM memories WHERE (agent_id, key) IN (SELECT agent_id, key FROM memories WHERE expires_at < ? LIMIT 16)"
)
SELECT_LISTS = "SELECT list, sender, receiver FROM message_lists WHERE organisation_id = ?"
DELETE_ENTRY = "DELETE FROM message_lists WHERE organisation_id = ? AND list = ? AND sender = ? AND receiver = ?"
SELECT_USAGE = select("usage", "WHERE agent_id = ?")
SELECT_CONVERSATION = (
    'SELECT last_step, steps, fingerprint, repeats, "window" FROM conversations '
    "WHERE agent_id = ? AND conversation_id = ?"
)
ENTRY = (
    "a.sequence, a.log_index, a.organisation_id, a.leaf, a.payload, e.success, e.result_hash, e.at, "
    "p.approval_id, p.state, p.expires_at, p.resolution, p.resolved_in, a.subject_id"
)
_ACTIVITIES = (
    "activities a LEFT JOIN executions e USING (activity_id) "
    "LEFT JOIN approvals p ON p.activity_id = a.activity_id AND a.event = ''"
)
SELECT_ACTIVITY = f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.activity_id = ? AND a.agent_id = ?"  # noqa: S608 - constants
SELECT_LEAF = f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.activity_id = ?"  # noqa: S608 - constants
SELECT_ATTESTATION = f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.attestation_id = ?"  # noqa: S608 - constants
SELECT_ACTIVITIES = (
    f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.agent_id = ? "  # noqa: S608 - constants
    "AND a.at >= ? AND a.at < ? AND (CAST(? AS TEXT) IS NULL OR a.decision = ?) "
    "AND a.at <= ? AND (a.at, a.sequence) < (?, ?) "
    "AND (? = 'all' OR (a.event = '') = (? = 'decision')) AND (? != 'halt' OR a.event IN ('halted', 'resumed')) "
    "ORDER BY a.at DESC, a.sequence DESC LIMIT ?"
)
# Where a cursor stands. Looked up first, because only a bound that is known beforehand is a bound of the index.
SELECT_PLACE = (
    "SELECT at, sequence FROM activities "
    "WHERE organisation_id = coalesce((SELECT organisation_id FROM agents WHERE agent_id = ?), ?) AND log_index = ?"
)
SELECT_CHANGES = (
    f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.organisation_id = ? AND a.event != '' "  # noqa: S608 - constants
    "AND (CAST(? AS BIGINT) IS NULL OR a.log_index < ?) ORDER BY a.log_index DESC LIMIT ?"
)
_OF_APPROVAL = (
    "SELECT p.approval_id, p.organisation_id, p.agent_id, p.activity_id, p.state, p.cost, p.tokens, "
    "p.high_risk_calls, p.created_at, p.expires_at, p.kind, p.requested_by, p.request, p.resolution, "
)
_APPROVAL = _OF_APPROVAL + "a.leaf, a.payload, a.subject_id FROM approvals p JOIN activities a USING (activity_id) "
SELECT_APPROVAL = _APPROVAL + "WHERE p.approval_id = ?"
# Without their content, which settling them does not need.
_RUN_OUT = _OF_APPROVAL + "'', '', a.subject_id FROM approvals p JOIN activities a USING (activity_id) "
SELECT_EXPIRED = _RUN_OUT + "WHERE p.state = 'pending' AND p.expires_at <= ? ORDER BY p.expires_at LIMIT ?"
SELECT_EXPIRED_OF = _RUN_OUT + "WHERE p.agent_id = ? AND p.state = 'pending' AND p.expires_at <= ?"
SELECT_NEXT_EXPIRY = "SELECT min(expires_at) FROM approvals WHERE state = 'pending' AND expires_at > ?"
_STATE_NOW = "(CASE WHEN p.state = 'pending' AND p.expires_at <= ? THEN 'expired' ELSE p.state END)"
SELECT_APPROVALS = (
    _APPROVAL + "WHERE p.organisation_id = ? AND (CAST(? AS TEXT) IS NULL OR p.approval_id < ?) "
    f"AND (CAST(? AS TEXT) IS NULL OR {_STATE_NOW} = ?) AND (CAST(? AS TEXT) IS NULL OR p.agent_id = ?) "
    "ORDER BY p.approval_id DESC LIMIT ?"
)
# Summed outside: a sum that SQLite cannot hold would hide the record for good.
SELECT_TALLY = "SELECT decision, actions, cost, attestations FROM tallies WHERE agent_id = ? AND day >= ? AND day < ?"
COUNT_ACTIVITIES = (
    "SELECT decision, count(*) FILTER (WHERE event = ''), "
    "CAST(sum(coalesce(CAST(leaf ->> 'cost_micros' AS BIGINT), 0)) AS BIGINT), count(attestation_id) FROM activities "
    "WHERE agent_id = ? AND at >= ? AND at < ? GROUP BY decision"
)
BEGINNING, END = 0.0, 1e11
THE_END = (END, 2**62)
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


def to_usage(row: Row) -> Usage:
    """The counters in a row."""
    return Usage(Spent(*row[1:-7]), Conduct(*row[-7:-4]), Merit(*row[-4:]))


def of_changed_agent(agent: Agent) -> Row:
    """The values of UPDATE_AGENT: what about an agent can change."""
    return (int(agent.trust), str(agent.status), agent.token_prefix, agent.token_digest, agent.agent_id)


def of_approval(organisation_id: str, agent_id: str, activity_id: str, approval: Approval) -> Row:
    """The row of an approval that is asked for."""
    return (
        approval.approval_id,
        organisation_id,
        agent_id,
        activity_id,
        approval.cost,
        approval.tokens,
        approval.high_risk_calls,
        approval.created_at,
        approval.expires_at,
        approval.kind,
        approval.requested_by,
        approval.request,
    )


def of_webhook(webhook: Webhook) -> Row:
    """The row of a webhook."""
    organisation_id = webhook.organisation_id
    return (organisation_id, webhook.url, " ".join(webhook.events), *webhook[3:-1], organisation_id)


def to_webhook(row: Row) -> Webhook:
    """The webhook in a row."""
    return Webhook(row[0], row[1], tuple(row[2].split()), *row[3:])


def of_memory(settlement: Settlement, memory: Memory, settled: Settled) -> Row:
    """The row of an answer kept under an idempotency key."""
    return (
        settlement.agent.agent_id,
        memory.key,
        memory.body_hash,
        settlement.activity.activity_id,
        memory.answer_of(settled),
        memory.expires_at,
        memory.subject_id,
    )


def of_activity_query(query: ActivityQuery, place: tuple[float, int]) -> Row:
    """The values of SELECT_ACTIVITIES, older than this place."""
    at, sequence = place
    return (
        query.agent_id,
        BEGINNING if query.since is None else query.since,
        END if query.until is None else query.until,
        query.decision,
        query.decision,
        at,
        at,
        sequence,
        query.kind,
        query.kind,
        query.kind,
        query.limit,
    )


def of_approval_query(query: ApprovalQuery) -> Row:
    """The values of SELECT_APPROVALS."""
    return (
        query.organisation_id,
        query.before,
        query.before,
        query.state,
        query.now,
        query.state,
        query.agent_id,
        query.agent_id,
        query.limit,
    )
