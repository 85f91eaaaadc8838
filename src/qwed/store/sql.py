"""SQL statements of the store, and the conversion between values and rows."""

from typing import Any

import msgspec

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Key, Permissions
from qwed.domain.behaviour import BehaviourWindow, TrustEvidence
from qwed.domain.budget import Usage, UsageCounters
from qwed.domain.change_parts import ApprovalRequest, GroupApproval, Webhook
from qwed.domain.write_set import Activity, Committed, IdempotentAnswer
from qwed.model import Trust
from qwed.store.columns import insert, on_conflict_replace, select, table_columns, upsert
from qwed.store.protocol import ActivityQuery, ApprovalQuery, ApprovalRecord

Row = tuple[Any, ...]

INSERT_ORGANISATION = insert("organisations")
INSERT_KEY = insert("keys")
INSERT_AGENT = insert("agents")
UPDATE_AGENT = (
    "UPDATE agents SET name = ?, trust = ?, status = ?, permissions = ?, limits = ?, token_prefix = ?, "
    "token_digest = ?, description = ?, labels = ?, max_steps = ?, name_key = ?, restorable_trust = ?, "
    "retired_at = ? WHERE agent_id = ?"
)
INSERT_APPROVAL = (
    f"INSERT INTO {table_columns('approvals')} VALUES (?, ?, ?, ?, '', 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
)
RESOLVE_APPROVAL = (
    "UPDATE approvals SET state = ?, resolution = ?, resolved_in = ? WHERE approval_id = ? AND state = 'pending'"
)
PUT_GROUP_APPROVALS = "UPDATE approvals SET group_approvals = ? WHERE approval_id = ? AND state = 'pending'"
SELECT_ELEVATION = "SELECT 1 FROM approvals WHERE agent_id = ? AND kind = 'trust_elevation' AND state = 'pending'"
UPDATE_KEY = "UPDATE keys SET approver_groups = ? WHERE key_id = ?"
SELECT_KEYS = select("keys", "WHERE organisation_id = ? ORDER BY created_at, rowid")
SELECT_KEY = select("keys", "WHERE prefix = ?")
SELECT_AGENT = select("agents", "WHERE agent_id = ?")
_STATUS = "CASE WHEN retired_at IS NULL THEN status ELSE 'retired' END"
SELECT_AGENTS = select(
    "agents",
    f"WHERE organisation_id = ? AND agent_id > ? AND (CAST(? AS TEXT) = 'all' OR {_STATUS} = ? "
    "OR (CAST(? AS TEXT) = 'current' AND retired_at IS NULL)) ORDER BY agent_id LIMIT ?",
)
SELECT_NAMED = "SELECT agent_id FROM agents WHERE organisation_id = ? AND name_key = ? ORDER BY agent_id LIMIT ?"
SELECT_OTHER_NAMED = "SELECT agent_id FROM agents WHERE organisation_id = ? AND name_key = ? AND agent_id != ? LIMIT 1"
SELECT_AGENT_OF_TOKEN = select("agents", "WHERE token_prefix = ?")
SELECT_UNKEYED_NAMES = "SELECT agent_id, name FROM agents WHERE name_key IS NULL"
PUT_NAME_KEY = "UPDATE agents SET name_key = ? WHERE agent_id = ?"
PUT_WEBHOOK = (
    f"INSERT INTO {table_columns('webhooks')} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "  # noqa: S608 - constants
    f"(SELECT count(*) FROM outbox o WHERE o.organisation_id = ?)) {on_conflict_replace('webhooks')}"
)
SELECT_WEBHOOK = select("webhooks", "WHERE organisation_id = ?")
COUNT_NOTICE = (
    "UPDATE webhooks SET waiting = waiting + 1 "
    "WHERE organisation_id = ? AND EXISTS (SELECT 1 FROM outbox WHERE notice_id = ?)"
)
"""Runs right after INSERT_NOTICE. A running count, because counting rows would slow every commit while a webhook is
down."""
INSERT_NOTICE = (
    f"INSERT INTO {table_columns('outbox')} SELECT ?, organisation_id, ?, ?, ?, ?, 0 FROM webhooks "  # noqa: S608 - constants
    "WHERE organisation_id = ? AND waiting < ?"
)
# CROSS keeps SQLite from scanning the whole outbox: a few rows per organisation, so that no backlog hides the others.
SELECT_DUE = (
    "SELECT o.notice_id, o.organisation_id, w.url, w.secret, o.event, o.body, o.created_at, o.attempts "
    "FROM webhooks w CROSS JOIN outbox o ON o.notice_id IN (SELECT d.notice_id FROM outbox d "
    "WHERE d.organisation_id = w.organisation_id AND d.due_at <= ? ORDER BY d.due_at LIMIT 8) "
    "ORDER BY o.due_at LIMIT ?"
)
PUT_ANSWER = upsert("idempotency_keys")
PUT_CHAIN = upsert("attestation_chains")
DELETE_SOME_EXPIRED_ANSWERS = (
    "DELETE FROM idempotency_keys WHERE (agent_id, key) IN "
    "(SELECT agent_id, key FROM idempotency_keys WHERE expires_at < ? LIMIT 16)"
)
INSERT_POLICY_SET = insert("policy_sets")
_POLICY_SET = "SELECT version, digest, documents FROM policy_sets WHERE organisation_id = ? "
SELECT_POLICIES = _POLICY_SET + "ORDER BY version DESC LIMIT 1"
SELECT_POLICY_SET = _POLICY_SET + "AND version = ?"
SELECT_POLICY_VERSIONS = (
    "SELECT version, digest, changes, changed_at, changed_by FROM policy_sets "
    "WHERE organisation_id = ? AND version < ? ORDER BY version DESC LIMIT ?"
)
SELECT_LISTS = "SELECT list, sender, receiver FROM message_lists WHERE organisation_id = ?"
DELETE_ENTRY = "DELETE FROM message_lists WHERE organisation_id = ? AND list = ? AND sender = ? AND receiver = ?"
SELECT_USAGE = select("usage", "WHERE agent_id = ?")
SELECT_CHAIN = "SELECT length, last_attestation_id FROM attestation_chains WHERE organisation_id = ? AND chain_id = ?"
SELECT_ANSWER = (
    "SELECT body_hash, answer, activity_id FROM idempotency_keys WHERE agent_id = ? AND key = ? AND expires_at > ?"
)
SELECT_CONVERSATION = (
    "SELECT last_step, steps, fingerprint, repeats, recent_states FROM conversations "
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
# Position of a cursor. Read first, because only a bound that is known beforehand can use the index.
SELECT_CURSOR = (
    "SELECT at, sequence FROM activities "
    "WHERE organisation_id = coalesce((SELECT organisation_id FROM agents WHERE agent_id = ?), ?) AND log_index = ?"
)
SELECT_CHANGES = (
    f"SELECT {ENTRY} FROM {_ACTIVITIES} WHERE a.organisation_id = ? AND a.event != '' "  # noqa: S608 - constants
    "AND (CAST(? AS BIGINT) IS NULL OR a.log_index < ?) ORDER BY a.log_index DESC LIMIT ?"
)
_APPROVAL_COLUMNS = (
    "SELECT p.approval_id, p.organisation_id, p.agent_id, p.activity_id, p.state, p.cost, p.tokens, "
    "p.high_risk_calls, p.created_at, p.expires_at, p.kind, p.requested_by, p.request, p.resolution, "
)
_APPROVAL = (
    _APPROVAL_COLUMNS
    + "a.leaf, a.payload, a.subject_id, p.approver_groups, p.group_approvals "
    + "FROM approvals p JOIN activities a USING (activity_id) "
)
SELECT_APPROVAL = _APPROVAL + "WHERE p.approval_id = ?"
# Without their content, which resolving them does not need.
_EXPIRED_APPROVAL = _APPROVAL_COLUMNS + (
    "'', '', a.subject_id, p.approver_groups, p.group_approvals FROM approvals p JOIN activities a USING (activity_id) "
)
SELECT_EXPIRED = _EXPIRED_APPROVAL + "WHERE p.state = 'pending' AND p.expires_at <= ? ORDER BY p.expires_at LIMIT ?"
SELECT_EXPIRED_OF = _EXPIRED_APPROVAL + "WHERE p.agent_id = ? AND p.state = 'pending' AND p.expires_at <= ?"
SELECT_NEXT_EXPIRY = "SELECT min(expires_at) FROM approvals WHERE state = 'pending' AND expires_at > ?"
_STATE_NOW = "(CASE WHEN p.state = 'pending' AND p.expires_at <= ? THEN 'expired' ELSE p.state END)"
SELECT_APPROVALS = (
    _APPROVAL + "WHERE p.organisation_id = ? AND (CAST(? AS TEXT) IS NULL OR p.approval_id < ?) "
    f"AND (CAST(? AS TEXT) IS NULL OR {_STATE_NOW} = ?) AND (CAST(? AS TEXT) IS NULL OR p.agent_id = ?) "
    "ORDER BY p.approval_id DESC LIMIT ?"
)
# Summed in Python: a sum that overflows in SQLite would make the record unreadable.
SELECT_DAILY_TOTALS = (
    "SELECT decision, actions, cost, attestations FROM daily_totals WHERE agent_id = ? AND day >= ? AND day < ?"
)
COUNT_ACTIVITIES = (
    "SELECT decision, count(*) FILTER (WHERE event = ''), "
    "CAST(sum(coalesce(CAST(leaf ->> 'cost_micros' AS BIGINT), 0)) AS BIGINT), count(attestation_id) FROM activities "
    "WHERE agent_id = ? AND at >= ? AND at < ? GROUP BY decision"
)
BEGINNING, END = 0.0, 1e11
AFTER_LAST = (END, 2**62)
"""Times before and after all stored activities."""

_permissions = msgspec.json.Decoder(Permissions)
_names = msgspec.json.Decoder(tuple[str, ...])
_group_approvals = msgspec.json.Decoder(tuple[GroupApproval, ...])
_limits = msgspec.json.Decoder(AgentLimits)
_labels = msgspec.json.Decoder(dict[str, str])


def key_row(key: Key) -> Row:
    """Return the row of an API key."""
    return (
        key.key_id,
        key.organisation_id,
        key.name,
        key.role,
        key.prefix,
        key.digest,
        key.created_at,
        key.revoked_at,
        _list_text(key.approver_groups),
    )


def to_key(row: Row) -> Key:
    """Return the API key in a row."""
    key_id, organisation_id, name, role, prefix, digest, created_at, revoked_at, approver_groups = row
    return Key(
        key_id=key_id,
        organisation_id=organisation_id,
        name=name,
        role=role,
        prefix=prefix,
        digest=digest,
        created_at=created_at,
        revoked_at=revoked_at,
        approver_groups=_list_in(approver_groups),
    )


def changed_key_row(key: Key) -> Row:
    """Return the values of UPDATE_KEY: the fields of a key that can change."""
    return (_list_text(key.approver_groups), key.key_id)


def _list_text(names: tuple[str, ...]) -> str | None:
    return msgspec.json.encode(names).decode() if names else None


def _list_in(text: str | None) -> tuple[str, ...]:
    return () if text is None else _names.decode(text)


def agent_row(agent: Agent) -> Row:
    """Return the row of an agent."""
    return (
        agent.agent_id,
        agent.organisation_id,
        agent.name,
        agent.type,
        agent.principal_id,
        int(agent.trust),
        _stored_status(agent),
        msgspec.json.encode(agent.permissions),
        msgspec.json.encode(agent.limits),
        agent.token_prefix,
        agent.token_digest,
        agent.created_at,
        agent.description,
        agent.framework,
        agent.model,
        agent.registered_by,
        _encoded_labels(agent),
        agent.max_conversation_steps,
        agent.name_key,
        int(agent.registered_trust),
        int(agent.restorable_trust),
        agent.retired_at,
    )


def _stored_status(agent: Agent) -> str:
    """Return the status to store: a retired agent is a suspended one with the time of its retirement."""
    return str(AgentStatus.SUSPENDED if agent.status is AgentStatus.RETIRED else agent.status)


def _encoded_labels(agent: Agent) -> str:
    return msgspec.json.encode(dict(agent.labels)).decode()


def to_agent(row: Row) -> Agent:
    """Return the agent in a row."""
    return Agent(
        agent_id=row[0],
        organisation_id=row[1],
        name=row[2],
        type=row[3],
        principal_id=row[4],
        trust=Trust(row[5]),
        status=AgentStatus(row[6]) if row[21] is None else AgentStatus.RETIRED,
        permissions=_permissions.decode(row[7]),
        limits=_limits.decode(row[8]),
        token_prefix=row[9],
        token_digest=row[10],
        created_at=row[11],
        description=row[12],
        framework=row[13],
        model=row[14],
        registered_by=row[15],
        labels=_labels.decode(row[16]),
        max_conversation_steps=row[17],
        registered_trust=Trust(row[19]),
        restorable_trust=Trust(row[20]),
        retired_at=row[21],
    )


def to_usage(row: Row) -> Usage:
    """Return the counters in a row."""
    return Usage(UsageCounters(*row[1:-7]), BehaviourWindow(*row[-7:-4]), TrustEvidence(*row[-4:]))


def changed_agent_row(agent: Agent) -> Row:
    """Return the values of UPDATE_AGENT: the fields of an agent that can change."""
    return (
        agent.name,
        int(agent.trust),
        _stored_status(agent),
        msgspec.json.encode(agent.permissions),
        msgspec.json.encode(agent.limits),
        agent.token_prefix,
        agent.token_digest,
        agent.description,
        _encoded_labels(agent),
        agent.max_conversation_steps,
        agent.name_key,
        int(agent.restorable_trust),
        agent.retired_at,
        agent.agent_id,
    )


def approval_row(organisation_id: str, agent_id: str, activity_id: str, approval: ApprovalRequest) -> Row:
    """Return the row of a new approval."""
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
        _list_text(approval.approver_groups),
    )


