"""The words of the API document that no type carries: tags, parameters, headers, and limits the types cannot say."""

from typing import Any, NamedTuple

from qwed.api.agents import LONGEST_WAIT
from qwed.kernel.agents.activity import KINDS
from qwed.kernel.people.approvals import STATES
from qwed.kernel.people.events import TYPES
from qwed.kernel.report.gathering import FORMATS
from qwed.words import Decision, ErrorCode

Schema = dict[str, Any]


class Described(NamedTuple):
    """A parameter: what it takes and what it is for."""

    schema: Schema
    description: str


class Tag(NamedTuple):
    """A group of routes, the first segments of their paths, and the sentence over it."""

    name: str
    segments: tuple[str, ...]
    description: str


TAGS: tuple[Tag, ...] = (
    Tag("agents", ("agents",), "Register agents, ask whether an action may happen, and look back at what was decided."),
    Tag("approvals", ("approvals",), "What waits for a person, and the person's answer."),
    Tag("tools", ("tools",), "The tool registry: which tools are known and how risky they are."),
    Tag(
        "organisation",
        ("organisations", "keys", "webhook", "suspend-all", "reactivate-all", "changes"),
        "The organisation itself: its keys, its webhook, its kill switch and what was changed in it.",
    ),
    Tag("verify", ("verify",), "The engines by themselves: claims, code and queries checked without an agent."),
    Tag("audit", ("audit", "attestation"), "The log and its proofs: what was decided, in an order nobody can change."),
    Tag("a2a", ("a2a",), "Messages between agents, judged on their way."),
    Tag("events", ("events",), "Decisions as they are made."),
    Tag(
        "node",
        (".well-known", "health", "ready", "signing-key", "metrics", "openapi.json", "docs"),
        "The server itself: whether it answers, which keys it signs with, and this document.",
    ),
)


def tag_of(path: str) -> str:
    """The tag of a route; a segment that no tag names is one of its own."""
    segment = path.split("/")[1]
    return next((tag.name for tag in TAGS if segment in tag.segments), segment)


_TEXT: Schema = {"type": "string", "minLength": 1}


def _id(prefix: str) -> Schema:
    return {"type": "string", "pattern": f"^{prefix}_[0-9a-f]+$"}


_MOMENT: Schema = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}

_PLACE: Schema = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}

