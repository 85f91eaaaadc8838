"""Input formats of the coding agents, as a table by event name."""

import os.path
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from qwed_sdk.errors import UsageError, quote_text
from qwed_sdk.hook.input import read_object
from qwed_sdk.hook.tool_call import ToolCall

Raw = Mapping[str, Any]

_MAX_NAME_CHARS = 128
_MAX_ID_CHARS = 1024
_TURN_MEMBERS = ("prompt_id", "turn_id", "generation_id", "execution_id")
"""Members that Claude Code, Codex, Cursor and Windsurf set anew with every prompt."""

ASKING_MODES = frozenset({"default", "plan", "acceptEdits"})
"""Permission modes of Claude Code in which a person is asked."""
_NOT_CLAUDE_CODE = frozenset({"turn_id", "model", "cursor_version", "timestamp"})
"""Members that other agents add to the same format. They ignore `ask`, and run the tool."""


class InputFormat(NamedTuple):
    """Reader of one event. Before the tool runs, `success` is None whatever the input says."""

    agent: str
    read: Callable[[Raw], ToolCall]
    success: bool | None = None
    """Result after the tool ran, if the input does not say it."""


def read_call(data: bytes) -> ToolCall:
    """Return the tool call in a hook's input; raise UsageError if its format is unknown."""
    raw = read_object(data)
    input_format = _format_of(raw)
    call = input_format.read(raw)
    success = (
        call.success
        if input_format is GENERIC or (input_format.success is not None and call.success is not None)
        else input_format.success
    )
    return call._replace(agent=input_format.agent, tool=_tool_name(call.tool), success=success)


def _format_of(raw: Raw) -> InputFormat:
    for member, formats in (("hook_event_name", EVENTS), ("agent_action_name", WINDSURF)):
        if member in raw:
            name = raw[member]
            input_format = formats.get(name) if isinstance(name, str) else None
            if input_format is None:
                raise UsageError(f"{quote_text(name)} is not an event of a tool call: known are {', '.join(formats)}")
            return input_format
    if "toolName" in raw:
        finished = raw.get("toolResult") is not None or raw.get("error") is not None
        return COPILOT_AFTER if finished else COPILOT_BEFORE
    if "tool" in raw:
        return GENERIC
    raise UsageError('this form of a tool call is not known: the plainest one is {"tool": ..., "parameters": {...}}')


def _tool_name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME_CHARS or not name.isprintable():
        raise UsageError(f"the name of the tool must be 1 to {_MAX_NAME_CHARS} printable characters")
    if not name.startswith("MCP:"):
        return name
    # Cursor writes MCP:server:tool; the other agents write mcp__server__tool.
    server, between, tool = name[4:].partition(":")
    return _mcp_tool_name(server, tool) if between else _mcp_tool_name(None, server)


def _mcp_tool_name(server: Any, tool: Any) -> str:
    """Return the qualified name of a server's tool, so that no server can pass for another."""
    if not isinstance(tool, str) or not isinstance(server, str | None):
        raise UsageError("the names of a server and of its tool must be text")
    if server is None and "__" not in tool:
        return f"mcp__{tool}"
    if server is None or "__" in server or server.startswith("_") or server.endswith("_") or tool.startswith("_"):
        raise UsageError(
            f"cannot determine the server of the tool {quote_text(tool)}: "
            "a server's name must not contain `__`, nor begin or end with `_`"
        )
    return f"mcp__{server}__{tool}"


def _optional_text(raw: Raw, *members: str) -> str | None:
    """Return the first of the members that is present, which must be text."""
    for member in members:
        if raw.get(member) is not None:
            value = raw[member]
            if not isinstance(value, str) or not 0 < len(value) <= _MAX_ID_CHARS:
                raise UsageError(f"`{member}` must be text of 1 to {_MAX_ID_CHARS} characters")
            return value
    return None


