"""Spec 5.3 and ruling 4.4: the built-in action types and tools, an organisation's own, and what a name stands for."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from qwed.guards.tool_approval import folded
from qwed.kernel.request import Action
from qwed.words import EffectKind, Risk, tool_name

if TYPE_CHECKING:
    from qwed.kernel.judging.told import Told

TOOL_CALL = "tool_call"
A2A_MESSAGE = "a2a_message"
"""What a message to another agent is called in the record; nobody asks for one as an action."""

TOOL, PATH, SHELL = "tool", "path", "shell"
"""Judges that are no engine: what has no engine of its own reads VERIFIED by one of these."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the registry."""

    name: str
    risk_level: str
    requires_verification: bool = True
    requires_approval: bool = False
    verification_engine: str | None = None
    sandbox_required: bool = False
    dangerous: bool = False
    effect: EffectKind | None = None

    @property
    def has_engine(self) -> bool:
        """Whether this type is judged by an engine of its own, and so by `allowed_engines`."""
        return self.verification_engine not in (None, PATH, SHELL) and self.effect in (None, EffectKind.EXECUTE)

    @property
    def risk(self) -> Risk:
        """The row's risk as a value."""
        return Risk.of(self.risk_level)


def _row(name: str, risk: str, effect: EffectKind | None = None, engine: str | None = None, **more: bool) -> Tool:
    return Tool(name=name, risk_level=risk, effect=effect, verification_engine=engine, **more)


_E = EffectKind

