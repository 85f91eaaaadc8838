"""What requests look like, for the API document; the kernel reads them field by field and refuses by name."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from qwed.engines.table import ENGINE_NAMES
from qwed.kernel.answer import Problem
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL, Tool
from qwed.kernel.views.agents import View
from qwed.kernel.views.record import ActivityView
from qwed.reports.data import ReportData
from qwed.words import EffectKind
from qwed.words.tool_name import ALL_OF_SERVER

Amount = (
    Annotated[float, Meta(ge=0, le=10**9, description="US dollars, at most six decimals")]
    | Annotated[str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,6})?$", description="the same as text")]
)
Count = Annotated[int, Meta(ge=0, le=10**12)]
Level = Literal["untrusted", "supervised", "autonomous", "trusted"] | Annotated[int, Meta(ge=0, le=3)]
EngineName = Annotated[str, Meta(extra_json_schema={"enum": [*ENGINE_NAMES]})]
ActionType = Annotated[str, Meta(extra_json_schema={"enum": [*ACTION_TYPES, TOOL_CALL]})] | UnsetType
Given = Annotated[str, Meta(min_length=1)] | UnsetType
_TEXT = r"^[^\u0000]*$"
_UNSEEN = (
    r"\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_BLANK = r"\u115f\u1160\u2800\u3164\uffa0"
_READABLE = rf"^[^{_UNSEEN}]*[^\s{_BLANK}{_UNSEEN}][^{_UNSEEN}]*$"
_PLAIN = rf"^[^{_UNSEEN}]*$"
Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=_READABLE)]
Subject = Annotated[str, Meta(min_length=1, max_length=256, description="whom content is about")]
Entry = Annotated[str, Meta(min_length=1, max_length=256, pattern=_TEXT)]
Entries = Annotated[list[Entry], Meta(max_length=1000)]
ToolEntry = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=r"^([^\u0000*]+|mcp__[A-Za-z0-9.-]+(_[A-Za-z0-9.-]+)*__\*)$",
        description=f"the name of a tool, or `{ALL_OF_SERVER}` for all tools of an MCP server",
    ),
]
ToolEntries = Annotated[list[ToolEntry], Meta(max_length=1000)]


class Shape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of every request shape."""


class CostShape(Shape):
    """What the action itself costs; an agent can state more than the engine's price, never less."""

    usd: Amount = 0
    tokens: Count = 0


Effects = Annotated[
    list[EffectKind], Meta(description="what the asker says it does: added to what is found out, never in its place")
]


class ActionShape(Shape):
    """Spec 4.1, `action`. `type` may be spelled `action_type`; one of the two is needed."""

    type: ActionType = UNSET
    action_type: ActionType = UNSET
    query: str | None = None
    code: str | None = None
    target: str | None = None
    parameters: dict[str, Any] | None = None
    tool: str | None = None
    cost: CostShape | None = None
    effects: Effects | None = None