def to_approval(row: Row) -> ApprovalRecord:
    """Return the approval in a row."""
    *columns, approver_groups, group_approvals = row
    given = () if group_approvals is None else _group_approvals.decode(group_approvals)
    return ApprovalRecord._make((*columns, _list_in(approver_groups), given))


def group_approvals_text(approvals: tuple[GroupApproval, ...]) -> str:
    """Return the stored form of the approvals that groups have given."""
    return msgspec.json.encode(approvals).decode()


def webhook_row(webhook: Webhook) -> Row:
    """Return the row of a webhook."""
    organisation_id = webhook.organisation_id
    return (organisation_id, webhook.url, " ".join(webhook.events), *webhook[3:-1], organisation_id)


def to_webhook(row: Row) -> Webhook:
    """Return the webhook in a row."""
    return Webhook(row[0], row[1], tuple(row[2].split()), *row[3:])


def answer_row(agent_id: str, activity: Activity, answer: IdempotentAnswer, committed: Committed) -> Row:
    """Return the row of an answer stored under an idempotency key."""
    return (
        agent_id,
        answer.key,
        answer.body_hash,
        activity.activity_id,
        answer.answer_of(committed),
        answer.expires_at,
        answer.subject_id,
    )


def activity_query_values(query: ActivityQuery, cursor: tuple[float, int]) -> Row:
    """Return the values of SELECT_ACTIVITIES, for rows before this cursor."""
    at, sequence = cursor
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


def approval_query_values(query: ApprovalQuery) -> Row:
    """Return the values of SELECT_APPROVALS."""
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
