"""Mapping of the tools of coding agents to actions, and its file format."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_sdk.errors import UsageError, quote_text
from qwed_sdk.hook.input import read_object

FIELDS = ("query", "code", "target")
"""Fields of an action that an argument can provide."""
_LITERAL_FIELDS = ("type", "tool")


class ToolMapping(NamedTuple):
    """Action type of a tool, and the argument of each field. Other arguments become `parameters`."""

    type: str
    query: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    """Names of the argument in different agents; a call uses one of them."""
    tool: str | None = None
    """For type `tool_call`: the registered name of the tool."""
    ignored: tuple[str, ...] = ()
    """Arguments that only describe the call."""
    inside: tuple[str, ...] = ()
    """Arguments that select files below the target."""
    directory: tuple[str, ...] = ()
    """Arguments that give the working directory of a command."""
    here: bool = False
    """True if the target defaults to the working directory."""


_PATH = ("file_path", "path")
_FOLDER = ("path", "dir_path")
_SHELL = ToolMapping(
    "shell_command",
    query=("command", "command_line"),
    ignored=("description",),
    directory=("working_directory", "dir_path", "directory"),
)
_READ = ToolMapping("file_read", target=("file_path", "absolute_path", "path"))
_WRITE = ToolMapping("file_write", target=_PATH)
_LOG = ToolMapping("tool_call", tool="log_message")
_SEARCH = ToolMapping("tool_call", tool="search_web")

_GLOB = ToolMapping("file_read", target=_FOLDER, inside=("pattern",), here=True)
_GREP = ToolMapping("file_read", target=_FOLDER, inside=("glob",), here=True)
_LIST = ToolMapping("file_read", target=_FOLDER, here=True)
_FETCH = ToolMapping("api_call", target=("url",))

_CLAUDE_CODE = {
    "Bash": _SHELL,
    "Read": _READ,
    "Write": _WRITE,
    "Edit": _WRITE,
    "MultiEdit": _WRITE,
    "NotebookRead": ToolMapping("file_read", target=("notebook_path",)),
    "NotebookEdit": ToolMapping("file_write", target=("notebook_path",)),
    "Glob": _GLOB,
    "Grep": _GREP,
    "LS": _LIST,
    "WebFetch": _FETCH,
    "WebSearch": _SEARCH,
    "TodoWrite": _LOG,
}
_GEMINI_CLI = {
    "run_shell_command": _SHELL,
    "read_file": _READ,
    "write_file": _WRITE,
    "replace": _WRITE,
    "list_directory": _LIST,
    "glob": _GLOB,
    "search_file_content": ToolMapping("file_read", target=_FOLDER, inside=("include",), here=True),
    "google_web_search": _SEARCH,
    "write_todos": _LOG,
}
_COPILOT_CLI = {
    "bash": _SHELL,
    "view": _READ,
    "create": _WRITE,
    "edit": _WRITE,
    "glob": _GLOB,
    "grep": _GREP,
    "web_fetch": _FETCH,
    "web_search": _SEARCH,
    "update_todo": _LOG,
}

DEFAULT_MAPPINGS: dict[str, dict[str, ToolMapping]] = {
    "claude-code": _CLAUDE_CODE,  # and Codex, which sends the same
    "gemini-cli": _GEMINI_CLI,
    "copilot-cli": _COPILOT_CLI,
    "cursor": _CLAUDE_CODE | {"Shell": _SHELL},
    "windsurf": {"Shell": _SHELL, "Read": _READ, "Write": _WRITE},
    "generic": _CLAUDE_CODE
    | {"shell_command": ToolMapping("shell_command", query=("query", "command"), ignored=("description",))},
}
"""Mappings by agent, because agents use the same name for different tools. Any other tool is a `tool_call` of that
name, and an unknown tool is denied."""

ToolMappings = Mapping[str, "ToolMapping | None"]


def mapping_of(agent: str, tool: str, custom: ToolMappings) -> ToolMapping | None:
    """Return the mapping of a tool; custom mappings take precedence."""
    return custom[tool] if tool in custom else DEFAULT_MAPPINGS.get(agent, {}).get(tool)


def parse_mappings(data: bytes, where: str) -> ToolMappings:
    """Return the mappings of a file, which take precedence over the defaults; `null` removes a mapping."""
    members = read_object(data, where)
    return {tool: None if row is None else _parse_mapping(tool, row) for tool, row in members.items()}


def _parse_mapping(tool: str, members: Any) -> ToolMapping:
    if not isinstance(members, Mapping) or not isinstance(members.get("type"), str):
        raise UsageError(f"the row of {quote_text(tool)} must be an object with a `type`")
    unknown = sorted(set(members) - set(ToolMapping._fields))
    if unknown:
        raise UsageError(
            f"the row of {quote_text(tool)} has no member {quote_text(unknown[0])}: {', '.join(ToolMapping._fields)}"
        )
    return ToolMapping(**{member: _parse_value(tool, member, value) for member, value in members.items()})


def _parse_value(tool: str, member: str, value: Any) -> Any:
    if member == "here":
        if not isinstance(value, bool):
            raise UsageError(f"`here` in the row of {quote_text(tool)} must be true or false")
        return value
    if isinstance(value, str) and value:
        return value if member in _LITERAL_FIELDS else (value,)
    names = value if isinstance(value, list) and member not in _LITERAL_FIELDS else [None]
    if not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"`{member}` in the row of {quote_text(tool)} must name an argument of the tool")
    return tuple(names)
