"""Descriptions of the OpenAPI document that the types do not contain: tags, parameters, headers, constraints."""

from typing import Any, NamedTuple

from qwed.api.handlers.agents import MAX_WAIT_SECONDS
from qwed.kernel.admin.approvals import STATES
from qwed.kernel.admin.events import TYPES
from qwed.kernel.agents.activity import KINDS
from qwed.kernel.reports.builder import FORMATS
from qwed.model import Decision, ErrorCode

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


_TIMESTAMP: Schema = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}

_LOG_INDEX: Schema = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}

PARAMETERS: dict[str, ParameterDoc] = {
    "agent_id": ParameterDoc(_id("agent"), "Id of the agent, from its registration."),
    "action_id": ParameterDoc(_id("act"), "Id of the action, from its decision."),
    "approval_id": ParameterDoc(_id("apr"), "Id of the approval, from the PENDING decision."),
    "attestation_id": ParameterDoc(
        _id("att"), "Id of the attestation: `jti` of its token, `attestation_id` of its activity."
    ),
    "job_id": ParameterDoc(_id("job"), "Id of the job, from the response to the batch."),
    "key_id": ParameterDoc(_id("key"), "Id of the key, from the list of keys."),
    "tool": ParameterDoc({**_TEXT, "maxLength": 128}, "Name of the tool."),
    "name": ParameterDoc({**_TEXT, "maxLength": 128}, "Name of the tool, in lower case."),
    "limit": ParameterDoc(
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "Largest number of items to return."
    ),
    "cursor": ParameterDoc({"type": "string"}, "The `next_cursor` of the previous page; omit it for the first page."),
    "from": ParameterDoc(
        _TIMESTAMP, "Start of the period, inclusive; a date without a time is the start of that UTC day."
    ),
    "to": ParameterDoc(_TIMESTAMP, "End of the period, exclusive; a date without a time is the start of that UTC day."),
    "decision": ParameterDoc({"enum": [*Decision]}, "Return only this decision."),
    "kind": ParameterDoc({"enum": [*KINDS], "default": "decision"}, "Decisions, other events, or both."),
    "format": ParameterDoc({"enum": [*FORMATS], "default": "pdf"}, "Format of the report."),
    "state": ParameterDoc({"enum": [*STATES]}, "Return only approvals in this state."),
    "wait": ParameterDoc(
        {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
        "Seconds to wait for the approval of a PENDING action.",
    ),
    "from_index": ParameterDoc(
        {**_LOG_INDEX, "default": 0}, "Index of the first leaf; the `next_index` of the previous page."
    ),
    "index": ParameterDoc(_LOG_INDEX, "Index of the leaf; or send `activity_id`."),
    "activity_id": ParameterDoc({"type": "string"}, "Activity of the leaf; or send `index`."),
    "size": ParameterDoc(_LOG_INDEX, "Size of the log; defaults to the newest head."),
    "type": ParameterDoc(
        {"type": "string", "pattern": f"^({'|'.join(TYPES)})(,({'|'.join(TYPES)}))*$"},
        f"Return only events of these types, separated by commas: {', '.join(TYPES)}.",
    ),
}

_LOG_CURSOR = ParameterDoc({"type": "string", "pattern": "^[0-9]{1,18}$"}, PARAMETERS["cursor"].description)
ROUTE_PARAMETERS: dict[tuple[str, str], ParameterDoc] = {
    ("/agents/{agent_id}/activity", "cursor"): _LOG_CURSOR,
    ("/changes", "cursor"): _LOG_CURSOR,
    ("/approvals", "agent_id"): ParameterDoc({"type": "string"}, "Return only approvals of this agent."),
    ("/audit/proof/consistency", "from"): ParameterDoc(_LOG_INDEX, "Size of the log that you know. Required."),
    ("/audit/proof/consistency", "to"): ParameterDoc(_LOG_INDEX, "Size to compare with; defaults to the newest head."),
}
"""Parameters that one route restricts further than the others."""

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
    ("/agents/{agent_id}/trust", 200): "The trust level was reduced",
}
"""Descriptions of further statuses with the body of the success response."""

SCHEMA_CONSTRAINTS: dict[str, Schema] = {
    "ActionShape": {"anyOf": [{"required": ["type"]}, {"required": ["action_type"]}]},
    "ContextShape": {
        "dependentRequired": {
            "pre_action_state_hash": ["state_source"],
            "state_source": ["pre_action_state_hash"],
        }
    },
    "MetadataShape": {"dependentRequired": {"step_number": ["conversation_id"]}},
}
"""Constraints between the fields of a type."""
