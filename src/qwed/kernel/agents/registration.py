"""Registration of an agent: identity, token, permissions and budget (spec 3)."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Permissions
from qwed.domain.change_parts import AgentAdded
from qwed.domain.credentials import AGENT_TOKEN, mint
from qwed.engines.registry import ENGINE_NAMES
from qwed.engines.sql_dialect import ALIASES, KNOWN_DIALECTS, dialect_named
from qwed.guards.secrets import find_secrets, mask
from qwed.kernel.agents.labels import Labels
from qwed.kernel.agents.names import refuse_name
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.payload import redacted_text
from qwed.kernel.request import OptionalAmount
from qwed.kernel.request_schema import (
    MAX_NAME_LENGTH,
    MAX_TEXT_LENGTH,
    READABLE,
    VISIBLE,
    FieldRule,
    RequestStruct,
    not_misleading,
    parse,
    quoted,
    readable,
)
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event, Trust, micros_from
from qwed.model.ids import new_id
from qwed.model.roles import OWNER
from qwed.model.tolerances import LOOSENING, VALUE, parse_tolerances
from qwed.model.tool_name import ALL_OF_SERVER, server_of_wildcard

TYPES = {"supervised": Trust.SUPERVISED, "autonomous": Trust.AUTONOMOUS, "trusted": Trust.TRUSTED}
LEVELS: dict[Any, Trust] = {trust.word: trust for trust in Trust} | {int(trust): trust for trust in Trust}
_MAX_LIST_LENGTH = 1000
_MAX_ENTRY_LENGTH = 256
_MAX_DDL_LENGTH = 100_000
_MAX_LIMIT = 10**12

MONEY_LIMITS = {"max_daily_cost_usd": "daily_cost", "max_per_request_usd": "cost_per_request"}
COUNT_LIMITS = {
    "max_requests_per_hour": "requests_per_hour",
    "max_requests_per_day": "requests_per_day",
    "max_tokens_per_request": "tokens_per_request",
    "max_tokens_per_day": "tokens_per_day",
    "max_tool_calls_per_hour": "tool_calls_per_hour",
    "max_high_risk_calls_per_day": "high_risk_calls_per_day",
}


Count = Annotated[int, Meta(ge=0, le=_MAX_LIMIT), FieldRule("must be a whole number, zero or more")]


class BudgetRequest(RequestStruct):
    """Limits of the agent's spending; an absent field means no limit."""

    prefix: ClassVar[str] = "budget."
    unknown: ClassVar[str] = "unknown field {name} in `budget`: known are {fields}"
    max_daily_cost_usd: OptionalAmount = None
    max_per_request_usd: OptionalAmount = None
    max_requests_per_hour: Count | None = None
    max_requests_per_day: Count | None = None
    max_tokens_per_request: Count | None = None
    max_tokens_per_day: Count | None = None
    max_tool_calls_per_hour: Count | None = None
    max_high_risk_calls_per_day: Count | None = None


def _refuse_entries(entries: list[str]) -> str | None:
    is_valid = len(entries) <= _MAX_LIST_LENGTH and all(
        0 < len(entry) <= _MAX_ENTRY_LENGTH and _is_storable(entry) for entry in entries
    )
    return None if is_valid else ""


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _refuse_patterns(entries: list[str]) -> str | None:
    invalid = next((entry for entry in entries if "*" in entry and server_of_wildcard(entry) is None), None)
    if _refuse_entries(entries) is not None or invalid is None:
        return _refuse_entries(entries)
    form = f"write `{ALL_OF_SERVER}` for all tools of an MCP server, or name the tools"
    return f": {quoted(invalid)} is not a valid pattern: {form}"


def _refuse_engines(engines: list[str]) -> str | None:
    unknown = next((engine for engine in engines if engine not in ENGINE_NAMES), None)
    known = ", ".join(ENGINE_NAMES)
    return None if unknown is None else f": unknown engine {quoted(unknown)}: known are {known}"


def _refuse_dialect(dialect: str) -> str | None:
    known = ", ".join(KNOWN_DIALECTS)
    return None if dialect_named(dialect) else f": unknown dialect {quoted(dialect)}: known are {known}"


def _refuse_tolerances(tolerances: list[str]) -> str | None:
    if _refuse_entries(tolerances) is not None or any(map(find_secrets, tolerances)):
        return _refuse_entries(tolerances)
    try:
        parse_tolerances(tuple(tolerances))
    except ValueError as error:
        return f": {error}"
    return None


_MOST = Meta(extra_json_schema={"maxItems": _MAX_LIST_LENGTH})
_ENTRY: dict[str, Any] = {"minLength": 1, "maxLength": _MAX_ENTRY_LENGTH}