def _arguments_object(value: Any, member: str) -> Mapping[str, Any]:
    """Return the arguments: an object, or the JSON text of one."""
    if isinstance(value, str):
        return read_object(value.encode(), f"`{member}`")
    if not isinstance(value, Mapping):
        raise UsageError(f"`{member}` must be an object with the arguments of the tool")
    return value


def _required_member(raw: Raw, member: str) -> Any:
    if member not in raw:
        raise UsageError(f"`{member}` is missing")
    return raw[member]


def _working_directory(raw: Raw) -> str | None:
    """Return the working directory, or None if the input has no absolute one."""
    roots = raw.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    path = raw.get("cwd") or first
    return path if isinstance(path, str) and os.path.isabs(path) else None


# Claude Code, Codex, Gemini CLI, Copilot CLI (PascalCase events) and Cursor (preToolUse)


def _read_tool_event(raw: Raw) -> ToolCall:
    tool = _required_member(raw, "tool_name")
    context = raw.get("mcp_context")
    if context is not None:
        # A server may name its tool `read_file`, like one of the agent's own.
        tool = _mcp_tool_name(context.get("server_name") if isinstance(context, Mapping) else None, tool)
    return ToolCall(
        agent="",
        tool=tool,
        arguments=_arguments_object(_required_member(raw, "tool_input"), "tool_input"),
        session=_optional_text(raw, "session_id", "conversation_id"),
        turn=_optional_text(raw, *_TURN_MEMBERS),
        use_id=_optional_text(raw, "tool_use_id"),
        cwd=_working_directory(raw),
        success=_reported_success(raw),
        can_ask=_can_ask(raw),
    )


def _reported_success(raw: Raw) -> bool | None:
    """Return the success that the result reports, or None."""
    result = raw.get("tool_response", raw.get("tool_result"))
    if not isinstance(result, Mapping):
        return None
    if result.get("error"):
        return False
    kind = result.get("result_type")
    return None if kind is None else kind == "success"


def _can_ask(raw: Raw) -> bool:
    return (
        raw.get("hook_event_name") == "PreToolUse"
        and isinstance(raw.get("transcript_path"), str)
        and isinstance(raw.get("tool_use_id"), str)
        and raw.get("permission_mode") in ASKING_MODES
        and _NOT_CLAUDE_CODE.isdisjoint(raw)
    )


# Cursor's narrower events


def _cursor_call(raw: Raw, tool: Any, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        agent="",
        tool=tool,
        arguments=arguments,
        session=_optional_text(raw, "conversation_id"),
        turn=_optional_text(raw, *_TURN_MEMBERS),
        use_id=_optional_text(raw, "tool_use_id"),
        cwd=_working_directory(raw),
    )


def _read_cursor_shell(raw: Raw) -> ToolCall:
    return _cursor_call(raw, "Shell", {"command": _required_member(raw, "command")})


def _read_cursor_mcp(raw: Raw) -> ToolCall:
    tool = str(_required_member(raw, "tool_name"))
    name = tool if tool.startswith("MCP:") else _mcp_tool_name(None, tool)
    return _cursor_call(raw, name, _arguments_object(_required_member(raw, "tool_input"), "tool_input"))


def _read_cursor_file(raw: Raw) -> ToolCall:
    # The file's content, which the input has too, is not part of the action and is not sent.
    return _cursor_call(raw, "Read", {"file_path": _required_member(raw, "file_path")})


# Windsurf


def _windsurf_reader(tool: str, *members: str) -> Callable[[Raw], ToolCall]:
    def read(raw: Raw) -> ToolCall:
        info = _arguments_object(_required_member(raw, "tool_info"), "tool_info")
        arguments = {member: info[member] for member in members if member in info}
        return ToolCall(
            "",
            tool,
            arguments,
            _optional_text(raw, "trajectory_id"),
            _optional_text(raw, *_TURN_MEMBERS),
            cwd=_working_directory(info),
        )

    return read


