"""What happens around decisions and is logged beside them: changes of trust and standing, what people decide."""

from enum import StrEnum


class Event(StrEnum):
    """Every change that leaves a leaf of its own."""

    REGISTERED = "registered"
    TOKEN_ROTATED = "token_rotated"  # noqa: S105 - an event, not a password
    SUSPENDED = "suspended"
    COMPLAINT = "complaint"
    REACTIVATED = "reactivated"
    TRUST_REQUESTED = "trust_requested"
    TRUST_RAISED = "trust_raised"
    TRUST_LOWERED = "trust_lowered"
    TRUST_DEGRADED = "trust_degraded"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    EXECUTED = "executed"
    EXECUTED_UNPERMITTED = "executed_unpermitted"
    """An agent says it has done what it was not allowed to do."""
    HALTED = "halted"
    RESUMED = "resumed"
    ORGANISATION_ADDED = "organisation_added"
    KEY_ADDED = "key_added"
    KEY_REVOKED = "key_revoked"
    TOOL_CHANGED = "tool_changed"
    WEBHOOK_CHANGED = "webhook_changed"
    WEBHOOK_REMOVED = "webhook_removed"
    ERASED = "erased"
    """The key of a subject was destroyed, and with it all content about them."""
    CLAIM_ATTESTED = "claim_attested"
    """An engine's verdict was signed for somebody who asked without an agent."""
    ATTESTATION_REVOKED = "attestation_revoked"
    """What was attested once is not to be relied on any more."""
    SIGNING_KEY_ROTATED = "signing_key_rotated"
    """The node signs with another key from here on."""
