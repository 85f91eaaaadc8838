"""Spec 7.1: the leaf one answer, or one change, leaves in the log.

Canonical JSON without personal content: hashes, ids and closed sets.

A Struct whose fields stand in alphabetical order and hold no floats encodes straight to RFC 8785 canonical JSON.
"""

import hashlib

import msgspec

VERSION = 1


class Leaf(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """What is said for ever about one answer, or about one change (then `event` names it)."""

    about: str | None = None
    """What a change is about: an earlier activity, a key, a tool, an organisation."""
    action_hash: str | None = None
    action_type: str | None = None
    activity_id: str
    agent_id: str | None = None
    attestation_id: str | None = None
    by: str
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


def leaf_hash(data: bytes) -> bytes:
    """RFC 6962: a leaf is hashed with a zero byte before it, so that it cannot pass for an inner node."""
    return hashlib.sha256(b"\x00" + data).digest()
