"""Leaf of one decision or one change in the log (spec 7.1).

Canonical JSON without content and without a plain hash of content, which a guess could be compared with: ids, closed
sets, and a commitment that reveals nothing once the key of its subject is destroyed.

A Struct whose fields are in alphabetical order and hold no floats encodes directly to RFC 8785 canonical JSON.
"""

import msgspec

VERSION = 2


class Leaf(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Permanent record of one decision, or of one change (then `event` names it)."""

    about: str | None = None
    """Object of a change: an earlier activity, a key, a tool, an organisation."""
    action_hash: str | None = None
    """Version 1 only, like `conversation_id`, `result_hash` and `sub`: they are part of the content now."""
    action_type: str | None = None
    activity_id: str
    agent_id: str | None = None
    attestation_id: str | None = None
    by: str
    commitment: str | None = None
    """HMAC over the content."""
    conversation_id: str | None = None
    cost_micros: int = 0
    decision: str | None = None
    engine: str | None = None
    error: str | None = None
    event: str | None = None
    fields: tuple[str, ...] = ()
    """Names of the fields that an edit changed."""
    latency_us: int = 0
    level_after: int | None = None
    level_before: int | None = None
    policies: tuple[str, ...] = ()
    """Policies that a change of the policy set has added, changed or removed."""
    policy: str | None = None
    """Policy whose rule decided."""
    policy_hash: str | None = None
    policy_rule: str | None = None
    """Rule that decided."""
    policy_set: str | None = None
    """Digest of the policy set that a change puts in force."""
    policy_version: int | None = None
    """Version of the policy set under which it was decided, or that a change puts in force."""
    repeats: int = 0
    """Further messages of the same pair that were refused by the rate limit without a leaf of their own."""
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


encode = msgspec.json.Encoder().encode
"""Return the canonical bytes of a leaf."""
_decoder = msgspec.json.Decoder(Leaf)


def decode(data: bytes | str) -> Leaf:
    """Parse the stored bytes of a leaf."""
    return _decoder.decode(data)
