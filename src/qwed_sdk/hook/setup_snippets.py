"""Settings that make a coding agent call the hook, to paste into its configuration."""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

_SPARE_SECONDS = 15
_MIN_TIMEOUT = 60


class HookCommand(NamedTuple):
    """Command line of the hook, and the longest time it may take."""

    command: str
    seconds: float

    @property
    def limit(self) -> int:
        """Timeout to set in the agent: an agent whose timeout passes first runs the tool."""
        return max(_MIN_TIMEOUT, math.ceil(self.seconds) + _SPARE_SECONDS)

    @property
    def blocking(self) -> str:
        """Command before a tool. Agents take only exit code 2 for a denial, so every other failure becomes 2."""
        return f"{self.command} || exit 2"


def _match_all(command: str, hook: HookCommand, unit: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": hook.limit * unit, **more}]}]


def _claude_code(hook: HookCommand) -> dict[str, Any]:
    after = _match_all(hook.command, hook)
    before = _match_all(hook.blocking, hook, onFailure="block")
    return {"hooks": {"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after}}


def _codex(hook: HookCommand) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": _match_all(hook.blocking, hook), "PostToolUse": _match_all(hook.command, hook)}}


def _gemini_cli(hook: HookCommand) -> dict[str, Any]:
    milliseconds = 1000
    return {
        "hooks": {
            "BeforeTool": _match_all(hook.blocking, hook, milliseconds),
            "AfterTool": _match_all(hook.command, hook, milliseconds),
        }
    }


def _copilot_cli(hook: HookCommand) -> dict[str, Any]:
    def row(command: str) -> list[dict[str, Any]]:
        return [{"type": "command", "bash": command, "timeoutSec": hook.limit}]

    after = row(hook.command)
    return {
        "version": 1,
        "hooks": {"preToolUse": row(hook.blocking), "postToolUse": after, "postToolUseFailure": after},
    }


def _cursor(hook: HookCommand) -> dict[str, Any]:
    after = [{"command": hook.command}]
    before = [{"command": hook.blocking, "failClosed": True}]
    return {"version": 1, "hooks": {"preToolUse": before, "postToolUse": after, "postToolUseFailure": after}}


def _windsurf(hook: HookCommand) -> dict[str, Any]:
    events = ("run_command", "read_code", "write_code", "mcp_tool_use")
    before = {f"pre_{event}": [{"command": hook.blocking, "show_output": True}] for event in events}
    return {"hooks": before | {f"post_{event}": [{"command": hook.command}] for event in events}}


SNIPPETS: dict[str, Callable[[HookCommand], dict[str, Any]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "copilot-cli": _copilot_cli,
    "cursor": _cursor,
    "gemini-cli": _gemini_cli,
    "windsurf": _windsurf,
}


def settings_snippet(agent: str, hook: HookCommand) -> str:
    """Return the settings of an agent as JSON text."""
    return json.dumps(SNIPPETS[agent](hook), indent=2)
