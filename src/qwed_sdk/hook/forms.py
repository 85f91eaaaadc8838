"""The forms in which agents tell their hooks of a tool call, as a table from the name of the event."""

import os.path
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from qwed_sdk.hook.call import Call, Unusable, quoted
from qwed_sdk.hook.reading import read_object

Raw = Mapping[str, Any]

_LONGEST_NAME = 128
_LONGEST_SESSION = 1024
_TURNS = ("prompt_id", "turn_id", "generation_id", "execution_id")
"""What Claude Code, Codex, Cursor and Windsurf name anew with every prompt."""

ASKING_MODES = frozenset({"default", "plan", "acceptEdits"})
"""The permission modes of Claude Code in which a person is there and is asked."""
_NOT_CLAUDE_CODE = frozenset({"turn_id", "model", "cursor_version", "timestamp"})
"""Members other agents add to the same form. They take `ask` for nothing and run the tool."""


class Form(NamedTuple):
    """How one event is read. An event before the tool runs has no success, whatever else its input says."""

    agent: str
    read: Callable[[Raw], Call]
    success: bool | None = None
    """After it ran: how it went where the input itself does not tell."""


def read_call(data: bytes) -> Call:
    """The tool call in what a hook was given; Unusable where the form is none of the known ones."""
    raw = read_object(data)
    form = _form_of(raw)
    call = form.read(raw)
    told = call.success if form is GENERIC or (form.success is not None and call.success is not None) else form.success
    return call._replace(agent=form.agent, tool=_tool_name(call.tool), success=told)


def _form_of(raw: Raw) -> Form:
    for member, forms in (("hook_event_name", EVENTS), ("agent_action_name", WINDSURF)):
        if member in raw:
            name = raw[member]
            form = forms.get(name) if isinstance(name, str) else None
            if form is None:
                raise Unusable(f"{quoted(name)} is no event of a tool call: known are {', '.join(forms)}")
            return form
    if "toolName" in raw:
        over = raw.get("toolResult") is not None or raw.get("error") is not None
        return COPILOT_AFTER if over else COPILOT_BEFORE
    if "tool" in raw:
        return GENERIC
    raise Unusable('this form of a tool call is not known: the plainest one is {"tool": ..., "parameters": {...}}')


def _tool_name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise Unusable(f"the name of the tool must be 1 to {_LONGEST_NAME} printable characters")
    if not name.startswith("MCP:"):
        return name
    # Cursor writes MCP:server:tool; the rest of the world mcp__server__tool.
    server, between, tool = name[4:].partition(":")
    return _of_server(server, tool) if between else _of_server(None, server)


def _of_server(server: Any, tool: Any) -> str:
    """The name of a server's tool, under which no server passes for another."""
    if not isinstance(tool, str) or not isinstance(server, str | None):
        raise Unusable("the names of a server and of its tool must be text")
    if server is None and "__" not in tool:
        return f"mcp__{tool}"
    if server is None or "__" in server or server.startswith("_") or server.endswith("_") or tool.startswith("_"):
        raise Unusable(f"nobody can tell whose tool {quoted(tool)} is: a server's name has no `__`, and ends in no `_`")
    return f"mcp__{server}__{tool}"


def _text(raw: Raw, *members: str) -> str | None:
    """The first of the members that is there; it must be text."""
    for member in members:
        if raw.get(member) is not None:
            value = raw[member]
            if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_SESSION:
                raise Unusable(f"`{member}` must be text of 1 to {_LONGEST_SESSION} characters")
            return value
    return None


def _object(value: Any, member: str) -> Mapping[str, Any]:
    """Arguments: an object, or the JSON text of one."""
    if isinstance(value, str):
        return read_object(value.encode(), f"`{member}`")
    if not isinstance(value, Mapping):
        raise Unusable(f"`{member}` must be an object with the arguments of the tool")
    return value


def _member(raw: Raw, member: str) -> Any:
    if member not in raw:
        raise Unusable(f"`{member}` is missing")
    return raw[member]


def _cwd(raw: Raw) -> str | None:
    """The directory, where an absolute one is told."""
    roots = raw.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    told = raw.get("cwd") or first
    return told if isinstance(told, str) and os.path.isabs(told) else None


# Claude Code, Codex, Gemini CLI, Copilot CLI (PascalCase events) and Cursor (preToolUse)


def _named(raw: Raw) -> Call:
    tool = _member(raw, "tool_name")
    context = raw.get("mcp_context")
    if context is not None:
        # A server may call its tool `read_file`: it is none of the agent's own.
        tool = _of_server(context.get("server_name") if isinstance(context, Mapping) else None, tool)
    return Call(
        agent="",
        tool=tool,
        arguments=_object(_member(raw, "tool_input"), "tool_input"),
        session=_text(raw, "session_id", "conversation_id"),
        turn=_text(raw, *_TURNS),
        use_id=_text(raw, "tool_use_id"),
        cwd=_cwd(raw),
        success=_told_success(raw),
        can_ask=_can_ask(raw),
    )


