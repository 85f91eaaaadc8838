"""Spec 3: an agent registers, and gets an identity, a token, permissions and a budget."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.engines.table import ENGINE_NAMES
from qwed.guards.secrets import find_secrets
from qwed.guards.text import has_unseen, readable
from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.keeping.payload import shown_text
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.store.agent import Agent, AgentStatus, Limits, Permissions
from qwed.store.credentials import AGENT_TOKEN, mint
from qwed.store.parts import AgentAdded
from qwed.words import ErrorCode, Event, MoneyError, Trust, micros_from
from qwed.words.ids import new_id
from qwed.words.tool_name import ALL_OF_SERVER, server_in

TYPES = {"supervised": Trust.SUPERVISED, "autonomous": Trust.AUTONOMOUS, "trusted": Trust.TRUSTED}
LEVELS: dict[Any, Trust] = {trust.word: trust for trust in Trust} | {int(trust): trust for trust in Trust}

_TEXTS = {"name": 256, "principal_id": 256, "description": 4096, "framework": 256, "model": 256}
_REQUIRED = ("name", "principal_id")
_PROFILE = frozenset({*_TEXTS, "type"})
_TOP = frozenset({"permissions", "budget", "trust_level"})
_PERMISSIONS = ", ".join(Permissions.__struct_fields__)
_LONGEST_LIST = 1000
_LONGEST_ENTRY = 256
_LONGEST_DDL = 100_000
_MOST = 10**12

MONEY_LIMITS = {"max_daily_cost_usd": "daily_cost", "max_per_request_usd": "cost_per_request"}
COUNT_LIMITS = {
    "max_requests_per_hour": "requests_per_hour",
    "max_requests_per_day": "requests_per_day",
    "max_tokens_per_request": "tokens_per_request",
    "max_tokens_per_day": "tokens_per_day",
    "max_tool_calls_per_hour": "tool_calls_per_hour",
    "max_high_risk_calls_per_day": "high_risk_calls_per_day",
}


class Registered(NamedTuple):
    """A new agent, and the token that is shown once."""

    agent: Agent
    token: str


async def register(raw: Any, actor: Actor, services: Services) -> Registered | Problem:
    """Keep a new agent, or say which field cannot be used."""
    body = _flat(raw)
    if isinstance(body, Problem):
        return body
    read = _read(body)
    if isinstance(read, Problem):
        return read
    if read["trust"] is Trust.TRUSTED and actor.role != "owner":
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    token, now = mint(AGENT_TOKEN), services.clock.now()
    agent = Agent(
        agent_id=new_id("agent"),
        organisation_id=actor.organisation_id,
        status=AgentStatus.ACTIVE,
        token_prefix=token.prefix,
        token_digest=token.digest,
        created_at=now,
        **read,
    )
    change = change_of(
        Event.REGISTERED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        agent_id=agent.agent_id,
        level_after=int(agent.trust),
        parts=(AgentAdded(agent),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else Registered(agent, token.text)


def _flat(raw: Any) -> dict[str, Any] | Problem:
    """The guide's flat body, or spec 3.1's with the profile under `agent`, as one object."""
    if not isinstance(raw, Mapping):
        return _bad("the body must be an object")
    profile = raw.get("agent", {})
    if not isinstance(profile, Mapping):
        return _bad("`agent` must be an object")
    known = {"": _TOP | ({"agent"} if "agent" in raw else _PROFILE), "agent.": _PROFILE}
    for place, part in (("", raw), ("agent.", profile)):
        for name in part:
            if name not in known[place]:
                return _bad(f"unknown field {quoted(place + str(name))}: known are {', '.join(sorted(known[place]))}")
    return {**{name: value for name, value in raw.items() if name != "agent"}, **profile}


def _read(body: dict[str, Any]) -> dict[str, Any] | Problem:
    wrong = _refuse_texts(body)
    if wrong is not None:
        return wrong
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
    # An id that were masked would be another one.
    texts = {name: body[name] if name == "principal_id" else shown_text(body.get(name)) for name in _TEXTS}
    return {**texts, "type": kind, "trust": trust, "permissions": permissions, "limits": limits}


def _refuse_texts(body: dict[str, Any]) -> Problem | None:
    for name in _REQUIRED:
        if body.get(name) is None:
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
        if isinstance(body[name], str) and not body[name].strip():
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` must not be empty")
    for name, longest in _TEXTS.items():
        value = body.get(name)
        if not isinstance(value, str | None):
            return _bad(f"`{name}` must be a string")
        wrong = value is not None and (len(value) > longest or has_unseen(value))
        if wrong or (name in _REQUIRED and not readable(value or "")):
            return _bad(f"`{name}` must be a readable text of at most {longest} characters")
    if find_secrets(body["principal_id"]):
        return _bad("`principal_id` carries a secret: use an id")
    return None


def _storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _trust_of(kind: str, level: Any) -> Trust | None:
    if level is None:
        return TYPES[kind]
    # `type`, because True == 1 and 1.0 == 1 would find a row
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
            known = ", ".join(ENGINE_NAMES)
            return _bad(f"`permissions.allowed_engines`: unknown engine {quoted(engine)}: known are {known}")
    # What is kept for good holds no secret; a schema reads the same without it.
    schema = shown_text(permissions.schema_ddl)
    wrong = _refuse_lists(permissions) or _refuse_patterns(permissions)
    return wrong or msgspec.structs.replace(permissions, schema_ddl=schema)


def _refuse_lists(permissions: Permissions) -> Problem | None:
    for name in Permissions.__struct_fields__:
        value = getattr(permissions, name)
        if isinstance(value, tuple) and not _list_fits(value):
            limits = f"at most {_LONGEST_LIST} entries of 1 to {_LONGEST_ENTRY} characters"
            return _bad(f"`permissions.{name}` must have {limits}")
        if isinstance(value, tuple) and any(find_secrets(entry) for entry in value):
            return _bad(f"`permissions.{name}` carries a secret: leave it out")
    if permissions.max_rows is not None and not 1 <= permissions.max_rows <= _MOST:
        return _bad("`permissions.max_rows` must be a whole number of at least 1")
    if permissions.schema_ddl is not None and len(permissions.schema_ddl) > _LONGEST_DDL:
        return _bad(f"`permissions.schema_ddl` must be at most {_LONGEST_DDL} characters")
    return None


def _refuse_patterns(permissions: Permissions) -> Problem | None:
    for name in ("allowed_tools", "blocked_tools"):
        for entry in getattr(permissions, name) or ():
            if "*" in entry and server_in(entry) is None:
                form = f"write `{ALL_OF_SERVER}` for all tools of an MCP server, or name the tools"
                return _bad(f"`permissions.{name}`: {quoted(entry)} is no pattern: {form}")
    return None


def _list_fits(entries: tuple[str, ...]) -> bool:
    return len(entries) <= _LONGEST_LIST and all(
        0 < len(entry) <= _LONGEST_ENTRY and _storable(entry) for entry in entries
    )


def _limits_of(raw: Any) -> Limits | Problem:
    if raw is None:
        return Limits()
    if not isinstance(raw, Mapping):
        return _bad("`budget` must be an object")
    read: dict[str, int] = {}
    for name, value in raw.items():
        if name not in MONEY_LIMITS and name not in COUNT_LIMITS:
            known = ", ".join([*MONEY_LIMITS, *COUNT_LIMITS])
            return _bad(f"unknown field {quoted(name)} in `budget`: known are {known}")
        if value is None:
            continue
        try:
            read[MONEY_LIMITS.get(name) or COUNT_LIMITS[name]] = _limit(name, value)
        except MoneyError as error:
            return _bad(f"`budget.{name}` {error}")
    return Limits(**read)


def _limit(name: str, value: Any) -> int:
    if name in MONEY_LIMITS:
        return micros_from(value)
    if type(value) is not int or not 0 <= value <= _MOST:
        raise MoneyError("must be a whole number, zero or more")
    return value


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
