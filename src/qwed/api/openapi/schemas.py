"""Request schemas for the OpenAPI document; the kernel parses requests itself and names the invalid field."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from qwed.engines.registry import ENGINE_NAMES
from qwed.engines.sql_dialect import ALIASES, KNOWN_DIALECTS
from qwed.kernel.answer import Problem
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL, Tool
from qwed.kernel.views.activity_views import ActivityView
from qwed.kernel.views.agent_views import View
from qwed.model import EffectKind
from qwed.model.tolerances import LOOSENING, VALUE
from qwed.model.tool_name import ALL_OF_SERVER
from qwed.reports.report_data import ReportData

Amount = (
    Annotated[float, Meta(ge=0, le=10**9, description="US dollars, at most six decimals")]
    | Annotated[str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,6})?$", description="the same as text")]
)
Count = Annotated[int, Meta(ge=0, le=10**12)]
Level = Literal["untrusted", "supervised", "autonomous", "trusted"] | Annotated[int, Meta(ge=0, le=3)]
EngineName = Annotated[str, Meta(extra_json_schema={"enum": [*ENGINE_NAMES]})]
ActionType = Annotated[str, Meta(extra_json_schema={"enum": [*ACTION_TYPES, TOOL_CALL]})] | UnsetType
OptionalText = Annotated[str, Meta(min_length=1)] | UnsetType
_TEXT = r"^[^\u0000]*$"
_INVISIBLE = (
    r"\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_BLANK = r"\u115f\u1160\u2800\u3164\uffa0"
_READABLE = rf"^[^{_INVISIBLE}]*[^\s{_BLANK}{_INVISIBLE}][^{_INVISIBLE}]*$"
_PLAIN = rf"^[^{_INVISIBLE}]*$"
Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=_READABLE)]
Subject = Annotated[str, Meta(min_length=1, max_length=256, description="person whom the content is about")]
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
_DIALECTS = sorted({*KNOWN_DIALECTS, *(alias for alias, name in ALIASES.items() if name)})
Dialect = Annotated[str, Meta(pattern=f"^(?:{'|'.join(_DIALECTS)})$")]
ToleranceEntry = Annotated[str, Meta(pattern=rf"^(?:{'|'.join(LOOSENING)})={VALUE}$")]


class RequestShape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the request schemas."""


class CostShape(RequestShape):
    """Cost of the action itself; an agent can state more than the engine's price, never less."""

    usd: Amount = 0
    tokens: Count = 0


Effects = Annotated[
    list[EffectKind], Meta(description="declared effects: added to the detected ones, never in place of them")
]


class ActionShape(RequestShape):
    """Action (spec 4.1). `type` may be spelled `action_type`; one of the two is required."""

    type: ActionType = UNSET
    action_type: ActionType = UNSET
    query: str | None = None
    code: str | None = None
    target: str | None = None
    parameters: dict[str, Any] | None = None
    tool: str | None = None
    cost: CostShape | None = None
    effects: Effects | None = None


class ContextShape(RequestShape):
    """Context of the action (spec 9.1)."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)]
    step_number: Annotated[int, Meta(ge=1)]
    user_intent: str | None = None
    pre_action_state_hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    state_source: Literal["file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"] | None = None
    subject: Subject | None = None


class OptionsShape(RequestShape):
    """Options of the decision (spec 4.1)."""

    require_attestation: bool = False
    risk_threshold: Literal["low", "medium", "high", "critical"] = "critical"
    chain_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None


class VerifyShape(RequestShape):
    """Request to verify an action (spec 4.1)."""

    action: ActionShape
    context: ContextShape
    options: OptionsShape | None = None
    agent_id: str | None = None
    agent_token: str | None = None


class ToolCallShape(RequestShape):
    """Tool call (spec 5.1)."""

    tool_name: OptionalText = UNSET
    parameters: dict[str, Any] | None = None


class VerifyToolShape(RequestShape):
    """Request to verify a tool call (spec 5.1) with its context (spec 9.1)."""

    context: ContextShape
    tool_call: ToolCallShape | None = None
    parameters: dict[str, Any] | None = None
    effects: Effects | None = None
    justification: str | None = None
    options: OptionsShape | None = None
    agent_id: str | None = None
    agent_token: str | None = None


class BudgetShape(RequestShape):
    """Limits of the agent's spending; an absent field means no limit."""

    max_daily_cost_usd: Amount | None = None
    max_per_request_usd: Amount | None = None
    max_requests_per_hour: Count | None = None
    max_requests_per_day: Count | None = None
    max_tokens_per_request: Count | None = None
    max_tokens_per_day: Count | None = None
    max_tool_calls_per_hour: Count | None = None
    max_high_risk_calls_per_day: Count | None = None


