"""Spec 7.1: the leaf one answer, or one change, leaves in the log.

Canonical JSON without content and without a plain hash of content, which a guess could be compared with: ids, closed
sets, and a commitment that tells nothing once the key of its subject is destroyed.

A Struct whose fields stand in alphabetical order and hold no floats encodes straight to RFC 8785 canonical JSON.
"""

import msgspec

VERSION = 2


class Leaf(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """What is said for ever about one answer, or about one change (then `event` names it)."""

    about: str | None = None
    """What a change is about: an earlier activity, a key, a tool, an organisation."""
    action_hash: str | None = None
    """Version 1 only, as are `conversation_id`, `result_hash` and `sub`: now they stand in the content."""
    action_type: str | None = None
    activity_id: str
    agent_id: str | None = None
    attestation_id: str | None = None
    by: str
    commitment: str | None = None
    """HMAC over the content beside the leaf."""
    conversation_id: str | None = None
    cost_micros: int = 0
    decision: str | None = None
    engine: str | None = None
    error: str | None = None
    event: str | None = None
    latency_us: int = 0
    level_after: int | None = None
    level_before: int | None = None
    policy_hash: str | None = None
    repeats: int = 0
    """How many more messages of the same pair were refused for their number and left no leaf of their own."""
    result_hash: str | None = None
    risk_level: str | None = None
    self_approved: bool = False
    status: str | None = None
    step_number: int | None = None
    sub: str | None = None
    success: bool | None = None
    time_ms: int
    tokens: int = 0
    v: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Leaf)


def encode(leaf: Leaf) -> bytes:
    """The canonical bytes of a leaf."""
    return _encoder.encode(leaf)


def decode(data: bytes | str) -> Leaf:
    """The leaf in stored bytes."""
    return _decoder.decode(data)
