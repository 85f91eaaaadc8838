"""INTERFACES 1, `/events`: what each leaf tells whoever follows the log.

A leaf holds ids and closed sets, and so does what is told of it: nothing that was sent can have to be erased later.
"""

from typing import NamedTuple

import msgspec

from qwed.kernel.tools import A2A_MESSAGE
from qwed.ledger import leaf
from qwed.store.protocol import LogEntry, Store
from qwed.words import Decision, Event
from qwed.words.clock import rfc3339

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
    Event.SUSPENDED: (SUSPENSION,),
    Event.COMPLAINT: (SUSPENSION,),
    Event.REACTIVATED: (SUSPENSION,),
    Event.HALTED: (SUSPENSION,),
    Event.RESUMED: (SUSPENSION,),
    Event.TRUST_REQUESTED: (APPROVAL,),
    Event.TRUST_RAISED: (TRUST, APPROVAL),
    Event.TRUST_LOWERED: (TRUST,),
    Event.TRUST_DEGRADED: (TRUST,),
    Event.APPROVED: (APPROVAL,),
    Event.REJECTED: (APPROVAL,),
    Event.EXPIRED: (APPROVAL,),
    Event.EXECUTED: (EXECUTION,),
    Event.EXECUTED_UNPERMITTED: (EXECUTION,),
    Event.ORGANISATION_ADDED: (ORGANISATION,),
    Event.KEY_ADDED: (ORGANISATION,),
    Event.KEY_REVOKED: (ORGANISATION,),
    Event.TOOL_CHANGED: (ORGANISATION,),
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
"""The type of each change, and after it what else it is an answer to when a listener asks for some types only."""

_PLAIN: Types = (DECISION,)
_ASKING: Types = (DECISION, APPROVAL)
"""A decision that is PENDING asks a person for approval."""
_SENDING: Types = (DECISION, MESSAGE)
_KNOWN_TYPES = 2
"""Since this version a leaf names an action's type only where it is one of ours."""


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event, as the data of its message; what does not apply is left out, but for the first five."""

    type: str
    index: int
    at: str
    agent_id: str | None
    activity_id: str
    event: str | None = None
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
    repeats: int = 0


class Message(NamedTuple):
    """One event as it is sent, and the types it is an answer to."""

    log_index: int
    types: Types
    text: bytes


_SAME = tuple(name for name in Told.__struct_fields__ if name not in ("type", "index", "at", "action_type"))
_encode = msgspec.json.Encoder().encode


def messages(organisation_id: str, from_index: int, store: Store) -> list[Message]:
    """What the next leaves of the log tell, from this one on."""
    return [message_of(entry) for entry in store.entries(organisation_id, from_index, PAGE)]


def message_of(entry: LogEntry) -> Message:
    """What one leaf tells, in the form of server-sent events."""
    kept = leaf.decode(entry.leaf)
    types = types_of(kept)
    told = Told(
        type=types[0],
        index=entry.log_index,
        at=rfc3339(kept.time_ms / 1000),
        action_type=kept.action_type if kept.v >= _KNOWN_TYPES else None,
        **{name: getattr(kept, name) for name in _SAME},
    )
    text = b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.log_index, types[0].encode(), _encode(told))
    return Message(entry.log_index, types, text)


def types_of(kept: leaf.Leaf) -> Types:
    """The type of what happened, and what else it answers to."""
    if kept.event is not None:
        return TYPES_OF.get(kept.event, (ORGANISATION,))
    if kept.action_type == A2A_MESSAGE and kept.v >= _KNOWN_TYPES:
        return _SENDING
    return _ASKING if kept.decision == Decision.PENDING else _PLAIN
