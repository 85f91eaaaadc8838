"""Registration of an agent: identity, token, permissions and budget (spec 3)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.engines.registry import ENGINE_NAMES
from qwed.engines.sql_dialect import KNOWN_DIALECTS, dialect_named
from qwed.guards.secrets import find_secrets
from qwed.guards.text_scan import has_invisible, is_readable
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.payload import redacted_text
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event, MoneyError, Trust, micros_from
from qwed.model.ids import new_id
from qwed.model.tolerances import parse_tolerances
from qwed.model.tool_name import ALL_OF_SERVER, server_of_wildcard
from qwed.store.agent import Agent, AgentLimits, AgentStatus, Permissions
from qwed.store.change_parts import AgentAdded
from qwed.store.credentials import AGENT_TOKEN, mint

TYPES = {"supervised": Trust.SUPERVISED, "autonomous": Trust.AUTONOMOUS, "trusted": Trust.TRUSTED}
LEVELS: dict[Any, Trust] = {trust.word: trust for trust in Trust} | {int(trust): trust for trust in Trust}

_TEXTS = {"name": 256, "principal_id": 256, "description": 4096, "framework": 256, "model": 256}
_REQUIRED = ("name", "principal_id")
_PROFILE = frozenset({*_TEXTS, "type"})
_TOP = frozenset({"permissions", "budget", "trust_level"})
_PERMISSIONS = ", ".join(Permissions.__struct_fields__)
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


class Registration(NamedTuple):
    """A new agent and its token, which is shown once."""

    agent: Agent
    token: str


async def register(raw: Any, actor: Actor, services: Services) -> Registration | Problem:
    """Store a new agent, or return the problem with a field."""
    body = _flatten(raw)
    if isinstance(body, Problem):
        return body
    fields = _read(body)
    if isinstance(fields, Problem):
        return fields
    if fields["trust"] is Trust.TRUSTED and actor.role != "owner":
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    token, now = mint(AGENT_TOKEN), services.clock.now()
    agent = Agent(
        agent_id=new_id("agent"),
        organisation_id=actor.organisation_id,
        status=AgentStatus.ACTIVE,
        token_prefix=token.prefix,
        token_digest=token.digest,
        created_at=now,
        registered_by=actor.actor_id,
        **fields,
    )
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
    return receipt if isinstance(receipt, Problem) else Registration(agent, token.text)


def _flatten(raw: Any) -> dict[str, Any] | Problem:
    """Return the guide's flat body, or spec 3.1's body with the profile under `agent`, as one object."""
    if not isinstance(raw, Mapping):
        return _bad("the body must be an object")
    profile = raw.get("agent", {})
    if not isinstance(profile, Mapping):
        return _bad("`agent` must be an object")
    allowed = {"": _TOP | ({"agent"} if "agent" in raw else _PROFILE), "agent.": _PROFILE}
    for prefix, part in (("", raw), ("agent.", profile)):
        for name in part:
            if name not in allowed[prefix]:
                return _bad(
                    f"unknown field {quoted(prefix + str(name))}: known are {', '.join(sorted(allowed[prefix]))}"
                )
    return {**{name: value for name, value in raw.items() if name != "agent"}, **profile}


def _read(body: dict[str, Any]) -> dict[str, Any] | Problem:
    refusal = _refuse_texts(body)
    if refusal is not None:
        return refusal
    kind = "supervised" if body.get("type") is None else body["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        return _bad(f"`type` must be one of {', '.join(TYPES)}")
    trust = _trust_of(kind, body.get("trust_level"))
    if trust is None:
        return _bad(f"`trust_level` must be 0 to 3 or one of {', '.join(word.word for word in Trust)}")
    permissions = _permissions_of(body.get("permissions"))
    if isinstance(permissions, Problem):
        return permissions
    limits = _limits_of(body.get("budget"))
    if isinstance(limits, Problem):
        return limits
    # A masked id would be another id.
    texts = {name: body[name] if name == "principal_id" else redacted_text(body.get(name)) for name in _TEXTS}
    return {**texts, "type": kind, "trust": trust, "permissions": permissions, "limits": limits}


def _refuse_texts(body: dict[str, Any]) -> Problem | None:
    for name in _REQUIRED:
        if body.get(name) is None:
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
        if isinstance(body[name], str) and not body[name].strip():
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` must not be empty")
    for name, max_length in _TEXTS.items():
        value = body.get(name)
        if not isinstance(value, str | None):
            return _bad(f"`{name}` must be a string")
        is_invalid = value is not None and (len(value) > max_length or has_invisible(value))
        if is_invalid or (name in _REQUIRED and not is_readable(value or "")):
            return _bad(f"`{name}` must be a readable text of at most {max_length} characters")
    if find_secrets(body["principal_id"]):
        return _bad("`principal_id` carries a secret: use an id")
    return None


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _trust_of(kind: str, level: Any) -> Trust | None:
    if level is None:
        return TYPES[kind]
    # `type`, because True == 1 and 1.0 == 1 would match
    return LEVELS.get(level) if type(level) in (int, str) else None


def _permissions_of(raw: Any) -> Permissions | Problem:
    named = raw if isinstance(raw, Mapping) else ()
    unknown = next((name for name in named if name not in Permissions.__struct_fields__), None)
    if unknown is not None:
        return _bad(f"unknown field {quoted(str(unknown))} in `permissions`: known are {_PERMISSIONS}")
    try:
        permissions = msgspec.convert({} if raw is None else raw, Permissions, strict=True)
    except msgspec.ValidationError as error:
        return _bad(f"`permissions`: {str(error).lower()}")
    for engine in permissions.allowed_engines or ():
        if engine not in ENGINE_NAMES:
            names = ", ".join(ENGINE_NAMES)
            return _bad(f"`permissions.allowed_engines`: unknown engine {quoted(engine)}: known are {names}")
    # Permissions are stored for ever and must not contain a secret; a schema works without it.
    schema = redacted_text(permissions.schema_ddl)
    refusal = _refuse_lists(permissions) or _refuse_patterns(permissions)
    refusal = refusal or _refuse_dialect(permissions.dialect) or _refuse_tolerances(permissions)
    return refusal or msgspec.structs.replace(permissions, schema_ddl=schema)


def _refuse_lists(permissions: Permissions) -> Problem | None:
    for name in Permissions.__struct_fields__:
        value = getattr(permissions, name)
        if isinstance(value, tuple) and not _is_valid_list(value):
            limits = f"at most {_MAX_LIST_LENGTH} entries of 1 to {_MAX_ENTRY_LENGTH} characters"
            return _bad(f"`permissions.{name}` must have {limits}")
        if isinstance(value, tuple) and any(find_secrets(entry) for entry in value):
            return _bad(f"`permissions.{name}` carries a secret: leave it out")
    if permissions.max_rows is not None and not 1 <= permissions.max_rows <= _MAX_LIMIT:
        return _bad("`permissions.max_rows` must be a whole number of at least 1")
    if permissions.schema_ddl is not None and len(permissions.schema_ddl) > _MAX_DDL_LENGTH:
        return _bad(f"`permissions.schema_ddl` must be at most {_MAX_DDL_LENGTH} characters")
    return None


def _refuse_patterns(permissions: Permissions) -> Problem | None:
    for name in ("allowed_tools", "blocked_tools"):
        for entry in getattr(permissions, name) or ():
            if "*" in entry and server_of_wildcard(entry) is None:
                form = f"write `{ALL_OF_SERVER}` for all tools of an MCP server, or name the tools"
                return _bad(f"`permissions.{name}`: {quoted(entry)} is not a valid pattern: {form}")
    return None


def _refuse_dialect(dialect: str | None) -> Problem | None:
    if dialect is None or dialect_named(dialect):
        return None
    return _bad(f"`permissions.dialect`: unknown dialect {quoted(dialect)}: known are {', '.join(KNOWN_DIALECTS)}")


def _refuse_tolerances(permissions: Permissions) -> Problem | None:
    try:
        parse_tolerances(permissions.tolerances or ())
    except ValueError as error:
        return _bad(f"`permissions.tolerances`: {error}")
    return None


def _is_valid_list(entries: tuple[str, ...]) -> bool:
    return len(entries) <= _MAX_LIST_LENGTH and all(
        0 < len(entry) <= _MAX_ENTRY_LENGTH and _is_storable(entry) for entry in entries
    )


def _limits_of(raw: Any) -> AgentLimits | Problem:
    if raw is None:
        return AgentLimits()
    if not isinstance(raw, Mapping):
        return _bad("`budget` must be an object")
    limits: dict[str, int] = {}
    for name, value in raw.items():
        if name not in MONEY_LIMITS and name not in COUNT_LIMITS:
            names = ", ".join([*MONEY_LIMITS, *COUNT_LIMITS])
            return _bad(f"unknown field {quoted(name)} in `budget`: known are {names}")
        if value is None:
            continue
        try:
            limits[MONEY_LIMITS.get(name) or COUNT_LIMITS[name]] = _read_limit(name, value)
        except MoneyError as error:
            return _bad(f"`budget.{name}` {error}")
    return AgentLimits(**limits)


def _read_limit(name: str, value: Any) -> int:
    if name in MONEY_LIMITS:
        return micros_from(value)
    if type(value) is not int or not 0 <= value <= _MAX_LIMIT:
        raise MoneyError("must be a whole number, zero or more")
    return value


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
