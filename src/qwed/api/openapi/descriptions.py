"""Descriptions of the OpenAPI document that the types do not contain: tags, parameters, headers, constraints."""

from typing import Any, NamedTuple

from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL
from qwed.model import ErrorCode

Schema = dict[str, Any]


class ParameterDoc(NamedTuple):
    """Schema and description of a parameter."""

    schema: Schema
    description: str


class Tag(NamedTuple):
    """Group of routes: the first segments of their paths and a description."""

    name: str
    segments: tuple[str, ...]
    description: str


TAGS: tuple[Tag, ...] = (
    Tag("agents", ("agents",), "Register agents, verify their actions and read their activity."),
    Tag("approvals", ("approvals",), "Approve or reject pending actions."),
    Tag("tools", ("tools",), "Register tools and their risk levels."),
    Tag("policies", ("policies",), "Put an organisation's own rules in force, and read their versions."),
    Tag(
        "organisation",
        ("organisations", "keys", "webhook", "suspend-all", "reactivate-all", "changes"),
        "Manage keys, the webhook and the kill switch of an organisation, and list its changes.",
    ),
    Tag("verify", ("verify",), "Verify claims, code and queries without an agent."),
    Tag("audit", ("audit", "attestation"), "Read the audit log, its proofs and attestations."),
    Tag("a2a", ("a2a",), "Verify messages between agents."),
    Tag("events", ("events",), "Stream decisions and changes."),
    Tag(
        "node",
        (".well-known", "health", "ready", "signing-key", "metrics", "openapi.json", "docs"),
        "Check the health of the server, and read its metrics, signing keys and API document.",
    ),
)


def tag_of(path: str) -> str:
    """Return the tag of a route; an unlisted segment is its own tag."""
    segment = path.split("/")[1]
    return next((tag.name for tag in TAGS if segment in tag.segments), segment)


_TEXT: Schema = {"type": "string", "minLength": 1}


def _id(prefix: str) -> Schema:
    return {"type": "string", "pattern": f"^{prefix}_[0-9a-f]+$"}


PATH_PARAMETERS: dict[str, ParameterDoc] = {
    "agent_id": ParameterDoc({**_TEXT, "maxLength": 256}, "Id of the agent, from its registration, or its name."),
    "action_id": ParameterDoc(_id("act"), "Id of the action, from its decision."),
    "approval_id": ParameterDoc(_id("apr"), "Id of the approval, from the PENDING decision."),
    "attestation_id": ParameterDoc(
        _id("att"), "Id of the attestation: `jti` of its token, `attestation_id` of its activity."
    ),
    "job_id": ParameterDoc(_id("job"), "Id of the job, from the response to the batch."),
    "key_id": ParameterDoc(_id("key"), "Id of the key, from the list of keys."),
    "policy_id": ParameterDoc(_TEXT, "Name of the policy, as its text states it."),
    "tool": ParameterDoc({**_TEXT, "maxLength": 128}, "Name of the tool."),
    "name": ParameterDoc({**_TEXT, "maxLength": 128}, "Name of the tool, of which the case does not matter."),
}

IDEMPOTENCY_KEY = ParameterDoc(
    {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
    "A retry with the same key and body returns the stored answer and is not charged again. Another body returns 409.",
)

LAST_EVENT_ID = ParameterDoc(
    {"type": "string", "pattern": "^(-1|[0-9]{1,18})$"},
    "Id of the last event received; the stream resumes after it. -1 starts at the beginning. Defaults to now.",
)

SENDER = ParameterDoc(
    {"type": "string", "pattern": "^[!-~]([ -~]{0,254}[!-~])?$"},
    "With a token: the agent that owns it, the `sender_agent_id` of the body. Bodies over 1 MiB require it, because "
    "only authenticated callers may send them.",
)

IF_MATCH: dict[str, ParameterDoc] = {
    "agents": ParameterDoc(
        # No comma, which separates ETags.
        {"type": "string", "pattern": r'^(\*|"[!#-+\--~]*")$'},
        "ETag of the agent as it was read. If it has changed since, the response is 412 and names what has changed. "
        "Without it, the present state is changed.",
    ),
    "policies": ParameterDoc(
        {"type": "string"},
        'ETag that the caller has read, such as `"3"`: the request is refused with 412 if it has changed since.',
    ),
}
"""The header If-Match, by the tag of the route."""

HEADER_PARAMETERS: dict[str, dict[str, ParameterDoc]] = {
    "/events": {"Last-Event-ID": LAST_EVENT_ID},
    "/a2a/intercept": {"QWED-Agent-Id": SENDER},
}
"""Request headers of single routes."""

SECURITY_SCHEMES: dict[str, Schema] = {
    "organisation": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "Organisation key, `qwed_live_...`, with the role owner, approver, member or metrics.",
    },
    "agent": {
        "type": "http",
        "scheme": "bearer",
        "description": "Agent token, `qwed_agent_...`; valid for that agent only.",
    },
}

