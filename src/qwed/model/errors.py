"""Error codes (Appendix A and additions) with HTTP status, meaning and advice."""

from enum import Enum
from typing import NamedTuple


class _Row(NamedTuple):
    code: str
    http: int
    meaning: str
    final: bool
    """True if the same request can never succeed."""
    check: str
    """Name of the check that refused, if no more specific one is known."""
    advice: str
    """Default advice; an answer with more specific advice replaces it (ruling 4.11)."""


class ErrorCode(Enum):
    """Table of error codes. A refusal inside a decision has status 200: the decision is the answer."""

    # fmt: off
    AGENT_NOT_REGISTERED = _Row("QWED-AGENT-001", 404, "agent not registered", True, "agent_registered",
        "register the agent with POST /agents/register, or check the id in the path")
    INVALID_AGENT_TOKEN = _Row("QWED-AGENT-002", 401, "invalid agent token", True, "credential_valid",
        "send the token this agent was registered with; an owner or approver can rotate a lost one")
    AGENT_SUSPENDED = _Row("QWED-AGENT-003", 403, "agent suspended", False, "agent_active",
        "an owner or approver can reactivate the agent")
    AGENT_RETIRED = _Row("QWED-AGENT-003", 403, "agent retired", True, "agent_active",
        "register another agent; a retired one cannot be used again")
    TOOL_NOT_ALLOWED = _Row("QWED-AGENT-004", 200, "tool or engine not allowed", True, "tool_allowed",
        "use a tool and an engine that this agent is allowed to use")
    VERIFICATION_FAILED = _Row("QWED-AGENT-005", 200, "verification failed", True, "verification_passed",
        "change what the failed checks name and send the step again")
    LEASE_EXPIRED = _Row("QWED-AGENT-005", 200,
        "the decision took longer than the step was held", False, "step_still_held",
        "send the step again")
    MESSAGE_BLOCKED = _Row("QWED-AGENT-005", 200,
        "the message may not pass between these agents", True, "not_blocked",
        "ask an owner, whose lists `qwed a2a lists` shows")
    INTERNAL = _Row("QWED-AGENT-005", 200, "the decision could not be made", False, "decision_made",
        "send the step again; if it happens twice, the server's log says why")
    UNKNOWN_ACTION_TYPE = _Row("QWED-AGENT-ACTION-001", 200, "unknown action type", True, "action_type_known",
        "use a type from `details.known`, and `tool_call` for tools of your own")
    MISSING_CONTEXT = _Row("QWED-AGENT-CTX-001", 400,
        "missing required action context (conversation_id and step_number)", True, "context_given",
        'send `context` with both, such as {"conversation_id": "c1", "step_number": 1}')
    INVALID_STEP = _Row("QWED-AGENT-CTX-002", 400,
        "invalid step_number (must be an integer >= 1)", True, "step_number_valid",
        "count the steps of a conversation 1, 2, 3")
    STATE_INCOMPLETE = _Row("QWED-AGENT-STATE-001", 400,
        "pre_action_state_hash and state_source must be given together", True, "state_complete",
        "send both, or neither where the server does not ask for them")
    STATE_HASH_INVALID = _Row("QWED-AGENT-STATE-002", 400,
        "pre_action_state_hash must be 64 lowercase hex characters", True, "state_hash_valid",
        "send the SHA-256 of the state in hex")
    STATE_SOURCE_UNKNOWN = _Row("QWED-AGENT-STATE-003", 400, "unknown state_source", True, "state_source_known",
        "use file_tree, db_snapshot, conversation_digest, git_tree or custom")
    NOT_DETERMINISTIC = _Row("QWED-AGENT-STATE-004", 400,
        "action parameters are not deterministic JSON values", True, "parameters_deterministic",
        "send strings, finite numbers, booleans, nulls, lists and objects")
    STEP_LIMIT = _Row("QWED-AGENT-LOOP-001", 200, "conversation step limit exceeded", True, "within_step_limit",
        "start a new conversation_id")
    REPLAY = _Row("QWED-AGENT-LOOP-002", 200, "replay or out-of-order action step detected", True, "step_not_replayed",
        "use a step_number greater than any committed one, or an Idempotency-Key to repeat a request")
    REPETITION = _Row("QWED-AGENT-LOOP-003", 200, "repetitive action loop detected", True, "no_repetition",
        "send a different action at the same step_number")
    NO_PROGRESS = _Row("QWED-AGENT-LOOP-004", 200, "no-progress doom loop detected", True, "progress_made",
        "send a different action, or the same one once the state has changed")
    COST_EXCEEDED = _Row("QWED-AGENT-BUDGET-001", 429, "daily cost exceeded", False, "within_budget",
        "retry the same step after `reset_at`, or lower the cost of the action")
    RATE_EXCEEDED = _Row("QWED-AGENT-BUDGET-002", 429, "rate exceeded", False, "within_budget",
        "retry the same step after `reset_at`")
    TOKENS_EXCEEDED = _Row("QWED-AGENT-BUDGET-003", 429, "token limit exceeded", False, "within_budget",
        "retry the same step after `reset_at`, or use fewer tokens")
    INSUFFICIENT_TRUST = _Row("QWED-AGENT-TRUST-001", 200, "insufficient trust level", True, "trust_level_sufficient",
        "ask a person to do it, or request a higher trust level for the agent")
    NEEDS_APPROVAL = _Row("QWED-AGENT-TRUST-002", 200, "action requires approval", False, "approval_given",
        "wait for the decision on `approval_id`, which an owner or approver makes")
    APPROVALS_FULL = _Row("QWED-AGENT-TRUST-002", 200,
        "too many actions of this agent wait for a person", False, "approvals_left",
        "wait until a person has decided about some of them")

    POLICY_DENIED = _Row("QWED-AGENT-POLICY-001", 200, "denied by a policy", True, "policies_allow",
        "do what the policy in `details` allows, or ask an owner to change it")
    POLICY_FAILED = _Row("QWED-AGENT-POLICY-002", 200, "a policy could not be evaluated", True, "policies_evaluated",
        "an owner corrects the rule in `details`; `qwed policy test` shows what it does")

    MALFORMED = _Row("QWED-REQ-001", 400, "malformed request", True, "request_well_formed",
        "send what GET /openapi.json describes")
    TOO_LARGE = _Row("QWED-REQ-002", 413, "request too large", True, "request_within_size",
        "send less")
    UNKNOWN_TYPE = _Row("QWED-REQ-003", 400, "unknown type", True, "type_known",
        "use a type that GET /openapi.json names")
    MISSING_FIELD = _Row("QWED-REQ-004", 400, "missing field", True, "fields_given",
        "send the field that is named")
    BAD_OPTION = _Row("QWED-REQ-005", 400, "bad option", True, "options_valid",
        "change what the message names; GET /docs shows what each route takes")
    KEY_REUSED = _Row("QWED-REQ-006", 409, "idempotency key already used", True, "idempotency_key_unused",
        "use a new Idempotency-Key for a new request")
    NOT_FOUND = _Row("QWED-REQ-007", 404, "no such resource", True, "resource_exists",
        "check the id and the path; GET /docs shows every route")
    METHOD_NOT_ALLOWED = _Row("QWED-REQ-008", 405, "method not allowed", True, "method_allowed",
        "use a method that GET /openapi.json names")
    CONFLICT = _Row("QWED-REQ-009", 409, "not possible in the current state", True, "state_allows",
        "read the current state and try again")

    POLICY_REFUSED = _Row("QWED-REQ-011", 400, "a policy document is refused", True, "policies_valid",
        "correct what `details.problems` names; `qwed policy check` finds it without a server")
    AMBIGUOUS_NAME = _Row("QWED-REQ-009", 409, "more than one agent has this name", True, "name_unambiguous",
        "use the id of the agent, or rename the others")
    PRECONDITION_FAILED = _Row("QWED-REQ-010", 412, "it was changed since it was read", True, "etag_current",
        "read it again, and send its new ETag in If-Match")

    NO_CREDENTIAL = _Row("QWED-AUTH-001", 401, "no credential", True, "credential_given",
        "send an organisation key in X-API-Key")
    UNKNOWN_CREDENTIAL = _Row("QWED-AUTH-002", 401, "unknown or revoked credential", True, "credential_valid",
        "send a key that is not revoked; an owner makes new ones with POST /keys")
    ROLE_NOT_SUFFICIENT = _Row("QWED-AUTH-003", 403, "role not sufficient", True, "role_sufficient",
        "use a key whose role suffices")
    OWN_REQUEST = _Row("QWED-AUTH-004", 403, "a key cannot approve its own request", True, "separate_approver",
        "approve or reject it with another owner or approver key")

    ENGINE_FAILED = _Row("QWED-ENG-001", 500, "engine failed", False, "engine_answered",
        "try again")
    ENGINE_TIMEOUT = _Row("QWED-ENG-002", 200, "engine timed out", False, "engine_in_time",
        "make the question smaller")
    ENGINE_UNAVAILABLE = _Row("QWED-ENG-003", 503, "every engine worker is busy", False, "engine_available",
        "try again after Retry-After seconds")
    ENGINE_UNSUPPORTED = _Row("QWED-ENG-004", 400, "unknown or unsupported engine", True, "engine_supported",
        "use an engine that is named")

    BLOCKED_CONTENT = _Row("QWED-SEC-001", 200, "blocked content", True, "content_allowed",
        "leave out what is named")
    ENVIRONMENT_COMPROMISED = _Row("QWED-SEC-002", 503, "environment compromised", True, "environment_clean",
        "remove the file that is named, or accept it in QWED_STARTUP_HOOKS_ALLOW")
    TAMPERING_FOUND = _Row("QWED-SEC-003", 500, "tampering found", True, "log_intact",
        "stop using this log and keep a copy of it")

    ATTESTATION_FORMAT = _Row("QWED-ATT-001", 200, "not an attestation", True, "attestation_well_formed",
        "send the attestation as it was issued: three parts of base64url with dots between them")
    ATTESTATION_ISSUER = _Row("QWED-ATT-002", 200, "the issuer is not trusted", True, "issuer_trusted",
        "ask the node that `iss` names, or trust it")
    ATTESTATION_SIGNATURE = _Row("QWED-ATT-003", 200, "the signature does not hold", True, "signature_valid",
        "do not rely on it; fetch the keys of its issuer anew and check once more")
    ATTESTATION_EXPIRED = _Row("QWED-ATT-004", 200, "the attestation has expired", True, "attestation_not_expired",
        "ask for a new decision")
    ATTESTATION_EARLY = _Row("QWED-ATT-005", 200, "the attestation is not valid yet", False, "attestation_begun",
        "compare the clocks, and check again once its time has come")
    ATTESTATION_REVOKED = _Row("QWED-ATT-006", 200, "the attestation was revoked", True, "attestation_not_revoked",
        "do not act on it; ask for a new decision")
    ATTESTATION_CLAIM = _Row("QWED-ATT-007", 200, "a claim is missing", True, "claims_given",
        "send an attestation with every claim; the message names the one that is missing")
    ATTESTATION_CHAIN = _Row("QWED-ATT-008", 200, "the chain is broken", True, "chain_whole",
        "check the whole chain from its first attestation on, in order")

    RATE_LIMITED = _Row("QWED-SYS-001", 429, "rate limit reached", False, "within_rate_limit",
        "try again after Retry-After seconds")
    DEPENDENCY_DOWN = _Row("QWED-SYS-002", 503, "a dependency is down", False, "dependency_up",
        "try again after Retry-After seconds")
    POLICIES_DAMAGED = _Row("QWED-SYS-003", 503, "the organisation's policies cannot be read", False,
        "policies_readable", "an owner puts a readable set in force: PUT /policies, or POST /policies/rollback")
    SERVER_ERROR = _Row("QWED-SYS-004", 500, "the request could not be answered", False, "request_answered",
        "try again; if it happens twice, the server's log says why")
    OVERLOADED = _Row("QWED-SYS-003", 503, "too many requests at once", False, "capacity_left",
        "try again after Retry-After seconds")
    # fmt: on

    @property
    def code(self) -> str:
        """Value of `error.code`."""
        return self.value.code

    @property
    def http(self) -> int:
        """HTTP status of an answer with this code."""
        return self.value.http

    @property
    def meaning(self) -> str:
        """Default message."""
        return self.value.meaning

    @property
    def final(self) -> bool:
        """True if the same request can never succeed."""
        return self.value.final

    @property
    def check(self) -> str:
        """Name of the check behind this code."""
        return self.value.check

    @property
    def advice(self) -> str:
        """Default advice."""
        return self.value.advice
