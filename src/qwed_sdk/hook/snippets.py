"""What to paste into the settings of an agent so that it asks before it acts."""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

_SPARE = 15
_LEAST = 60


class Wanted(NamedTuple):
    """The command of the hook, and the seconds it may take at most."""

    command: str
    seconds: float

    @property
    def limit(self) -> int:
        """What the agent must allow: one that loses its patience first runs the tool."""
        return max(_LEAST, math.ceil(self.seconds) + _SPARE)

    @property
    def blocking(self) -> str:
        """The command before a tool. Agents take 2 alone for a no, so whatever else it ends with becomes 2."""
        return f"{self.command} || exit 2"


def _matched(command: str, wanted: Wanted, unit: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [
        {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": wanted.limit * unit, **more}]}
    ]


def _claude_code(wanted: Wanted) -> dict[str, Any]:
    after = _matched(wanted.command, wanted)
    before = _matched(wanted.blocking, wanted, onFailure="block")
    return {"hooks": {"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after}}


def _codex(wanted: Wanted) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": _matched(wanted.blocking, wanted), "PostToolUse": _matched(wanted.command, wanted)}}


def _gemini_cli(wanted: Wanted) -> dict[str, Any]:
    milliseconds = 1000
    return {
        "hooks": {
            "BeforeTool": _matched(wanted.blocking, wanted, milliseconds),
            "AfterTool": _matched(wanted.command, wanted, milliseconds),
        }
    }


def _copilot_cli(wanted: Wanted) -> dict[str, Any]:
    def row(command: str) -> list[dict[str, Any]]:
        return [{"type": "command", "bash": command, "timeoutSec": wanted.limit}]

    after = row(wanted.command)
    return {
        "version": 1,
        "hooks": {"preToolUse": row(wanted.blocking), "postToolUse": after, "postToolUseFailure": after},
    }


def _cursor(wanted: Wanted) -> dict[str, Any]:
    after = [{"command": wanted.command}]
    before = [{"command": wanted.blocking, "failClosed": True}]
    return {"version": 1, "hooks": {"preToolUse": before, "postToolUse": after, "postToolUseFailure": after}}


def _windsurf(wanted: Wanted) -> dict[str, Any]:
    things = ("run_command", "read_code", "write_code", "mcp_tool_use")
    before = {f"pre_{thing}": [{"command": wanted.blocking, "show_output": True}] for thing in things}
    return {"hooks": before | {f"post_{thing}": [{"command": wanted.command}] for thing in things}}


SNIPPETS: dict[str, Callable[[Wanted], dict[str, Any]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "copilot-cli": _copilot_cli,
    "cursor": _cursor,
    "gemini-cli": _gemini_cli,
    "windsurf": _windsurf,
}


def snippet(agent: str, wanted: Wanted) -> str:
    """The settings as they are pasted."""
    return json.dumps(SNIPPETS[agent](wanted), indent=2)