def _list_rule(refuse: Callable[[list[str]], str | None]) -> FieldRule:
    limits = f"at most {_MAX_LIST_LENGTH} entries of 1 to {_MAX_ENTRY_LENGTH} characters"
    return FieldRule(f"must have {limits}", wrong_type="", refuse=refuse, secret="carries a secret: leave it out")  # noqa: S106


Entry = Annotated[str, Meta(extra_json_schema={**_ENTRY, "pattern": r"^[^\u0000]*$"})]
Entries = Annotated[list[Entry], _MOST, _list_rule(_refuse_entries)]
_TOOL_PATTERN = r"^([^\u0000*]+|mcp__[A-Za-z0-9.-]+(_[A-Za-z0-9.-]+)*__\*)$"
ToolEntry = Annotated[
    str,
    Meta(
        description=f"the name of a tool, or `{ALL_OF_SERVER}` for all tools of an MCP server",
        extra_json_schema={**_ENTRY, "pattern": _TOOL_PATTERN},
    ),
]
ToolEntries = Annotated[list[ToolEntry], _MOST, _list_rule(_refuse_patterns)]
EngineEntry = Annotated[str, Meta(extra_json_schema={"enum": [*ENGINE_NAMES]})]
EngineEntries = Annotated[list[EngineEntry], _MOST, _list_rule(_refuse_engines)]
Tolerance = Annotated[str, Meta(extra_json_schema={"pattern": rf"^(?:{'|'.join(LOOSENING)})={VALUE}$"})]
Tolerances = Annotated[list[Tolerance], _MOST, _list_rule(_refuse_tolerances)]
DIALECTS = sorted({*KNOWN_DIALECTS, *(alias for alias, name in ALIASES.items() if name)})
DIALECT = Meta(extra_json_schema={"pattern": f"^(?:{'|'.join(DIALECTS)})$"})
"""Schema of the name of an SQL dialect."""


class PermissionsRequest(RequestStruct):
    """Permissions of the agent; an absent field means no limit of that kind, an empty list permits nothing."""

    prefix: ClassVar[str] = "permissions."
    unknown: ClassVar[str] = "unknown field {name} in `permissions`: known are {fields}"
    allowed_engines: EngineEntries | None = None
    allowed_tools: ToolEntries | None = None
    blocked_tools: ToolEntries = msgspec.field(default_factory=list)
    max_rows: (
        Annotated[int, Meta(ge=1, le=_MAX_LIMIT), FieldRule("must be a whole number of at least 1", wrong_type="")]
        | None
    ) = None
    allowed_tables: Entries | None = None
    allowed_columns: Entries | None = None
    sensitive_columns: Entries | None = None
    schema_ddl: (
        Annotated[
            str,
            Meta(max_length=_MAX_DDL_LENGTH),
            FieldRule(f"must be at most {_MAX_DDL_LENGTH} characters", wrong_type=""),
        ]
        | None
    ) = None
    dialect: Annotated[str, DIALECT, FieldRule(wrong_type="", refuse=_refuse_dialect)] | None = None
    allowed_functions: Entries | None = None
    allowed_paths: Entries | None = None
    allowed_domains: Entries | None = None
    tolerances: Tolerances | None = None


def _identity(**columns: Any) -> FieldRule:
    must = f"must be a readable text of at most {MAX_NAME_LENGTH} characters"
    return FieldRule(must, wrong_type="must be a string", refuse=readable(MAX_NAME_LENGTH), **columns)


def _remark(longest: int) -> FieldRule:
    must = f"must be a readable text of at most {longest} characters"
    return FieldRule(must, wrong_type="must be a string", refuse=not_misleading(longest))


_IDENTITY = Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": READABLE})
Remark = Annotated[
    str, Meta(extra_json_schema={"maxLength": MAX_NAME_LENGTH, "pattern": VISIBLE}), _remark(MAX_NAME_LENGTH)
]
_LEVEL = f"must be 0 to 3 or one of {', '.join(word.word for word in Trust)}"


AgentName = Annotated[str, _IDENTITY, _identity()]
Description = Annotated[
    str, Meta(extra_json_schema={"maxLength": MAX_TEXT_LENGTH, "pattern": VISIBLE}), _remark(MAX_TEXT_LENGTH)
]
MAX_CONVERSATION_STEPS = 1_000_000
ConversationSteps = Annotated[
    int,
    Meta(ge=1, le=MAX_CONVERSATION_STEPS, description="steps of one conversation; by default the server's setting"),
    FieldRule(f"must be a whole number from 1 to {MAX_CONVERSATION_STEPS}"),
]