PARAMETERS: dict[str, Described] = {
    "agent_id": Described(_id("agent"), "The agent, as its registration named it."),
    "action_id": Described(_id("act"), "The action, as the decision named it."),
    "approval_id": Described(_id("apr"), "The approval, as the PENDING decision named it."),
    "attestation_id": Described(_id("att"), "The attestation: `jti` of its token, `attestation_id` of its activity."),
    "job_id": Described(_id("job"), "The job, as the answer to its batch named it."),
    "key_id": Described(_id("key"), "The key, as the list of keys names it."),
    "tool": Described({**_TEXT, "maxLength": 128}, "The name of the tool."),
    "name": Described({**_TEXT, "maxLength": 128}, "The name of the tool: plain and in lower case."),
    "limit": Described(
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "How many to answer with at most."
    ),
    "cursor": Described({"type": "string"}, "The `next_cursor` of the page before; absent for the first."),
    "from": Described(_MOMENT, "Only what happened at this moment or later; a bare date is the start of that UTC day."),
    "to": Described(_MOMENT, "Only what happened before this moment; a bare date is the start of that UTC day."),
    "decision": Described({"enum": [*Decision]}, "Only what was decided so."),
    "kind": Described({"enum": [*KINDS], "default": "decision"}, "Decisions, or what happened around them, or both."),
    "format": Described({"enum": [*FORMATS], "default": "pdf"}, "What the report is written as."),
    "state": Described({"enum": [*STATES]}, "Only approvals that stand so."),
    "wait": Described(
        {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
        "How many seconds to wait for a person while the action is PENDING.",
    ),
    "from_index": Described({**_PLACE, "default": 0}, "The first leaf; the `next_index` of the page before."),
    "index": Described(_PLACE, "The leaf, by its place in the log; or give `activity_id`."),
    "activity_id": Described({"type": "string"}, "The leaf, by its activity; or give `index`."),
    "size": Described(_PLACE, "How many leaves the log had; absent for the newest head."),
    "type": Described(
        {"type": "string", "pattern": f"^({'|'.join(TYPES)})(,({'|'.join(TYPES)}))*$"},
        f"Only events of these types, with commas between them: {', '.join(TYPES)}.",
    ),
}

_PLACE_IN_THE_LOG = Described({"type": "string", "pattern": "^[0-9]{1,18}$"}, PARAMETERS["cursor"].description)
OWN_PARAMETERS: dict[tuple[str, str], Described] = {
    ("/agents/{agent_id}/activity", "cursor"): _PLACE_IN_THE_LOG,
    ("/changes", "cursor"): _PLACE_IN_THE_LOG,
    ("/approvals", "agent_id"): Described({"type": "string"}, "Only what this agent asked."),
    ("/audit/proof/consistency", "from"): Described(_PLACE, "The size of the log as you know it. Required."),
    ("/audit/proof/consistency", "to"): Described(_PLACE, "The size it is compared with; absent for the newest head."),
}
"""Where a route takes a parameter more narrowly than the others do."""

IDEMPOTENCY_KEY = Described(
    {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
    "The same key with the same body gets the stored answer: no second charge, no replay. With another body it is 409.",
)

LAST_EVENT_ID = Described(
    {"type": "string", "pattern": "^(-1|[0-9]{1,18})$"},
    "The id of the event heard last, after which the stream goes on; -1 for the beginning. Absent, it begins now.",
)

SENDER = Described(
    {"type": "string", "pattern": "^[!-~]([ -~]{0,254}[!-~])?$"},
    "With a token: the agent whose it is, the `sender_agent_id` of the body. Bodies over 1 MiB are read only from "
    "whom is known by then.",
)

HEADER_PARAMETERS: dict[str, dict[str, Described]] = {
    "/events": {"Last-Event-ID": LAST_EVENT_ID},
    "/a2a/intercept": {"QWED-Agent-Id": SENDER},
}
"""Headers that a route takes and others do not."""

SECURITY_SCHEMES: dict[str, Schema] = {
    "organisation": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "A key of the organisation, `qwed_live_...`, with the role owner, approver, member or metrics.",
    },
    "agent": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of one agent, `qwed_agent_...`; good for that agent alone.",
    },
}

HEADERS: dict[str, Schema] = {
    "Retry-After": {"description": "Seconds after which the request may pass.", "schema": {"type": "integer"}},
    "X-RateLimit-Limit": {
        "description": "Requests the credential that was shown may make a minute.",
        "schema": {"type": "integer"},
    },
    "X-RateLimit-Remaining": {"description": "How many of them are left.", "schema": {"type": "integer"}},
    "X-RateLimit-Reset": {
        "description": "Seconds until all of them are there again.",
        "schema": {"type": "integer"},
    },
}
OWN_HEADERS: dict[str, dict[str, Schema]] = {
    "/agents/{agent_id}/compliance-report": {
        "QWED-Report-Id": {"description": "The `report_id`, made from the data.", "schema": {"type": "string"}},
        "QWED-Report-Activities": {
            "description": "How many activities the report holds.",
            "schema": {"type": "integer"},
        },
    }
}
"""What one route says in headers besides, where it succeeds."""
RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
RETRY_STATUSES = frozenset({429, 503})

ANYWHERE: tuple[ErrorCode, ...] = (
    ErrorCode.MALFORMED,
    ErrorCode.BAD_OPTION,
    ErrorCode.TOO_LARGE,
    ErrorCode.RATE_LIMITED,
    ErrorCode.DEPENDENCY_DOWN,
    ErrorCode.OVERLOADED,
)
"""What any route can answer: the caller is counted, the bytes are read and the query is checked before all else."""

ON_A_PATH: tuple[ErrorCode, ...] = (ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED)
"""An empty path parameter, or one with a slash in it, leads to another route or to none."""

SAME_SHAPE: dict[tuple[str, int], str] = {
    ("/ready", 503): "a part is still starting",
    ("/agents/{agent_id}/trust", 200): "Less trust is set at once",
}
"""What a further status says that has the body of success."""

REFINED: dict[str, Schema] = {
    "ActionShape": {"anyOf": [{"required": ["type"]}, {"required": ["action_type"]}]},
    "ContextShape": {
        "dependentRequired": {
            "pre_action_state_hash": ["state_source"],
            "state_source": ["pre_action_state_hash"],
        }
    },
    "MetadataShape": {"dependentRequired": {"step_number": ["conversation_id"]}},
}
"""What holds between the fields of a type."""
