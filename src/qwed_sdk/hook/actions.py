"""The action that a tool call is: what is verified must be all of what would be done, and where."""

import os.path
import shlex
from collections.abc import Mapping
from typing import Any

from qwed_sdk.hook.call import Call, Unusable, quoted
from qwed_sdk.hook.rows import FIELDS, Row, Rows, row_of

_FILES = frozenset({"file_read", "read_file", "file_write", "file_delete"})


def action_of(call: Call, own: Rows) -> dict[str, Any]:
    """The action to be verified; Unusable where the call lacks the argument its row names."""
    row = row_of(call.agent, call.tool, own)
    if row is None:
        return _without_nothing({"type": "tool_call", "tool": call.tool, "parameters": dict(call.arguments)})
    left = {name: value for name, value in call.arguments.items() if name not in row.ignored}
    fields = {field: _taken(left, getattr(row, field), field, call, row) for field in FIELDS}
    if row.type == "shell_command":
        fields["query"] = _in_directory(fields["query"], left, row, call)
    if row.type in _FILES:
        fields["target"] = _whole_path(fields["target"], left, row, call)
    return _without_nothing({"type": row.type, "tool": row.tool, **fields, "parameters": left})


def _without_nothing(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != {}}


def _taken(left: dict[str, Any], names: tuple[str, ...], field: str, call: Call, row: Row) -> str | None:
    """The argument that is this field, taken out of what is left."""
    if not names:
        return None
    name = _one_of(left, names, call)
    if name is None and field == "target" and row.here:
        return call.cwd or "."
    value = None if name is None else left.pop(name)
    if not isinstance(value, str) or not value:
        raise Unusable(f"{quoted(call.tool)} has no text in `{name or names[0]}`: its row names that argument")
    return value


def _one_of(left: Mapping[str, Any], names: tuple[str, ...], call: Call) -> str | None:
    """The name that is used; of two nobody knows which one the tool reads."""
    used = [name for name in names if name in left]
    if len(used) > 1:
        raise Unusable(f"{quoted(call.tool)} has both `{used[0]}` and `{used[1]}`: give one of them")
    return used[0] if used else None


def _in_directory(command: str | None, left: dict[str, Any], row: Row, call: Call) -> str | None:
    """The command with the directory it runs in: `cat shadow` is one thing here and another in /etc."""
    named = _one_of(left, row.directory, call)
    told = None if named is None else left.pop(named)
    if not isinstance(told, str | None):
        raise Unusable(f"`{named}` of {quoted(call.tool)} must be the name of a directory")
    directory = os.path.join(call.cwd or "", told) if told else call.cwd
    if not directory or command is None:
        return command
    return f"cd {shlex.quote(directory)}\n{command}"


def _whole_path(target: str | None, left: Mapping[str, Any], row: Row, call: Call) -> str | None:
    """The path from the root on, with the pattern that chooses files below it."""
    if target is None:
        return None
    below = [left[name] for name in row.inside if left.get(name) is not None]
    if not all(isinstance(pattern, str) for pattern in below):
        raise Unusable(f"`{row.inside[0]}` of {quoted(call.tool)} must be text")
    path = os.path.join(target, *below)
    return path if path.startswith("~") else os.path.join(call.cwd or "", path)