class RegisterRequest(RequestStruct):
    """Agent to register; the nested body of spec 3.1, with the profile under `agent`, is accepted as well."""

    name: AgentName
    principal_id: Annotated[str, _IDENTITY, _identity(secret="carries a secret: use an id")]  # noqa: S106
    type: (
        Annotated[
            Literal["supervised", "autonomous", "trusted"],
            FieldRule(f"must be one of {', '.join(TYPES)}"),
        ]
        | None
    ) = "supervised"
    description: Description | None = None
    framework: Remark | None = None
    model: Remark | None = None
    permissions: PermissionsRequest | None = None
    budget: Annotated[BudgetRequest, FieldRule("must be an object")] | None = None
    trust_level: (
        Annotated[
            Literal["untrusted", "supervised", "autonomous", "trusted"] | Annotated[int, Meta(ge=0, le=3)],
            FieldRule(_LEVEL),
        ]
        | None
    ) = None
    labels: Labels | None = None
    max_conversation_steps: ConversationSteps | None = None


_PROFILE = frozenset({"name", "principal_id", "description", "framework", "model", "type"})
_TOP = frozenset({"permissions", "budget", "trust_level", "labels", "max_conversation_steps"})


class Registration(NamedTuple):
    """A new agent and its token, which is shown once."""

    agent: Agent
    token: str


def read_registration(raw: Any) -> RegisterRequest | Problem:
    """Parse the guide's flat body, or spec 3.1's body with the profile under `agent`."""
    if not isinstance(raw, Mapping):
        return _bad("the body must be an object")
    profile = raw.get("agent", {})
    if not isinstance(profile, Mapping):
        return _bad("`agent` must be an object")
    allowed = {"": _TOP | ({"agent"} if "agent" in raw else _PROFILE), "agent.": _PROFILE}
    for prefix, part in (("", raw), ("agent.", profile)):
        for name in part:
            if name not in allowed[prefix]:
                known = ", ".join(sorted(allowed[prefix]))
                return _bad(f"unknown field {quoted(prefix + str(name))}: known are {known}")
    body = {**{name: value for name, value in raw.items() if name != "agent"}, **profile}
    for name in ("name", "principal_id"):
        if isinstance(body.get(name), str) and not body[name].strip():
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` must not be empty")
    return parse(body, RegisterRequest)


async def register(request: RegisterRequest, actor: Actor, services: Services) -> Registration | Problem:
    """Store a new agent."""
    kind = request.type or "supervised"
    trust = TYPES[kind] if request.trust_level is None else LEVELS[request.trust_level]
    refusal = _refuse_role(request, trust, actor)
    if refusal is not None:
        return refusal
    token, now = mint(AGENT_TOKEN), services.clock.now()
    agent = Agent(
        agent_id=new_id("agent"),
        organisation_id=actor.organisation_id,
        status=AgentStatus.ACTIVE,
        token_prefix=token.prefix,
        token_digest=token.digest,
        created_at=now,
        registered_by=actor.actor_id,
        name=mask(request.name),
        # A masked id would be another id.
        principal_id=request.principal_id,
        description=redacted_text(request.description),
        framework=redacted_text(request.framework),
        model=redacted_text(request.model),
        type=kind,
        trust=trust,
        permissions=_permissions_of(request.permissions),
        limits=_limits_of(request.budget or BudgetRequest()),
        labels=dict(sorted((request.labels or {}).items())),
        max_conversation_steps=request.max_conversation_steps,
        registered_trust=trust,
        restorable_trust=trust,
    )
    refusal = refuse_name(agent, services)
    if refusal is not None:
        return refusal
    change = build_change(
        Event.REGISTERED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        agent_id=agent.agent_id,
        level_after=int(agent.trust),
        parts=(AgentAdded(agent),),
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return refuse_name(agent, services) or receipt
    return Registration(agent, token.text)


def _refuse_role(request: RegisterRequest, trust: Trust, actor: Actor) -> Problem | None:
    """Return the problem of a key that may not register an agent like this, or None."""
    if actor.role == OWNER:
        return None
    if trust is Trust.TRUSTED:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    if request.labels:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "`labels` need an owner key: policies rely on them")
    if request.max_conversation_steps is not None:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "`max_conversation_steps` needs an owner key")
    return None


def _permissions_of(request: PermissionsRequest | None) -> Permissions:
    permissions = msgspec.convert(request or PermissionsRequest(), Permissions, from_attributes=True)
    # Permissions are stored for ever and must not contain a secret; a schema works without it.
    return msgspec.structs.replace(permissions, schema_ddl=redacted_text(permissions.schema_ddl))


def _limits_of(budget: BudgetRequest) -> AgentLimits:
    limits = {field: getattr(budget, name) for name, field in COUNT_LIMITS.items()}
    for name, field in MONEY_LIMITS.items():
        amount = getattr(budget, name)
        limits[field] = None if amount is None else micros_from(amount)
    return AgentLimits(**limits)


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
