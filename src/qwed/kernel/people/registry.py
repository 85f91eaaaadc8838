"""Spec 5.3 and ruling 4.4: the tool registry of an organisation, and which rows it may hold."""

from collections.abc import Mapping
from typing import Any

import msgspec

from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import folded
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, PATH, SHELL, TOOLS, Tool, built_in_of, resembles_built_in
from qwed.store.parts import ToolChanged
from qwed.store.protocol import Change
from qwed.words import EffectKind, ErrorCode, Event, Risk
from qwed.words.tool_name import server_of

_decode = msgspec.json.Decoder(Tool).decode
_LONGEST_NAME = 128
_EFFECTS = tuple(EffectKind)
_ENGINES = ("sql", "code", "math", "logic", PATH, SHELL)
"""What may judge the call of a tool."""


def tools_of(organisation_id: str, services: Services) -> list[Tool]:
    """The built-in tools with the organisation's own over them, by name."""
    own = {name: _decode(row) for name, row in services.store.tool_rows(organisation_id).items()}
    merged = TOOLS | own
    return [merged[name] for name in sorted(merged)]


async def describe(row: Tool, actor: Actor, services: Services) -> Tool | Problem:
    """Keep a tool's row, and thereby make the tool known."""
    kept = await keep(_change_of(row, actor, services), services)
    return kept if isinstance(kept, Problem) else row


def _change_of(row: Tool, actor: Actor, services: Services) -> Change:
    return change_of(
        Event.TOOL_CHANGED,
        actor.by,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=row.name,
        said={"tool": msgspec.to_builtins(row)},
        parts=(ToolChanged(actor.organisation_id, row.name, msgspec.json.encode(row)),),
    )


def read_tool(name: str, raw: Mapping[str, Any]) -> Tool | Problem:
    """The row that was said of a tool, or what is wrong with it."""
    wrong = refuse_body(raw, Tool.__struct_fields__)
    if wrong is not None:
        return wrong
    if raw.get("name", name) != name:
        return _bad("`name` in the body is not the tool in the path")
    effect = raw.get("effect")
    if effect is not None and effect not in _EFFECTS:
        return _bad(f"`effect` must be one of {', '.join(_EFFECTS)}, or absent")
    try:
        # A built-in tool keeps what is not said anew: its effect, above all, which no row can talk away.
        known = msgspec.to_builtins(TOOLS[name]) if name in TOOLS else {}
        row = msgspec.convert({**known, **raw, "name": name}, Tool, strict=True)
    except msgspec.ValidationError as error:
        return _bad(str(error).lower())
    if row.risk_level not in {risk.word for risk in Risk}:
        return _bad("`risk_level` must be low, medium, high or critical")
    return _refuse_row(row) or row


def _refuse_row(row: Tool) -> Problem | None:
    wrong = _refuse_name(row.name)
    if wrong is not None:
        return wrong
    if row.verification_engine is not None and row.verification_engine not in _ENGINES:
        return _bad(f"unknown `verification_engine` {quoted(row.verification_engine)}: known are {', '.join(_ENGINES)}")
    listed = built_in_of(row.name)
    if listed is not None and listed.dangerous and (not row.dangerous or row.risk < listed.risk):
        return _bad(f"`{row.name}` is on the dangerous list and stays there, at {listed.risk_level} risk")
    known = TOOLS.get(row.name)
    if row.name in ACTION_TYPES and row.verification_engine != ACTION_TYPES[row.name].verification_engine:
        return _bad(f"the engine of `{row.name}` cannot be changed")
    if known is not None and known.effect is not None and row.effect is not known.effect:
        return _bad(f"the effect of `{row.name}` is {known.effect} and cannot be changed")
    return None


def _refuse_name(name: str) -> Problem | None:
    if not _is_plain(name):
        return _bad(f"`name` must be a plain lower-case name of at most {_LONGEST_NAME} characters")
    if find_secrets(name):
        # It stands in the log for good, and masked it would be another tool.
        return _bad("`name` carries a secret: use a name")
    return None


def _is_plain(name: str) -> bool:
    if len(name) > _LONGEST_NAME or not name.isprintable():
        return False
    # What a server calls its tool is not for us to choose, unless it looks like one of ours.
    return folded(name) == name or (server_of(name) is not None and not resembles_built_in(name))


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
