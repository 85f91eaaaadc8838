"""Tool registry: built-in action types and tools, and the effect that a tool's name implies (spec 5.3, ruling 4.4)."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from qwed.guards.tool_approval import case_key, fold_name
from qwed.kernel.request import Action
from qwed.kernel.tool_verbs import UNKNOWN, effect_of, meaning_of
from qwed.model import EffectKind, Risk, tool_name

if TYPE_CHECKING:
    from qwed.kernel.analysis.executable_text import ExecutableText

TOOL_CALL = "tool_call"
A2A_MESSAGE = "a2a_message"
"""Action type of a message between agents in the log; not accepted as a requested action."""

TOOL, PATH, SHELL = "tool", "path", "shell"
"""Analyzers that are not engines, for actions that no engine verifies."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the tool registry."""

    name: str
    risk_level: str
    requires_verification: bool = True
    requires_approval: bool = False
    verification_engine: str | None = None
    sandbox_required: bool = False
    dangerous: bool = False
    effect: EffectKind | None = None
    dialect: str | None = None
    """Dialect of the database that executes the statements of this tool; a call may name no other one."""

    @property
    def has_engine(self) -> bool:
        """True if the type has an engine of its own, and is therefore subject to `allowed_engines`."""
        return self.verification_engine not in (None, PATH, SHELL) and self.effect in (None, EffectKind.EXECUTE)

    @property
    def risk(self) -> Risk:
        """The risk level as an enum value."""
        return _RISK_LEVELS[self.risk_level]


_RISK_LEVELS = {risk.word: risk for risk in Risk}


def _row(name: str, risk: str, effect: EffectKind | None = None, engine: str | None = None, **flags: bool) -> Tool:
    tool = Tool(name=name, risk_level=risk, effect=effect, verification_engine=engine)
    return msgspec.structs.replace(tool, **flags)


_E = EffectKind

# Guide, Risk assessment; INTERFACES 1. An action type is also a tool of the same name.
ACTION_TYPES: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _row("execute_sql", "low", engine="sql"),
        _row("database_query", "low", engine="sql"),
        _row("execute_code", "critical", _E.EXECUTE, "code", sandbox_required=True),
        _row("calculate", "low", engine="math"),
        _row("verify_math", "low", engine="math"),
        _row("verify_logic", "low", engine="logic"),
        _row("verify_fact", "low", engine="fact"),
        _row("verify_stats", "low", engine="stats"),
        _row("verify_image", "low", engine="image"),
        _row("verify_legal", "low", engine="legal"),
        _row("verify_finance", "low", engine="finance"),
        _row("verify_ucp", "low", engine="ucp"),
        _row("verify_tax", "low", engine="tax"),
        _row("database_read", "low", _E.READ, "sql"),
        _row("database_write", "high", _E.WRITE, "sql", requires_approval=True),
        _row("file_read", "low", _E.READ, PATH),
        _row("read_file", "low", _E.READ, PATH),
        _row("file_write", "high", _E.WRITE, PATH),
        _row("file_delete", "critical", _E.DELETE, PATH),
        _row("send_email", "medium", _E.COMMUNICATE),
        _row("api_call", "medium", _E.NETWORK),
        _row("shell_command", "low", None, SHELL),
    )
}

KNOWN_TYPES = frozenset({TOOL_CALL, *ACTION_TYPES})

# Guide, ToolApprovalSystem: the safe list and the dangerous list.
TOOLS: dict[str, Tool] = ACTION_TYPES | {
    tool.name: tool
    for tool in (
        _row("read_database", "low", _E.READ, "sql"),
        _row("query_data", "low", _E.READ, "sql"),
        _row("search_web", "low"),
        _row("log_message", "low"),
        _row("get_weather", "low", _E.READ),
        _row("delete_database", "critical", _E.DELETE, requires_approval=True, dangerous=True),
        _row("drop_table", "critical", _E.DELETE, requires_approval=True, dangerous=True),
        _row("send_money", "critical", _E.SPEND, requires_approval=True, dangerous=True),
        _row("delete_files", "critical", _E.DELETE, requires_approval=True, dangerous=True),
        _row("shutdown_server", "critical", _E.ADMIN, requires_approval=True, dangerous=True),
        _row("revoke_access", "critical", _E.ADMIN, requires_approval=True, dangerous=True),
        _row("release_tool_definition", "low", requires_approval=True, dangerous=True),
        _row("release_agent_card", "low", requires_approval=True, dangerous=True),
    )
}

_decode_tool = msgspec.json.Decoder(Tool).decode


def find_tool(tools: Mapping[str, bytes], name: str) -> Tool | None:
    """Return the registry entry of a tool: the organisation's own, or the built-in one; case does not matter."""
    own = tools.get(name)
    if own is not None:
        return _decode_tool(own)
    built_in = TOOLS.get(name)
    return built_in or _find_in_other_case(tools, name)


def _find_in_other_case(tools: Mapping[str, bytes], name: str) -> Tool | None:
    """Return the entry whose name differs by case only; None if several do, as they may in an earlier database."""
    key, lower = case_key(name), name.lower()
    matches = [one for one in tools if one.lower() == lower and case_key(one) == key]
    if matches:
        return _decode_tool(tools[matches[0]]) if len(matches) == 1 else None
    return TOOLS.get(key)


SQL_TOOLS = frozenset({"execute_sql", "database_query", "database_read", "read_database", "query_data"})
"""Tools that run the same statements under other names."""

