"""Server-sent events of `/events`, one for each leaf of the log (INTERFACES 1).

A leaf holds only ids and closed sets, and so does its event: a sent event never contains data that may be erased later.
"""

from typing import NamedTuple

import msgspec

from qwed.kernel.tools import A2A_MESSAGE
from qwed.ledger import leaf
from qwed.model import Decision, Event
from qwed.model.clock import rfc3339
from qwed.store.protocol import LogEntry, Store

PAGE = 100
"""Leaves that are read at once."""

DECISION, APPROVAL, TRUST, SUSPENSION = "decision", "approval", "trust", "suspension"
EXECUTION, AGENT, ORGANISATION, ATTESTATION = "execution", "agent", "organisation", "attestation"
MESSAGE = "message"
TYPES = (DECISION, APPROVAL, TRUST, SUSPENSION, EXECUTION, AGENT, ORGANISATION, ATTESTATION, MESSAGE)

Types = tuple[str, ...]

TYPES_OF: dict[str, Types] = {
    Event.REGISTERED: (AGENT,),
    Event.TOKEN_ROTATED: (AGENT,),
    Event.EDITED: (AGENT,),
    Event.RETIRED: (AGENT, SUSPENSION),
    Event.SUSPENDED: (SUSPENSION,),
    Event.COMPLAINT: (SUSPENSION,),
    Event.REACTIVATED: (SUSPENSION,),
    Event.HALTED: (SUSPENSION,),
    Event.RESUMED: (SUSPENSION,),
    Event.TRUST_REQUESTED: (APPROVAL,),
    Event.TRUST_RAISED: (TRUST, APPROVAL),
    Event.TRUST_LOWERED: (TRUST,),
    Event.TRUST_DEGRADED: (TRUST,),
    Event.TRUST_RESTORED: (TRUST,),
    Event.APPROVED: (APPROVAL,),
    Event.GROUP_APPROVED: (APPROVAL,),
    Event.REJECTED: (APPROVAL,),
    Event.EXPIRED: (APPROVAL,),
    Event.EXECUTED: (EXECUTION,),
    Event.EXECUTED_UNPERMITTED: (EXECUTION,),
    Event.ORGANISATION_ADDED: (ORGANISATION,),
    Event.KEY_ADDED: (ORGANISATION,),
    Event.KEY_REVOKED: (ORGANISATION,),
    Event.KEY_CHANGED: (ORGANISATION,),
    Event.TOOL_CHANGED: (ORGANISATION,),
    Event.POLICIES_CHANGED: (ORGANISATION,),
    Event.TOOL_REMOVED: (ORGANISATION,),
    Event.WEBHOOK_CHANGED: (ORGANISATION,),
    Event.WEBHOOK_REMOVED: (ORGANISATION,),
    Event.AGENT_BLOCKED: (ORGANISATION,),
    Event.AGENT_UNBLOCKED: (ORGANISATION,),
    Event.PAIR_BLOCKED: (ORGANISATION,),
    Event.PAIR_UNBLOCKED: (ORGANISATION,),
    Event.SENDER_TRUSTED: (ORGANISATION,),
    Event.SENDER_REVOKED: (ORGANISATION,),
    Event.MESSAGE_FORWARDED: (MESSAGE,),
    Event.MESSAGE_BLOCKED: (MESSAGE,),
    Event.ERASED: (ORGANISATION,),
    Event.SIGNING_KEY_ROTATED: (ORGANISATION,),
    Event.CLAIM_ATTESTED: (ATTESTATION,),
    Event.ATTESTATION_REVOKED: (ATTESTATION,),
}
"""Type of each change, followed by further types under which a filtering client receives it."""

_DECISION_TYPES: Types = (DECISION,)
_PENDING_TYPES: Types = (DECISION, APPROVAL)
"""A PENDING decision is also a request for approval."""
_MESSAGE_TYPES: Types = (DECISION, MESSAGE)
_KNOWN_TYPES = 2
"""First leaf version that names an action's type only if it is a built-in one."""


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Data of one event; members that do not apply are omitted, except the first five."""

    type: str
    index: int
    at: str
    agent_id: str | None
    activity_id: str
    event: str | None = None
    fields: tuple[str, ...] = ()
    about: str | None = None
    by: str | None = None
    action_type: str | None = None
    decision: str | None = None
    status: str | None = None
    engine: str | None = None
    risk_level: str | None = None
    error: str | None = None
    level_before: int | None = None
    level_after: int | None = None
    success: bool | None = None
    self_approved: bool = False
    policies: tuple[str, ...] = ()
    policy: str | None = None
    policy_rule: str | None = None
    policy_version: int | None = None
    repeats: int = 0


class EventMessage(NamedTuple):
    """One encoded event and the types it matches."""

    log_index: int
    types: Types
    text: bytes


_LEAF_FIELDS = tuple(name for name in EventData.__struct_fields__ if name not in ("type", "index", "at", "action_type"))
_encode = msgspec.json.Encoder().encode


def messages_from(organisation_id: str, from_index: int, store: Store) -> list[EventMessage]:
    """Return the events of the next leaves of the log from this index on."""
    return [message_of(entry) for entry in store.entries(organisation_id, from_index, PAGE)]


def message_of(entry: LogEntry) -> EventMessage:
    """Encode one leaf as a server-sent event."""
    decoded = leaf.decode(entry.leaf)
    types = types_of(decoded)
    data = EventData(
        type=types[0],
        index=entry.log_index,
        at=rfc3339(decoded.time_ms / 1000),
        action_type=decoded.action_type if decoded.v >= _KNOWN_TYPES else None,
        **{name: getattr(decoded, name) for name in _LEAF_FIELDS},
    )
    text = b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.log_index, types[0].encode(), _encode(data))
    return EventMessage(entry.log_index, types, text)


def types_of(decoded: leaf.Leaf) -> Types:
    """Return the type of a leaf and the further types it matches."""
    if decoded.event is not None:
        return TYPES_OF.get(decoded.event, (ORGANISATION,))
    if decoded.action_type == A2A_MESSAGE and decoded.v >= _KNOWN_TYPES:
        return _MESSAGE_TYPES
    return _PENDING_TYPES if decoded.decision == Decision.PENDING else _DECISION_TYPES
