"""Conversion of a tool call to the action that is verified."""

import os.path
import shlex
from collections.abc import Mapping
from typing import Any

from qwed_sdk.errors import UsageError, quote_text
from qwed_sdk.hook.tool_call import ToolCall
from qwed_sdk.hook.tool_mapping import FIELDS, ToolMapping, ToolMappings, mapping_of

_FILE_ACTIONS = frozenset({"file_read", "read_file", "file_write", "file_delete"})


def action_of(call: ToolCall, custom: ToolMappings) -> dict[str, Any]:
    """Return the action of a tool call; raise UsageError if an argument that its mapping names is missing."""
    mapping = mapping_of(call.agent, call.tool, custom)
    if mapping is None:
        return _without_empty({"type": "tool_call", "tool": call.tool, "parameters": dict(call.arguments)})
    left = {name: value for name, value in call.arguments.items() if name not in mapping.ignored}
    fields = {field: _pop_field(left, getattr(mapping, field), field, call, mapping) for field in FIELDS}
    if mapping.type == "shell_command":
        fields["query"] = _with_directory(fields["query"], left, mapping, call)
    if mapping.type in _FILE_ACTIONS:
        fields["target"] = _absolute_path(fields["target"], left, mapping, call)
    return _without_empty({"type": mapping.type, "tool": mapping.tool, **fields, "parameters": left})


def _without_empty(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != {}}


def _pop_field(
    left: dict[str, Any], names: tuple[str, ...], field: str, call: ToolCall, mapping: ToolMapping
) -> str | None:
    """Remove the argument of this field from `left`, and return it."""
    if not names:
        return None
    name = _used_name(left, names, call)
    if name is None and field == "target" and mapping.here:
        return call.cwd or "."
    value = None if name is None else left.pop(name)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{quote_text(call.tool)} has no text in `{name or names[0]}`: its row names that argument")
    return value


def _used_name(left: Mapping[str, Any], names: tuple[str, ...], call: ToolCall) -> str | None:
    """Return the name that the call uses; raise UsageError if it uses two, because the tool may read either."""
    used = [name for name in names if name in left]
    if len(used) > 1:
        raise UsageError(f"{quote_text(call.tool)} has both `{used[0]}` and `{used[1]}`: give one of them")
    return used[0] if used else None


def _with_directory(command: str | None, left: dict[str, Any], mapping: ToolMapping, call: ToolCall) -> str | None:
    """Return the command after a `cd` to its directory: `cat shadow` differs between here and /etc.

    With `|| exit` it is certain that all that follows runs there.
    """
    name = _used_name(left, mapping.directory, call)
    argument = None if name is None else left.pop(name)
    if not isinstance(argument, str | None):
        raise UsageError(f"`{name}` of {quote_text(call.tool)} must be the name of a directory")
    directory = os.path.join(call.cwd or "", argument) if argument else call.cwd
    if not directory or command is None:
        return command
    return f"cd {shlex.quote(directory)} || exit\n{command}"


def _absolute_path(target: str | None, left: Mapping[str, Any], mapping: ToolMapping, call: ToolCall) -> str | None:
    """Return the absolute path, with the pattern that selects files below it."""
    if target is None:
        return None
    patterns = [left[name] for name in mapping.inside if left.get(name) is not None]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(f"`{mapping.inside[0]}` of {quote_text(call.tool)} must be text")
    path = os.path.join(target, *patterns)
    return path if path.startswith("~") else os.path.join(call.cwd or "", path)