# Guide, Risk assessment; INTERFACES 1. An action type is also a tool of the same name.
ACTION_TYPES: dict[str, Tool] = {
    row.name: row
    for row in (
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
    row.name: row
    for row in (
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

ONLY_READ = frozenset({"release_tool_definition", "release_agent_card"})
"""Tools whose parameters are read by the person who decides and by nobody else: they name nothing that is done."""

OPTIONAL_ENGINE = frozenset({"sql", "code"})
"""Engines that judge a tool only where its call carries a query or code; a bare call is judged as a tool."""

NEEDS_QUERY = frozenset({"execute_sql", "database_query", "execute_code"})

READING_VERBS = frozenset(
    [
        "get",
        "list",
        "read",
        "search",
        "fetch",
        "find",
        "query",
        "lookup",
        "show",
        "describe",
        "view",
        "count",
        "check",
        "summarize",
    ]
)
DELETING = frozenset(
    ["delete", "drop", "remove", "destroy", "purge", "truncate", "wipe", "erase", "unlink", "rm", "rmdir"]
)
_EFFECT_WORDS: dict[EffectKind, frozenset[str]] = {
    _E.DELETE: DELETING,
    _E.SPEND: frozenset(
        ["money", "payment", "payments", "pay", "payout", "payouts", "refund", "refunds", "purchase", "wire"]
    ),
    _E.ADMIN: frozenset(["shutdown", "revoke", "grant", "sudo"]),
    _E.COMMUNICATE: frozenset(
        {"send", "email", "mail", "sms", "notify", "post", "publish", "tweet", "share", "upload", "export", "forward"}
    ),
    _E.EXECUTE: frozenset(
        ["exec", "execute", "eval", "shell", "spawn", "bash", "zsh", "powershell", "terminal", "subprocess", "ssh"]
    ),
}
_DESTROYING = ("delete", "destroy", "truncate", "purge", "wipe", "erase")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class Subject(NamedTuple):
    """What is to be judged, by whom, and how risky it is before anyone has looked."""

    name: str
    row: Tool
    judge: str
    base: Risk
    effect: EffectKind | None
    is_tool: bool
    custom: bool = False
    """Whether nobody described the tool: then it is judged by what its names and values tell."""
    told: "Told | None" = None
    """The text of a custom tool's call that would be run."""


def words_of(name: str) -> list[str]:
    """The words in a tool's name: `sendMoney`, `send-money` and `send_money` are the same two."""
    return [word.lower() for word in _WORD.findall(name)]


_NOUNS = frozenset(["payment", "payments", "payout", "payouts", "refunds"])
"""What is no verb in any name: to list payments pays nobody."""
_JOINING = frozenset(["and", "then", "or"])
_TWO_WORDS = frozenset([("check", "out"), ("check", "in"), ("find", "replace"), ("search", "replace")])
"""Verbs that begin like one that reads."""


def _only_reads(words: list[str]) -> bool:
    """Whether the verb reads, and no other is joined to it: `get_and_update` does more."""
    if not words or words[0] not in READING_VERBS or tuple(words[:2]) in _TWO_WORDS:
        return False
    return all(after in READING_VERBS for each, after in pairwise(words) if each in _JOINING)


def effect_in_name(name: str) -> EffectKind | None:
    """What a custom tool says it does, where its name says so."""
    name = tool_name.bare(name)
    words = words_of(name)
    if name.lower().startswith(_DESTROYING):
        return EffectKind.DELETE
    told = words[:1] + [word for word in words[1:] if word not in _NOUNS] if _only_reads(words) else words
    for effect, telling in _EFFECT_WORDS.items():
        if telling.intersection(told):
            return effect
    return EffectKind.READ if _only_reads(words) else None


_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_]")


def resembles_built_in(name: str) -> bool:
    """Whether a name is another spelling of a built-in tool's, whichever server offers it."""
    plain = _NOT_IN_A_NAME.sub("", folded(name))
    own = tool_name.readings(name)
    return any(each in TOOLS and each not in own for each in tool_name.readings(plain))


def built_in_of(name: str) -> Tool | None:
    """The built-in tool whose very name a server gives its own; a dangerous one before any other."""
    found = [TOOLS[each] for each in tool_name.readings(name) if each in TOOLS]
    return max(found, key=lambda row: row.dangerous, default=None)


def custom_tool(name: str) -> Tool:
    """The row of a tool nobody described: a built-in one's if it is called so, LOW if it only reads, else MEDIUM."""
    known = built_in_of(name)
    if known is not None:
        return msgspec.structs.replace(known, name=name, verification_engine=None)
    effect = effect_in_name(name)
    return Tool(name=name, risk_level="low" if effect is EffectKind.READ else "medium", effect=effect)


def subject_of(name: str, row: Tool, action: Action) -> Subject:
    """Who judges this call of a tool that somebody described."""
    judge = row.verification_engine or TOOL
    has_text = any(text_of(action, field) for field in ("query", "code"))
    if judge in OPTIONAL_ENGINE and not has_text and name not in NEEDS_QUERY:
        judge = TOOL
    is_tool = action.type == TOOL_CALL or judge in (TOOL, PATH, SHELL)
    return Subject(name, row, judge, row.risk, row.effect, is_tool)


_SPELLINGS = {
    "query": ("query", "sql", "statement", "sql_query", "expression", "command"),
    "code": ("code",),
    "target": ("target", "path", "file", "filepath", "filename", "file_path", "url", "uri"),
}

_JUDGED_FIELDS = {"code": ("code", "query"), PATH: ("target",), TOOL: ()}
"""The fields a judge reads; an engine or the shell guard reads the query."""


def fields_judged(subject: Subject) -> tuple[str, ...]:
    """Which texts of the action decide about it."""
    if subject.judge == TOOL and subject.effect is EffectKind.NETWORK:
        return ("target",)
    return _JUDGED_FIELDS.get(subject.judge, ("query",))


def readings(action: Action, fields: tuple[str, ...]) -> set[str]:
    """Every text the action gives for `fields`. Two different ones are one too many: who knows which is executed?"""
    parameters: Mapping[str, Any] = action.parameters or {}
    direct = [getattr(action, field) for field in fields]
    spelled = [parameters.get(spelling) for field in fields for spelling in _SPELLINGS[field]]
    return {text for text in (*direct, *spelled) if isinstance(text, str) and text}


def text_of(action: Action, field: str) -> str:
    """A field of the action; a tool call carries it among its parameters."""
    direct: str | None = getattr(action, field)
    if direct:
        return direct
    spelling = _spelling_of(action, field)
    return "" if spelling is None or action.parameters is None else str(action.parameters[spelling])


def repaired(action: Action, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the action with `fields` replaced where they stood, among the parameters if that is where."""
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