HEADERS: dict[str, Schema] = {
    "ETag": {"description": "Version of the agent, for If-Match.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds after which to retry.", "schema": {"type": "integer"}},
    "X-RateLimit-Limit": {
        "description": "Requests per minute that the credential may make.",
        "schema": {"type": "integer"},
    },
    "X-RateLimit-Remaining": {"description": "Requests that remain.", "schema": {"type": "integer"}},
    "X-RateLimit-Reset": {
        "description": "Seconds until the limit is available again.",
        "schema": {"type": "integer"},
    },
}
ROUTE_HEADERS: dict[str, dict[str, Schema]] = {
    "/agents/{agent_id}/compliance-report": {
        "QWED-Report-Id": {"description": "The `report_id`, derived from the data.", "schema": {"type": "string"}},
        "QWED-Report-Activities": {
            "description": "Number of activities in the report.",
            "schema": {"type": "integer"},
        },
    }
}
"""Response headers of single routes on success."""
RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
RETRY_STATUSES = frozenset({429, 503})

COMMON_ERRORS: tuple[ErrorCode, ...] = (
    ErrorCode.MALFORMED,
    ErrorCode.BAD_OPTION,
    ErrorCode.TOO_LARGE,
    ErrorCode.RATE_LIMITED,
    ErrorCode.DEPENDENCY_DOWN,
    ErrorCode.OVERLOADED,
)
"""Errors of every route: rate limit, body size and query are checked before the handler runs."""

PATH_ERRORS: tuple[ErrorCode, ...] = (ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED)
"""Errors of routes with path parameters: an empty one, or one with a slash, matches another route or none."""

EXTRA_STATUSES: dict[tuple[str, int], str] = {
    ("/ready", 503): "a component is not ready",
    ("/agents/{agent_id}/trust", 200): "The trust level was reduced or restored",
}
"""Descriptions of further statuses with the body of the success response."""

_ACTION_TYPE: Schema = {"enum": [*ACTION_TYPES, TOOL_CALL]}
_WORDS: Schema = {"type": "string", "pattern": r"\S"}
_ANY_PARAMS: Schema = {
    "properties": {"params": {"anyOf": [{"$ref": "#/components/schemas/AnyParams"}, {"type": "null"}]}}
}
SCHEMA_CONSTRAINTS: dict[str, Schema] = {
    "BatchItem": _ANY_PARAMS,
    "VerifyAnyRequest": _ANY_PARAMS,
    "ActionRequest": {
        "anyOf": [{"required": ["type"]}, {"required": ["action_type"]}],
        "properties": {"type": _ACTION_TYPE, "action_type": _ACTION_TYPE},
    },
    "Context": {
        "dependentRequired": {
            "pre_action_state_hash": ["state_source"],
            "state_source": ["pre_action_state_hash"],
        }
    },
    "MetadataRequest": {"dependentRequired": {"step_number": ["conversation_id"]}},
    "ToolRequest": {"required": ["risk_level"]},
    "TrustChangeRequest": {
        "anyOf": [
            {"properties": {"request": {"enum": ["trust_elevation", "trust_reduction"]}}},
            {"required": ["reason"], "properties": {"reason": _WORDS}},
            {"required": ["justification"], "properties": {"justification": _WORDS}},
        ]
    },
}
"""Constraints that the types do not contain: those between fields, and names that are defined above their module."""