class PermissionsShape(RequestShape):
    """Permissions of the agent; an absent field means no limit of that kind, an empty list permits nothing."""

    allowed_engines: Annotated[list[EngineName], Meta(max_length=1000)] | None = None
    allowed_tools: ToolEntries | None = None
    blocked_tools: ToolEntries = []
    max_rows: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    allowed_tables: Entries | None = None
    allowed_columns: Entries | None = None
    sensitive_columns: Entries | None = None
    schema_ddl: Annotated[str, Meta(max_length=100_000)] | None = None
    dialect: Dialect | None = None
    allowed_functions: Entries | None = None
    allowed_paths: Entries | None = None
    allowed_domains: Entries | None = None
    tolerances: Annotated[list[ToleranceEntry], Meta(max_length=1000)] | None = None


class RegisterShape(RequestShape):
    """Agent to register; the nested body of spec 3.1, with the profile under `agent`, is accepted as well."""

    name: Name
    principal_id: Name
    type: Literal["supervised", "autonomous", "trusted"] | None = "supervised"
    description: Annotated[str, Meta(max_length=4096, pattern=_PLAIN)] | None = None
    framework: Annotated[str, Meta(max_length=256, pattern=_PLAIN)] | None = None
    model: Annotated[str, Meta(max_length=256, pattern=_PLAIN)] | None = None
    permissions: PermissionsShape | None = None
    budget: BudgetShape | None = None
    trust_level: Level | None = None


Reason = Annotated[str, Meta(min_length=1, max_length=4096, pattern=_READABLE)]


class ErasureShape(RequestShape):
    """Subject to erase, as named in `context.subject` or `principal_id`."""

    subject: Subject


class ReasonShape(RequestShape):
    """Reason of the change."""

    reason: Reason


class ResolveShape(RequestShape):
    """Reason, and the name of the approver; the log records the key in any case."""

    reason: Reason
    approver: Reason | None = None


class TrustShape(RequestShape):
    """Change of trust (spec 8.2). A reduction takes effect at once and requires an owner or approver key."""

    to_level: Annotated[int, Meta(ge=0, le=3)]
    request: Literal["trust_elevation", "trust_reduction"] = "trust_elevation"
    from_level: Annotated[int, Meta(ge=0, le=3)] | None = None
    agent_id: str | None = None
    justification: Annotated[str, Meta(max_length=4096, pattern=_PLAIN)] | None = None
    evidence: Annotated[dict[str, Any], Meta(description="ignored: the evidence is computed from the log")] | None = (
        None
    )


class ExecutionShape(RequestShape):
    """Outcome of an action (spec 7.1). Only the hash of `result` is stored."""

    success: bool
    result: Any = None
    result_hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")] | None = None
    attestation: str | dict[str, Any] | None = None


class OrganisationShape(RequestShape):
    """New organisation."""

    name: Name


class KeyShape(RequestShape):
    """New key of the organisation."""

    name: Name
    role: Literal["owner", "approver", "member", "metrics"]


class WebhookShape(RequestShape):
    """URL and events of the webhook; without `events`, all of them."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    events: Annotated[list[Literal["pending", "failed", "degraded", "suspended"]], Meta(min_length=1)] | None = None


class ToolShape(RequestShape):
    """Tool to register; the name is in the path. A built-in tool keeps the fields that are absent."""

    risk_level: Literal["low", "medium", "high", "critical"]
    name: OptionalText = UNSET
    requires_verification: bool = True
    requires_approval: bool = False
    verification_engine: Literal["sql", "code", "math", "logic", "path", "shell"] | None = None
    sandbox_required: bool = False
    dangerous: bool = False
    effect: EffectKind | None = None
    dialect: Dialect | None = None


class ProblemShape(View, frozen=True, kw_only=True):
    """Error outside a decision."""

    error: Problem


class ReportedActivity(ActivityView, frozen=True, kw_only=True):
    """Activity with its leaf, the text whose hash is in the Merkle tree."""

    leaf: str


class ReportShape(ReportData, frozen=True, kw_only=True):
    """Compliance report as JSON (spec 7.3)."""

    activities: list[ReportedActivity]
    """Newest first."""


class ToolsShape(View, frozen=True, kw_only=True):
    """Registered tools (spec 5.3)."""

    tools: list[Tool]


class HealthShape(View, frozen=True, kw_only=True):
    """Status and version of the process."""

    status: Literal["ok"]
    version: str


class ReadyShape(View, frozen=True, kw_only=True):
    """Readiness of the components."""

    ready: bool
    parts: dict[str, str]


class JwtShape(RequestShape):
    """Attestation token."""

    jwt: str


class JwksShape(View, frozen=True, kw_only=True):
    """JSON Web Key Set (RFC 7517)."""

    keys: list[dict[str, str]]
