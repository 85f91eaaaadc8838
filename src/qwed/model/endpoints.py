"""Endpoints of the HTTP API: the method and path of every operation, shared by the server and the SDK."""

from enum import Enum


class Endpoint(Enum):
    """Method and path of an operation; the name in lower case is the id of the operation."""

    REGISTER_AGENT = "POST", "/agents/register"
    LIST_AGENTS = "GET", "/agents"
    GET_AGENT = "GET", "/agents/{agent_id}"
    GET_DID = "GET", "/agents/{agent_id}/did.json"
    VERIFY = "POST", "/agents/{agent_id}/verify"
    VERIFY_TOOL = "POST", "/agents/{agent_id}/tools/{tool}"
    GET_ACTION = "GET", "/agents/{agent_id}/actions/{action_id}"
    REPORT_EXECUTION = "POST", "/agents/{agent_id}/actions/{action_id}/execution"
    GET_ACTIVITY = "GET", "/agents/{agent_id}/activity"
    GET_COMPLIANCE_REPORT = "GET", "/agents/{agent_id}/compliance-report"
    GET_BUDGET = "GET", "/agents/{agent_id}/budget"
    CHANGE_TRUST = "POST", "/agents/{agent_id}/trust"
    SUSPEND = "POST", "/agents/{agent_id}/suspend"
    FILE_COMPLAINT = "POST", "/agents/{agent_id}/complaint"
    REACTIVATE = "POST", "/agents/{agent_id}/reactivate"
    ROTATE_TOKEN = "POST", "/agents/{agent_id}/rotate-token"
    SUSPEND_ALL = "POST", "/suspend-all"
    REACTIVATE_ALL = "POST", "/reactivate-all"
    LIST_APPROVALS = "GET", "/approvals"
    GET_APPROVAL = "GET", "/approvals/{approval_id}"
    APPROVE = "POST", "/approvals/{approval_id}/approve"
    REJECT = "POST", "/approvals/{approval_id}/reject"
    ADD_ORGANISATION = "POST", "/organisations"
    ADD_KEY = "POST", "/keys"
    LIST_KEYS = "GET", "/keys"
    GET_OWN_KEY = "GET", "/keys/self"
    CHANGE_KEY = "PATCH", "/keys/{key_id}"
    REVOKE_KEY = "DELETE", "/keys/{key_id}"
    LIST_CHANGES = "GET", "/changes"
    PUT_WEBHOOK = "PUT", "/webhook"
    GET_WEBHOOK = "GET", "/webhook"
    DELETE_WEBHOOK = "DELETE", "/webhook"
    VERIFY_ANY = "POST", "/verify"
    VERIFY_MATH = "POST", "/verify/math"
    VERIFY_LOGIC = "POST", "/verify/logic"
    VERIFY_CODE = "POST", "/verify/code"
    VERIFY_SQL = "POST", "/verify/sql"
    VERIFY_FACT = "POST", "/verify/fact"
    VERIFY_STATS = "POST", "/verify/stats"
    VERIFY_IMAGE = "POST", "/verify/image"
    VERIFY_CONSENSUS = "POST", "/verify/consensus"
    VERIFY_BATCH = "POST", "/verify/batch"
    GET_BATCH = "GET", "/verify/batch/{job_id}"
    LIST_TOOLS = "GET", "/tools"
    PUT_TOOL = "PUT", "/tools/{name}"
    INTERCEPT = "POST", "/a2a/intercept"
    A2A_HEALTH = "GET", "/a2a/health"
    A2A_METRICS = "GET", "/a2a/metrics"
    A2A_LISTS = "GET", "/a2a/lists"
    BLOCK_AGENT = "PUT", "/a2a/blocks"
    UNBLOCK_AGENT = "DELETE", "/a2a/blocks"
    BLOCK_PAIR = "PUT", "/a2a/pairs"
    UNBLOCK_PAIR = "DELETE", "/a2a/pairs"
    TRUST_AGENT = "PUT", "/a2a/trusted"
    REVOKE_AGENT = "DELETE", "/a2a/trusted"
    AUDIT_HEAD = "GET", "/audit/head"
    AUDIT_ENTRIES = "GET", "/audit/entries"
    AUDIT_INCLUSION = "GET", "/audit/proof/inclusion"
    AUDIT_CONSISTENCY = "GET", "/audit/proof/consistency"
    ERASE_SUBJECT = "POST", "/audit/erase"
    EVENTS = "GET", "/events"
    VERIFY_ATTESTATION = "POST", "/attestation/verify"
    GET_ATTESTATION = "GET", "/attestation/{attestation_id}"
    REVOKE_ATTESTATION = "POST", "/attestation/{attestation_id}/revoke"
    ROTATE_SIGNING_KEY = "POST", "/signing-key/rotate"
    JWKS = "GET", "/.well-known/jwks.json"
    HEALTH = "GET", "/health"
    READY = "GET", "/ready"
    METRICS = "GET", "/metrics"
    OPENAPI = "GET", "/openapi.json"
    DOCS = "GET", "/docs"

    @property
    def operation_id(self) -> str:
        """Id of the operation in the OpenAPI document."""
        return self.name.lower()

    @property
    def method(self) -> str:
        """HTTP method."""
        return self.value[0]

    @property
    def path(self) -> str:
        """Path with its parameters in braces."""
        return self.value[1]
