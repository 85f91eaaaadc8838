"""Appendix A and its additions: every code, the HTTP status it travels with, and what it means."""

from enum import Enum
from typing import NamedTuple


class _Row(NamedTuple):
    code: str
    http: int
    meaning: str
    final: bool
    """Whether sending the same request again can never help."""
    check: str
    """The check that refused, where nothing more exact is known."""


class ErrorCode(Enum):
    """One row per code. A refusal inside a decision is 200: the decision is the answer."""

    AGENT_NOT_REGISTERED = _Row("QWED-AGENT-001", 404, "agent not registered", True, "agent_registered")
    INVALID_AGENT_TOKEN = _Row("QWED-AGENT-002", 401, "invalid agent token", True, "credential_valid")
    AGENT_SUSPENDED = _Row("QWED-AGENT-003", 403, "agent suspended", False, "agent_active")
    TOOL_NOT_ALLOWED = _Row("QWED-AGENT-004", 200, "tool or engine not allowed", True, "tool_allowed")
    VERIFICATION_FAILED = _Row("QWED-AGENT-005", 200, "verification failed", True, "verification_passed")
    LEASE_EXPIRED = _Row(
        "QWED-AGENT-005", 200, "the decision took longer than the step was held", False, "step_still_held"
    )
    AGENT_CHANGED = _Row(
        "QWED-AGENT-005", 200, "the agent was changed while the decision was made", False, "agent_unchanged"
    )
    INTERNAL = _Row("QWED-AGENT-005", 200, "the decision could not be made", False, "decision_made")
    UNKNOWN_ACTION_TYPE = _Row("QWED-AGENT-ACTION-001", 200, "unknown action type", True, "action_type_known")
    MISSING_CONTEXT = _Row(
        "QWED-AGENT-CTX-001",
        400,
        "missing required action context (conversation_id and step_number)",
        True,
        "context_given",
    )
    INVALID_STEP = _Row(
        "QWED-AGENT-CTX-002", 400, "invalid step_number (must be an integer >= 1)", True, "step_number_valid"
    )
    STATE_INCOMPLETE = _Row(
        "QWED-AGENT-STATE-001",
        400,
        "pre_action_state_hash and state_source must be given together",
        True,
        "state_complete",
    )
    STATE_HASH_INVALID = _Row(
        "QWED-AGENT-STATE-002",
        400,
        "pre_action_state_hash must be 64 lowercase hex characters",
        True,
        "state_hash_valid",
    )
    STATE_SOURCE_UNKNOWN = _Row("QWED-AGENT-STATE-003", 400, "unknown state_source", True, "state_source_known")
    NOT_DETERMINISTIC = _Row(
        "QWED-AGENT-STATE-004",
        400,
        "action parameters are not deterministic JSON values",
        True,
        "parameters_deterministic",
    )
    STEP_LIMIT = _Row("QWED-AGENT-LOOP-001", 200, "conversation step limit exceeded", True, "within_step_limit")
    REPLAY = _Row("QWED-AGENT-LOOP-002", 200, "replay or out-of-order action step detected", True, "step_not_replayed")
    REPETITION = _Row("QWED-AGENT-LOOP-003", 200, "repetitive action loop detected", True, "no_repetition")
    NO_PROGRESS = _Row("QWED-AGENT-LOOP-004", 200, "no-progress doom loop detected", True, "progress_made")
    COST_EXCEEDED = _Row("QWED-AGENT-BUDGET-001", 429, "daily cost exceeded", False, "within_budget")
    RATE_EXCEEDED = _Row("QWED-AGENT-BUDGET-002", 429, "rate exceeded", False, "within_budget")
    TOKENS_EXCEEDED = _Row("QWED-AGENT-BUDGET-003", 429, "token limit exceeded", False, "within_budget")
    INSUFFICIENT_TRUST = _Row("QWED-AGENT-TRUST-001", 200, "insufficient trust level", True, "trust_level_sufficient")
    NEEDS_APPROVAL = _Row("QWED-AGENT-TRUST-002", 200, "action requires approval", False, "approval_given")
    APPROVALS_FULL = _Row(
        "QWED-AGENT-TRUST-002", 200, "too many actions of this agent wait for a person", False, "approvals_left"
    )

    MALFORMED = _Row("QWED-REQ-001", 400, "malformed request", True, "request_well_formed")
    TOO_LARGE = _Row("QWED-REQ-002", 413, "request too large", True, "request_within_size")
    UNKNOWN_TYPE = _Row("QWED-REQ-003", 400, "unknown type", True, "type_known")
    MISSING_FIELD = _Row("QWED-REQ-004", 400, "missing field", True, "fields_given")
    BAD_OPTION = _Row("QWED-REQ-005", 400, "bad option", True, "options_valid")
    KEY_REUSED = _Row("QWED-REQ-006", 409, "idempotency key already used", True, "idempotency_key_unused")
    NOT_FOUND = _Row("QWED-REQ-007", 404, "no such resource", True, "resource_exists")
    METHOD_NOT_ALLOWED = _Row("QWED-REQ-008", 405, "method not allowed", True, "method_allowed")
    CONFLICT = _Row("QWED-REQ-009", 409, "not possible as things stand", True, "state_allows")

    NO_CREDENTIAL = _Row("QWED-AUTH-001", 401, "no credential", True, "credential_given")
    UNKNOWN_CREDENTIAL = _Row("QWED-AUTH-002", 401, "unknown or revoked credential", True, "credential_valid")
    ROLE_NOT_SUFFICIENT = _Row("QWED-AUTH-003", 403, "role not sufficient", True, "role_sufficient")
    OWN_REQUEST = _Row("QWED-AUTH-004", 403, "nobody approves their own request", True, "separate_approver")

    ENGINE_FAILED = _Row("QWED-ENG-001", 500, "engine failed", False, "engine_answered")
    ENGINE_TIMEOUT = _Row("QWED-ENG-002", 200, "engine timed out", False, "engine_in_time")
    ENGINE_UNAVAILABLE = _Row("QWED-ENG-003", 503, "every engine worker is busy", False, "engine_available")
    ENGINE_UNSUPPORTED = _Row("QWED-ENG-004", 400, "unknown or unsupported engine", True, "engine_supported")

    BLOCKED_CONTENT = _Row("QWED-SEC-001", 200, "blocked content", True, "content_allowed")
    ENVIRONMENT_COMPROMISED = _Row("QWED-SEC-002", 503, "environment compromised", True, "environment_clean")
    TAMPERING_FOUND = _Row("QWED-SEC-003", 500, "tampering found", True, "log_intact")

    ATTESTATION_FORMAT = _Row("QWED-ATT-001", 200, "not an attestation", True, "attestation_well_formed")
    ATTESTATION_ISSUER = _Row("QWED-ATT-002", 200, "the issuer is not trusted", True, "issuer_trusted")
    ATTESTATION_SIGNATURE = _Row("QWED-ATT-003", 200, "the signature does not hold", True, "signature_valid")
    ATTESTATION_EXPIRED = _Row("QWED-ATT-004", 200, "the attestation has expired", True, "attestation_not_expired")
    ATTESTATION_EARLY = _Row("QWED-ATT-005", 200, "the attestation is not valid yet", False, "attestation_begun")
    ATTESTATION_REVOKED = _Row("QWED-ATT-006", 200, "the attestation was revoked", True, "attestation_not_revoked")
    ATTESTATION_CLAIM = _Row("QWED-ATT-007", 200, "a claim is missing", True, "claims_given")
    ATTESTATION_CHAIN = _Row("QWED-ATT-008", 200, "the chain is broken", True, "chain_whole")

    RATE_LIMITED = _Row("QWED-SYS-001", 429, "rate limit reached", False, "within_rate_limit")
    DEPENDENCY_DOWN = _Row("QWED-SYS-002", 503, "a dependency is down", False, "dependency_up")
    SURPRISE = _Row("QWED-SYS-004", 500, "the request could not be answered", False, "request_answered")
    OVERLOADED = _Row("QWED-SYS-003", 503, "too many requests at once", False, "capacity_left")

    @property
    def code(self) -> str:
        """What travels in `error.code`."""
        return self.value.code

    @property
    def http(self) -> int:
        """The HTTP status of an answer that carries this code."""
        return self.value.http

    @property
    def meaning(self) -> str:
        """What it says when nothing more exact is known."""
        return self.value.meaning

    @property
    def final(self) -> bool:
        """Whether the same request can never pass."""
        return self.value.final

    @property
    def check(self) -> str:
        """The name of the check this code stands for."""
        return self.value.check