class ContextShape(Shape):
    """Spec 9.1."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)]
    step_number: Annotated[int, Meta(ge=1)]
    user_intent: str | None = None
    pre_action_state_hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    state_source: Literal["file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"] | None = None
    subject: Subject | None = None


class OptionsShape(Shape):
    """Spec 4.1, `options`."""

    require_attestation: bool = False
    risk_threshold: Literal["low", "medium", "high", "critical"] = "critical"
    chain_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None


class VerifyShape(Shape):
    """Spec 4.1."""

    action: ActionShape
    context: ContextShape
    options: OptionsShape | None = None
    agent_id: str | None = None
    agent_token: str | None = None


class ToolCallShape(Shape):
    """Spec 5.1, `tool_call`."""

    tool_name: Given = UNSET
    parameters: dict[str, Any] | None = None


class VerifyToolShape(Shape):
    """Spec 5.1, with the context that spec 9.1 requires."""

    context: ContextShape
    tool_call: ToolCallShape | None = None
    parameters: dict[str, Any] | None = None
    effects: Effects | None = None
    justification: str | None = None
    options: OptionsShape | None = None
    agent_id: str | None = None
    agent_token: str | None = None


class BudgetShape(Shape):
    """What the agent may spend; absent is no limit."""

    max_daily_cost_usd: Amount | None = None
    max_per_request_usd: Amount | None = None
    max_requests_per_hour: Count | None = None
    max_requests_per_day: Count | None = None
    max_tokens_per_request: Count | None = None
    max_tokens_per_day: Count | None = None
    max_tool_calls_per_hour: Count | None = None
    max_high_risk_calls_per_day: Count | None = None


class PermissionsShape(Shape):
    """What the agent may use; absent is no limit of that kind, an empty list is nothing."""

    allowed_engines: Annotated[list[EngineName], Meta(max_length=1000)] | None = None
    allowed_tools: ToolEntries | None = None
    blocked_tools: ToolEntries = []
    max_rows: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    allowed_tables: Entries | None = None
    allowed_columns: Entries | None = None
    sensitive_columns: Entries | None = None
    schema_ddl: Annotated[str, Meta(max_length=100_000)] | None = None
    allowed_paths: Entries | None = None
    allowed_domains: Entries | None = None


class RegisterShape(Shape):
    """The guide's flat body; spec 3.1's, with the profile under `agent`, is read as well."""

    name: Name
    principal_id: Name
    type: Literal["supervised", "autonomous", "trusted"] | None = "supervised"
    description: Annotated[str, Meta(max_length=4096, pattern=_PLAIN)] | None = None
    framework: Annotated[str, Meta(max_length=256, pattern=_PLAIN)] | None = None
    model: Annotated[str, Meta(max_length=256, pattern=_PLAIN)] | None = None
    permissions: PermissionsShape | None = None
    budget: BudgetShape | None = None
    trust_level: Level | None = None


Said = Annotated[str, Meta(min_length=1, max_length=4096, pattern=_READABLE)]


class ErasureShape(Shape):
    """DESIGN 7: whom content is about, as `context.subject` or a `principal_id` named them."""

    subject: Subject


class ReasonShape(Shape):
    """Why."""

    reason: Said


class ResolveShape(Shape):
    """Why, and in whose name; the record names the key in any case."""

    reason: Said
    approver: Said | None = None


class TrustShape(Shape):
    """Spec 8.2. A reduction takes effect at once and needs an owner or approver key."""

    to_level: Annotated[int, Meta(ge=0, le=3)]
    request: Literal["trust_elevation", "trust_reduction"] = "trust_elevation"
    from_level: Annotated[int, Meta(ge=0, le=3)] | None = None
    agent_id: str | None = None
    justification: Annotated[str, Meta(max_length=4096, pattern=_PLAIN)] | None = None
    evidence: Annotated[dict[str, Any], Meta(description="not believed: it is computed from the log")] | None = None


class ExecutionShape(Shape):
    """Spec 7.1, `execution`. Of `result` only the hash is kept."""

    success: bool
    result: Any = None
    result_hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")] | None = None
    attestation: str | dict[str, Any] | None = None


class OrganisationShape(Shape):
    """A new organisation."""

    name: Name


class KeyShape(Shape):
    """A new key of the organisation."""

    name: Name
    role: Literal["owner", "approver", "member", "metrics"]


class WebhookShape(Shape):
    """Where to tell, and of what; without `events` of everything."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    events: Annotated[list[Literal["pending", "failed", "degraded", "suspended"]], Meta(min_length=1)] | None = None


class ToolShape(Shape):
    """A row of the registry; the name is in the path. A built-in tool keeps what is not said anew."""

    risk_level: Literal["low", "medium", "high", "critical"]
    name: Given = UNSET
    requires_verification: bool = True
    requires_approval: bool = False
    verification_engine: Literal["sql", "code", "math", "logic", "path", "shell"] | None = None
    sandbox_required: bool = False
    dangerous: bool = False
    effect: EffectKind | None = None


class ProblemShape(View, frozen=True, kw_only=True):
    """An error outside a decision."""

    error: Problem


class ReportedActivity(ActivityView, frozen=True, kw_only=True):
    """An activity with its leaf, the text whose hash stands in the tree."""

    leaf: str


class ReportShape(ReportData, frozen=True, kw_only=True):
    """Spec 7.3, as JSON."""

    activities: list[ReportedActivity]
    """Newest first."""


class ToolsShape(View, frozen=True, kw_only=True):
    """Spec 5.3."""

    tools: list[Tool]


class HealthShape(View, frozen=True, kw_only=True):
    """The process answers, and which version it is."""

    status: Literal["ok"]
    version: str


class ReadyShape(View, frozen=True, kw_only=True):
    """Which parts are there."""

    ready: bool
    parts: dict[str, str]


class JwtShape(Shape):
    """A token, as it was issued."""

    jwt: str


class JwksShape(View, frozen=True, kw_only=True):
    """RFC 7517."""

    keys: list[dict[str, str]]