def _told_success(raw: Raw) -> bool | None:
    """How it went, where the result says so."""
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


def _cursor(raw: Raw, tool: Any, arguments: Mapping[str, Any]) -> Call:
    return Call(
        agent="",
        tool=tool,
        arguments=arguments,
        session=_text(raw, "conversation_id"),
        turn=_text(raw, *_TURNS),
        use_id=_text(raw, "tool_use_id"),
        cwd=_cwd(raw),
    )


def _cursor_shell(raw: Raw) -> Call:
    return _cursor(raw, "Shell", {"command": _member(raw, "command")})


def _cursor_mcp(raw: Raw) -> Call:
    tool = str(_member(raw, "tool_name"))
    name = tool if tool.startswith("MCP:") else _of_server(None, tool)
    return _cursor(raw, name, _object(_member(raw, "tool_input"), "tool_input"))


def _cursor_file(raw: Raw) -> Call:
    # The content that comes with it is what the model would see: it is none of the action, and stays here.
    return _cursor(raw, "Read", {"file_path": _member(raw, "file_path")})


# Windsurf


def _windsurf(tool: str, *members: str) -> Callable[[Raw], Call]:
    def read(raw: Raw) -> Call:
        info = _object(_member(raw, "tool_info"), "tool_info")
        arguments = {member: info[member] for member in members if member in info}
        return Call("", tool, arguments, _text(raw, "trajectory_id"), _text(raw, *_TURNS), cwd=_cwd(info))

    return read


def _windsurf_mcp(raw: Raw) -> Call:
    info = _object(_member(raw, "tool_info"), "tool_info")
    tool = _of_server(_member(info, "mcp_server_name"), _member(info, "mcp_tool_name"))
    arguments = _object(info.get("mcp_tool_arguments", {}), "mcp_tool_arguments")
    return Call("", tool, arguments, _text(raw, "trajectory_id"), _text(raw, *_TURNS))


# Copilot CLI (camelCase events)


def _copilot(raw: Raw) -> Call:
    result = raw.get("toolResult")
    kind = result.get("resultType") if isinstance(result, Mapping) else None
    success = None if kind is None else kind == "success"
    arguments = _object(_member(raw, "toolArgs"), "toolArgs")
    return Call("", raw["toolName"], arguments, _text(raw, "sessionId"), cwd=_cwd(raw), success=success)


# Any other program

_GENERIC_MEMBERS = frozenset({"tool", "parameters", "conversation", "turn", "id", "cwd", "success"})


def _generic(raw: Raw) -> Call:
    unknown = sorted(set(raw) - _GENERIC_MEMBERS)
    if unknown:
        raise Unusable(f"unknown member {quoted(unknown[0])}: known are {', '.join(sorted(_GENERIC_MEMBERS))}")
    success = raw.get("success")
    if not isinstance(success, bool | None):
        raise Unusable("`success` must be true or false, and says how it went after the tool has run")
    return Call(
        agent="",
        tool=raw["tool"],
        arguments=_object(raw.get("parameters", {}), "parameters"),
        session=_text(raw, "conversation"),
        turn=_text(raw, "turn"),
        use_id=_text(raw, "id"),
        cwd=_cwd(raw),
        success=success,
    )


EVENTS: dict[str, Form] = {
    "PreToolUse": Form("claude-code", _named),
    "PostToolUse": Form("claude-code", _named, success=True),
    "PostToolUseFailure": Form("claude-code", _named, success=False),
    "BeforeTool": Form("gemini-cli", _named),
    "AfterTool": Form("gemini-cli", _named, success=True),
    "preToolUse": Form("cursor", _named),
    "postToolUse": Form("cursor", _named, success=True),
    "postToolUseFailure": Form("cursor", _named, success=False),
    "beforeShellExecution": Form("cursor", _cursor_shell),
    "afterShellExecution": Form("cursor", _cursor_shell, success=True),
    "beforeMCPExecution": Form("cursor", _cursor_mcp),
    "afterMCPExecution": Form("cursor", _cursor_mcp, success=True),
    "beforeReadFile": Form("cursor", _cursor_file),
}
WINDSURF: dict[str, Form] = {
    "pre_run_command": Form("windsurf", _windsurf("Shell", "command_line")),
    "post_run_command": Form("windsurf", _windsurf("Shell", "command_line"), success=True),
    "pre_read_code": Form("windsurf", _windsurf("Read", "file_path")),
    "post_read_code": Form("windsurf", _windsurf("Read", "file_path"), success=True),
    "pre_write_code": Form("windsurf", _windsurf("Write", "file_path", "edits")),
    "post_write_code": Form("windsurf", _windsurf("Write", "file_path", "edits"), success=True),
    "pre_mcp_tool_use": Form("windsurf", _windsurf_mcp),
    "post_mcp_tool_use": Form("windsurf", _windsurf_mcp, success=True),
}
COPILOT_BEFORE = Form("copilot-cli", _copilot)
COPILOT_AFTER = Form("copilot-cli", _copilot, success=False)
GENERIC = Form("generic", _generic)
