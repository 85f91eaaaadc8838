"""Tool registry of an organisation, and the entries it may contain (spec 5.3, ruling 4.4)."""

from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from qwed.domain.change_parts import ToolChanged, ToolRemoved
from qwed.domain.write_set import WriteSet
from qwed.engines.sql_dialect import KNOWN_DIALECTS, dialect_named
from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import case_key, fold_name
from qwed.kernel.agents.registration import DIALECT
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.request_schema import FieldRule, RequestStruct, quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, PATH, SHELL, TOOLS, Tool, built_in_of, resembles_built_in
from qwed.model import EffectKind, ErrorCode, Event, Risk
from qwed.model.tool_name import server_of

_decode = msgspec.json.Decoder(Tool).decode
_MAX_NAME_LENGTH = 128
_SQL = "sql"
_RISKS = tuple(risk.word for risk in Risk)
_ENGINES = (_SQL, "code", "math", "logic", PATH, SHELL)
"""Engines and guards that may analyze the call of a tool."""


def tools_of(organisation_id: str, services: Services) -> list[Tool]:
    """Return the built-in tools, overridden by the organisation's own, by name."""
    own = {name: _decode(row) for name, row in services.store.tool_rows(organisation_id).items()}
    merged = TOOLS | own
    return [merged[name] for name in sorted(merged)]


async def register_tool(tool: Tool, actor: Actor, services: Services) -> Tool | Problem:
    """Store a tool's entry; refuse a name that differs from another one's only by case."""
    refusal = _refuse_spelling(tool.name, services.store.tool_rows(actor.organisation_id))
    if refusal is not None:
        return refusal
    receipt = await commit_change(_change_of(tool, actor, services), services)
    return receipt if isinstance(receipt, Problem) else tool


def _change_of(tool: Tool, actor: Actor, services: Services) -> WriteSet:
    return build_change(
        Event.TOOL_CHANGED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=tool.name,
        content={"tool": msgspec.to_builtins(tool)},
        parts=(ToolChanged(actor.organisation_id, tool.name, msgspec.json.encode(tool)),),
    )


def _refuse_spelling(name: str, own: Collection[str]) -> Problem | None:
    key = case_key(name)
    other = next((one for one in (*own, *TOOLS) if one != name and case_key(one) == key), None)
    if other is None:
        return None
    message = f"{quoted(name)} differs only by case from the tool `{other}`, and names are compared without it"
    return problem(ErrorCode.CONFLICT, message, check="name_unused", suggestion=f"register it as `{other}`")


async def remove_tool(name: str, actor: Actor, services: Services) -> bool | Problem:
    """Remove the organisation's own entry of a tool."""
    own = services.store.tool_rows(actor.organisation_id)
    stored = name if name in own else next((one for one in own if case_key(one) == case_key(name)), None)
    if stored is None:
        return problem(ErrorCode.NOT_FOUND, f"this organisation has not registered {quoted(name)}")
    change = build_change(
        Event.TOOL_REMOVED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=stored,
        parts=(ToolRemoved(actor.organisation_id, stored),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else True


class ToolRequest(RequestStruct):
    """Tool to register; the name is in the path. A built-in tool keeps the fields that are absent."""

    name: (
        Annotated[str, Meta(extra_json_schema={"minLength": 1}), FieldRule("in the body is not the tool in the path")]
        | UnsetType
    ) = UNSET
    risk_level: (
        Annotated[
            str,
            Meta(extra_json_schema={"enum": [*_RISKS]}),
            FieldRule(
                "must be low, medium, high or critical",
                wrong_type="",
                refuse=lambda word: None if word in _RISKS else "",
            ),
        ]
        | UnsetType
    ) = UNSET
    requires_verification: bool | UnsetType = UNSET
    requires_approval: bool | UnsetType = UNSET
    verification_engine: (
        Annotated[str, Meta(extra_json_schema={"enum": [*_ENGINES]}), FieldRule(wrong_type="")] | UnsetType | None
    ) = UNSET
    sandbox_required: bool | UnsetType = UNSET
    dangerous: bool | UnsetType = UNSET
    effect: (
        Annotated[EffectKind, FieldRule(f"must be one of {', '.join(EffectKind)}, or absent")] | UnsetType | None
    ) = UNSET
    dialect: Annotated[str, DIALECT, FieldRule(wrong_type="")] | UnsetType | None = UNSET


def tool_of(name: str, request: ToolRequest) -> Tool | Problem:
    """Return the entry of a tool, or the problem with it."""
    if request.name not in (UNSET, name):
        return _bad("`name` in the body is not the tool in the path")
    # A built-in tool keeps every member that is not overridden; its effect cannot be overridden.
    built_in = msgspec.to_builtins(TOOLS[name]) if name in TOOLS else {}
    try:
        tool = msgspec.convert({**built_in, **msgspec.to_builtins(request), "name": name}, Tool)
    except msgspec.ValidationError as error:
        return _bad(str(error).lower())
    if tool.dialect is not None and tool.verification_engine is None:
        tool = msgspec.structs.replace(tool, verification_engine=_SQL)
    return _refuse_row(tool) or tool


def _refuse_row(tool: Tool) -> Problem | None:
    refusal = _refuse_name(tool.name) or _refuse_dialect(tool)
    if refusal is not None:
        return refusal
    if tool.verification_engine is not None and tool.verification_engine not in _ENGINES:
        return _bad(
            f"unknown `verification_engine` {quoted(tool.verification_engine)}: known are {', '.join(_ENGINES)}"
        )
    namesake = built_in_of(tool.name)
    if namesake is not None and namesake.dangerous and (not tool.dangerous or tool.risk < namesake.risk):
        return _bad(f"`{tool.name}` is on the dangerous list and stays there, at {namesake.risk_level} risk")
    built_in = TOOLS.get(tool.name)
    if tool.name in ACTION_TYPES and tool.verification_engine != ACTION_TYPES[tool.name].verification_engine:
        return _bad(f"the engine of `{tool.name}` cannot be changed")
    if built_in is not None and built_in.effect is not None and tool.effect is not built_in.effect:
        return _bad(f"the effect of `{tool.name}` is {built_in.effect} and cannot be changed")
    return None


def _refuse_dialect(tool: Tool) -> Problem | None:
    if tool.dialect is None:
        return None
    if not dialect_named(tool.dialect):
        return _bad(f"unknown `dialect` {quoted(tool.dialect)}: known are {', '.join(KNOWN_DIALECTS)}")
    if tool.verification_engine != _SQL:
        return _bad(f"`dialect` is for tools that `{_SQL}` verifies, not {quoted(str(tool.verification_engine))}")
    return None


def _refuse_name(name: str) -> Problem | None:
    refusal = _refuse_spelling(name, ())
    if refusal is not None:
        return refusal
    if not _is_plain(name):
        return _bad(f"`name` must be a plain name of at most {_MAX_NAME_LENGTH} characters")
    if find_secrets(name):
        # It is logged for ever, and masked it would be another tool.
        return _bad("`name` carries a secret: choose another name")
    return None


def _is_plain(name: str) -> bool:
    if len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        return False
    if fold_name(name) == name:
        return True
    # Other spellings than lower case are free, unless they resemble a built-in tool.
    is_spelled_plainly = fold_name(name) == name.lower() or server_of(name) is not None
    return is_spelled_plainly and not resembles_built_in(name)


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
