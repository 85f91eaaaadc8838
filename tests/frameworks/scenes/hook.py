"""Coding agent that runs `qwed hook` before each tool as Claude Code does; only exit code 2 is a denial."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from qwed_sdk import QWEDAgentClient
from tests.frameworks.scene import SceneOutcome

NAME = "Coding agents"
PACKAGE = None
HOOK = "`qwed hook`"
_BLOCKS = 2


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received."""
    ran: list[tuple[str, dict[str, Any]]] = []
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        for number, (tool, arguments) in enumerate(calls):
            event = {
                "hook_event_name": "PreToolUse",
                "session_id": agent.conversation_id,
                "tool_name": tool,
                "tool_input": arguments,
                "tool_use_id": f"toolu_{number}",
            }
            answer = _hook(agent, event, Path(home))
            if answer.returncode != _BLOCKS:
                ran.append((tool, arguments))
                _hook(agent, {**event, "hook_event_name": "PostToolUse"}, Path(home))
            texts.append(answer.stderr or "done")
    return SceneOutcome(ran, "\n".join([*texts, "done"]))


def _hook(agent: QWEDAgentClient, event: dict[str, Any], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qwed.cli", "hook"],
        input=json.dumps(event),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "QWED_BASE_URL": agent.client.base_url,
            "QWED_AGENT_ID": agent.agent_id,
            "QWED_AGENT_TOKEN": agent.agent_token or "",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