def _read_windsurf_mcp(raw: Raw) -> ToolCall:
    info = _arguments_object(_required_member(raw, "tool_info"), "tool_info")
    tool = _mcp_tool_name(_required_member(info, "mcp_server_name"), _required_member(info, "mcp_tool_name"))
    arguments = _arguments_object(info.get("mcp_tool_arguments", {}), "mcp_tool_arguments")
    return ToolCall("", tool, arguments, _optional_text(raw, "trajectory_id"), _optional_text(raw, *_TURN_MEMBERS))


# Copilot CLI (camelCase events)


def _read_copilot(raw: Raw) -> ToolCall:
    result = raw.get("toolResult")
    kind = result.get("resultType") if isinstance(result, Mapping) else None
    success = None if kind is None else kind == "success"
    arguments = _arguments_object(_required_member(raw, "toolArgs"), "toolArgs")
    return ToolCall(
        "", raw["toolName"], arguments, _optional_text(raw, "sessionId"), cwd=_working_directory(raw), success=success
    )


# Any other program

_GENERIC_MEMBERS = frozenset({"tool", "parameters", "conversation", "turn", "id", "cwd", "success"})


def _read_generic(raw: Raw) -> ToolCall:
    unknown = sorted(set(raw) - _GENERIC_MEMBERS)
    if unknown:
        raise UsageError(f"unknown member {quote_text(unknown[0])}: known are {', '.join(sorted(_GENERIC_MEMBERS))}")
    success = raw.get("success")
    if not isinstance(success, bool | None):
        raise UsageError("`success` must be true or false, and says how it went after the tool has run")
    return ToolCall(
        agent="",
        tool=raw["tool"],
        arguments=_arguments_object(raw.get("parameters", {}), "parameters"),
        session=_optional_text(raw, "conversation"),
        turn=_optional_text(raw, "turn"),
        use_id=_optional_text(raw, "id"),
        cwd=_working_directory(raw),
        success=success,
    )


EVENTS: dict[str, InputFormat] = {
    "PreToolUse": InputFormat("claude-code", _read_tool_event),
    "PostToolUse": InputFormat("claude-code", _read_tool_event, success=True),
    "PostToolUseFailure": InputFormat("claude-code", _read_tool_event, success=False),
    "BeforeTool": InputFormat("gemini-cli", _read_tool_event),
    "AfterTool": InputFormat("gemini-cli", _read_tool_event, success=True),
    "preToolUse": InputFormat("cursor", _read_tool_event),
    "postToolUse": InputFormat("cursor", _read_tool_event, success=True),
    "postToolUseFailure": InputFormat("cursor", _read_tool_event, success=False),
    "beforeShellExecution": InputFormat("cursor", _read_cursor_shell),
    "afterShellExecution": InputFormat("cursor", _read_cursor_shell, success=True),
    "beforeMCPExecution": InputFormat("cursor", _read_cursor_mcp),
    "afterMCPExecution": InputFormat("cursor", _read_cursor_mcp, success=True),
    "beforeReadFile": InputFormat("cursor", _read_cursor_file),
}
WINDSURF: dict[str, InputFormat] = {
    "pre_run_command": InputFormat("windsurf", _windsurf_reader("Shell", "command_line")),
    "post_run_command": InputFormat("windsurf", _windsurf_reader("Shell", "command_line"), success=True),
    "pre_read_code": InputFormat("windsurf", _windsurf_reader("Read", "file_path")),
    "post_read_code": InputFormat("windsurf", _windsurf_reader("Read", "file_path"), success=True),
    "pre_write_code": InputFormat("windsurf", _windsurf_reader("Write", "file_path", "edits")),
    "post_write_code": InputFormat("windsurf", _windsurf_reader("Write", "file_path", "edits"), success=True),
    "pre_mcp_tool_use": InputFormat("windsurf", _read_windsurf_mcp),
    "post_mcp_tool_use": InputFormat("windsurf", _read_windsurf_mcp, success=True),
}
COPILOT_BEFORE = InputFormat("copilot-cli", _read_copilot)
COPILOT_AFTER = InputFormat("copilot-cli", _read_copilot, success=False)
GENERIC = InputFormat("generic", _read_generic)
