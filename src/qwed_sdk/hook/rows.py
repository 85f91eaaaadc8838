"""Which action a tool of an agent is: the table, and how a row of it is read from a file."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_sdk.hook.call import Unusable, quoted
from qwed_sdk.hook.reading import read_object

FIELDS = ("query", "code", "target")
"""The fields of an action that an argument of a tool can be."""
_LITERAL = ("type", "tool")


class Row(NamedTuple):
    """One tool: the type of its action, and which argument is which field. What is left goes under `parameters`."""

    type: str
    query: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    """Names of that argument in one agent or another; a call uses one of them."""
    tool: str | None = None
    """With type `tool_call`: the tool it is known as."""
    ignored: tuple[str, ...] = ()
    """Arguments that only comment on the call, and change nothing about it."""
    inside: tuple[str, ...] = ()
    """Arguments that choose files below the target."""
    directory: tuple[str, ...] = ()
    """The argument that says where a command runs."""
    here: bool = False
    """Without a target it is the directory the agent works in."""


_PATH = ("file_path", "path")
_FOLDER = ("path", "dir_path")
_SHELL = Row(
    "shell_command",
    query=("command", "command_line"),
    ignored=("description",),
    directory=("working_directory", "dir_path", "directory"),
)
_READ = Row("file_read", target=("file_path", "absolute_path", "path"))
_WRITE = Row("file_write", target=_PATH)
_NOTE = Row("tool_call", tool="log_message")
_SEARCH = Row("tool_call", tool="search_web")

_GLOB = Row("file_read", target=_FOLDER, inside=("pattern",), here=True)
_GREP = Row("file_read", target=_FOLDER, inside=("glob",), here=True)
_FOLDERS = Row("file_read", target=_FOLDER, here=True)
_FETCH = Row("api_call", target=("url",))

_CLAUDE_CODE = {
    "Bash": _SHELL,
    "Read": _READ,
    "Write": _WRITE,
    "Edit": _WRITE,
    "MultiEdit": _WRITE,
    "NotebookRead": Row("file_read", target=("notebook_path",)),
    "NotebookEdit": Row("file_write", target=("notebook_path",)),
    "Glob": _GLOB,
    "Grep": _GREP,
    "LS": _FOLDERS,
    "WebFetch": _FETCH,
    "WebSearch": _SEARCH,
    "TodoWrite": _NOTE,
}
_GEMINI_CLI = {
    "run_shell_command": _SHELL,
    "read_file": _READ,
    "write_file": _WRITE,
    "replace": _WRITE,
    "list_directory": _FOLDERS,
    "glob": _GLOB,
    "search_file_content": Row("file_read", target=_FOLDER, inside=("include",), here=True),
    "google_web_search": _SEARCH,
    "write_todos": _NOTE,
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
    "update_todo": _NOTE,
}

ROWS: dict[str, dict[str, Row]] = {
    "claude-code": _CLAUDE_CODE,  # and Codex, which sends the same
    "gemini-cli": _GEMINI_CLI,
    "copilot-cli": _COPILOT_CLI,
    "cursor": _CLAUDE_CODE | {"Shell": _SHELL},
    "windsurf": {"Shell": _SHELL, "Read": _READ, "Write": _WRITE},
    "generic": _CLAUDE_CODE
    | {"shell_command": Row("shell_command", query=("query", "command"), ignored=("description",))},
}
"""The tools of each agent: a name means something only where that agent says it. Whatever is not here is a `tool_call`
of that name, and an unknown tool is denied."""

Rows = Mapping[str, "Row | None"]


def row_of(agent: str, tool: str, own: Rows) -> Row | None:
    """The row of a tool; one of the reader's own comes first."""
    return own[tool] if tool in own else ROWS.get(agent, {}).get(tool)


def rows_from(data: bytes, where: str) -> Rows:
    """The rows of a file, which come before those of the table; `null` is none at all."""
    written = read_object(data, where)
    return {tool: None if row is None else _row(tool, row) for tool, row in written.items()}


def _row(tool: str, written: Any) -> Row:
    if not isinstance(written, Mapping) or not isinstance(written.get("type"), str):
        raise Unusable(f"the row of {quoted(tool)} must be an object with a `type`")
    unknown = sorted(set(written) - set(Row._fields))
    if unknown:
        raise Unusable(f"the row of {quoted(tool)} has no member {quoted(unknown[0])}: {', '.join(Row._fields)}")
    return Row(**{member: _value(tool, member, value) for member, value in written.items()})


def _value(tool: str, member: str, value: Any) -> Any:
    if member == "here":
        if not isinstance(value, bool):
            raise Unusable(f"`here` in the row of {quoted(tool)} must be true or false")
        return value
    if isinstance(value, str) and value:
        return value if member in _LITERAL else (value,)
    names = value if isinstance(value, list) and member not in _LITERAL else [None]
    if not all(isinstance(name, str) and name for name in names):
        raise Unusable(f"`{member}` in the row of {quoted(tool)} must name an argument of the tool")
    return tuple(names)