FAMILIES: tuple[frozenset[str], ...] = (
    SQL_TOOLS,
    frozenset({"file_read", "read_file"}),
    frozenset({"file_delete", "delete_files"}),
)
"""Tools that do the same: a block of one is a block of all."""


def family_of(name: str) -> frozenset[str]:
    """Return the tools that do the same as this one, on any server; `database_write` runs SQL as well."""
    names = frozenset(map(fold_name, tool_name.possible_tool_names(name)))
    families = [family for family in FAMILIES if not family.isdisjoint(names)]
    return frozenset().union(*families, SQL_TOOLS if "database_write" in names else ())


INFORMATION_ONLY_TOOLS = frozenset({"release_tool_definition", "release_agent_card"})
"""Tools whose parameters only inform the approver: they name nothing that is executed."""

OPTIONAL_ENGINE = frozenset({"sql", "code"})
"""Engines that verify a tool call only if it carries a query or code; any other call is analyzed as a tool."""

NEEDS_QUERY = frozenset({"execute_sql", "database_query", "execute_code"})


class ResolvedAction(NamedTuple):
    """The action with its registry entry, its analyzer and the risk before analysis."""

    name: str
    tool: Tool
    analyzer: str
    base: Risk
    effect: EffectKind | None
    is_tool: bool
    custom: bool = False
    """True if the tool is not registered: then it is analyzed by its name, parameters and values."""
    executable_text: "ExecutableText | None" = None
    """Text of an unregistered tool's call that would be executed."""


_NOT_NAME_CHARACTER = re.compile(r"[^a-z0-9_]")


def resembles_built_in(name: str) -> bool:
    """Return True if the name is another spelling of a built-in tool's name, on any server."""
    plain = _NOT_NAME_CHARACTER.sub("", fold_name(name))
    own = tool_name.possible_tool_names(name)
    return any(reading in TOOLS and reading not in own for reading in tool_name.possible_tool_names(plain))


def built_in_of(name: str) -> Tool | None:
    """Return the built-in tool with the same name as a server's own tool, a dangerous one first, or None."""
    matches = [TOOLS[reading] for reading in tool_name.possible_tool_names(name) if reading in TOOLS]
    return max(matches, key=lambda tool: tool.dangerous, default=None)


def custom_tool(name: str) -> Tool:
    """Return the entry of an unregistered tool: the built-in one of the same name, else by the meaning of its name."""
    built_in = built_in_of(name)
    if built_in is not None:
        return msgspec.structs.replace(built_in, name=name, verification_engine=None)
    meaning = meaning_of(name)
    return Tool(name=name, risk_level=_BASE_RISK.get(meaning, "medium"), effect=effect_of(meaning))


_BASE_RISK = {EffectKind.READ.value: "low", UNKNOWN: "high"}


def resolve_registered_tool(name: str, tool: Tool, action: Action) -> ResolvedAction:
    """Return the action with the analyzer for a call of a registered tool."""
    analyzer = tool.verification_engine or TOOL
    if analyzer in OPTIONAL_ENGINE and name not in NEEDS_QUERY:
        analyzer = analyzer if text_of(action, "query") or text_of(action, "code") else TOOL
    is_tool = action.type == TOOL_CALL or analyzer in (TOOL, PATH, SHELL)
    return ResolvedAction(name, tool, analyzer, _RISK_LEVELS[tool.risk_level], tool.effect, is_tool)


_SPELLINGS = {
    "query": ("query", "sql", "statement", "sql_query", "expression", "command"),
    "code": ("code",),
    "target": ("target", "path", "file", "filepath", "filename", "file_path", "url", "uri"),
}

_ANALYZED_FIELDS = {"code": ("code", "query"), PATH: ("target",), TOOL: ()}
"""Fields that an analyzer reads; an engine and the shell guard read the query."""


def analyzed_fields(resolved_action: ResolvedAction) -> tuple[str, ...]:
    """Return the fields whose text is analyzed."""
    if resolved_action.analyzer == TOOL and resolved_action.effect is EffectKind.NETWORK:
        return ("target",)
    return _ANALYZED_FIELDS.get(resolved_action.analyzer, ("query",))


def values_of(action: Action, fields: tuple[str, ...]) -> set[str]:
    """Return every text given for `fields`. Two different ones are refused: it is not known which would be executed."""
    parameters: Mapping[str, Any] = action.parameters or {}
    values: set[str] = set()
    for field in fields:
        for text in (getattr(action, field), *map(parameters.get, _SPELLINGS[field])):
            if isinstance(text, str) and text:
                values.add(text)
    return values


def text_of(action: Action, field: str) -> str:
    """Return a field of the action; a tool call has it among its parameters."""
    direct: str | None = getattr(action, field)
    if direct or not action.parameters:
        return direct or ""
    spelling = _spelling_of(action, field)
    return "" if spelling is None else str(action.parameters[spelling])


def with_fields_replaced(action: Action, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of the action with `fields` replaced in place, also inside the parameters."""
    members: dict[str, Any] = msgspec.json.decode(action.canonical)
    for field, value in fields.items():
        spelling = None if getattr(action, field) else _spelling_of(action, field)
        if spelling is None:
            members[field] = value
        else:
            members["parameters"] = {**members["parameters"], spelling: value}
    return members


def _spelling_of(action: Action, field: str) -> str | None:
    parameters: Mapping[str, Any] = action.parameters or {}
    for spelling in _SPELLINGS[field]:
        value = parameters.get(spelling)
        if isinstance(value, str) and value:
            return spelling
    return None
