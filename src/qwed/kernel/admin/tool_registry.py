"""Tool registry of an organisation, and the entries it may contain (spec 5.3, ruling 4.4)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from qwed.engines.sql_dialect import KNOWN_DIALECTS, dialect_named
from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import fold_name
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.body_parsing import refuse_body
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, PATH, SHELL, TOOLS, Tool, built_in_of, resembles_built_in
from qwed.model import EffectKind, ErrorCode, Event, Risk
from qwed.model.tool_name import server_of
from qwed.store.change_parts import ToolChanged
from qwed.store.protocol import Change

_decode = msgspec.json.Decoder(Tool).decode
_MAX_NAME_LENGTH = 128
_EFFECTS = tuple(EffectKind)
_SQL = "sql"
_ENGINES = (_SQL, "code", "math", "logic", PATH, SHELL)
"""Engines and guards that may analyze the call of a tool."""


def tools_of(organisation_id: str, services: Services) -> list[Tool]:
    """Return the built-in tools, overridden by the organisation's own, by name."""
    own = {name: _decode(row) for name, row in services.store.tool_rows(organisation_id).items()}
    merged = TOOLS | own
    return [merged[name] for name in sorted(merged)]


async def register_tool(tool: Tool, actor: Actor, services: Services) -> Tool | Problem:
    """Store a tool's entry."""
    receipt = await commit_change(_change_of(tool, actor, services), services)
    return receipt if isinstance(receipt, Problem) else tool


def _change_of(tool: Tool, actor: Actor, services: Services) -> Change:
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


def read_tool(name: str, raw: Mapping[str, Any]) -> Tool | Problem:
    """Parse the entry of a tool, or return the problem with it."""
    refusal = refuse_body(raw, Tool.__struct_fields__)
    if refusal is not None:
        return refusal
    if raw.get("name", name) != name:
        return _bad("`name` in the body is not the tool in the path")
    effect = raw.get("effect")
    if effect is not None and effect not in _EFFECTS:
        return _bad(f"`effect` must be one of {', '.join(_EFFECTS)}, or absent")
    try:
        # A built-in tool keeps every member that is not overridden; its effect cannot be overridden.
        built_in = msgspec.to_builtins(TOOLS[name]) if name in TOOLS else {}
        tool = msgspec.convert({**built_in, **raw, "name": name}, Tool, strict=True)
    except msgspec.ValidationError as error:
        return _bad(str(error).lower())
    if tool.risk_level not in {risk.word for risk in Risk}:
        return _bad("`risk_level` must be low, medium, high or critical")
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
    if not _is_plain(name):
        return _bad(f"`name` must be a plain lower-case name of at most {_MAX_NAME_LENGTH} characters")
    if find_secrets(name):
        # It is logged for ever, and masked it would be another tool.
        return _bad("`name` carries a secret: choose another name")
    return None


def _is_plain(name: str) -> bool:
    if len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        return False
    # The name of a server's tool is free, unless it resembles a built-in tool.
    return fold_name(name) == name or (server_of(name) is not None and not resembles_built_in(name))


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
