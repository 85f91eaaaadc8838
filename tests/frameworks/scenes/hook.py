"""A coding agent: before each tool it runs `qwed hook` as Claude Code does, and takes exit code 2 alone for a no."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from qwed_sdk import QWEDAgentClient
from tests.frameworks.scene import Outcome

NAME = "Coding agents"
PACKAGE = None
HOOK = "`qwed hook`"
_BLOCKS = 2


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> Outcome:
    """What ran, and everything the model was told."""
    ran: list[tuple[str, dict[str, Any]]] = []
    said: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        for number, (tool, arguments) in enumerate(calls):
            told = {
                "hook_event_name": "PreToolUse",
                "session_id": agent.conversation_id,
                "tool_name": tool,
                "tool_input": arguments,
                "tool_use_id": f"toolu_{number}",
            }
            answer = _hook(agent, told, Path(home))
            if answer.returncode != _BLOCKS:
                ran.append((tool, arguments))
                _hook(agent, {**told, "hook_event_name": "PostToolUse"}, Path(home))
            said.append(answer.stderr or "done")
    return Outcome(ran, "\n".join([*said, "done"]))


def _hook(agent: QWEDAgentClient, told: dict[str, Any], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qwed.cli", "hook"],
        input=json.dumps(told),
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
