"""`qwed hook` asked in this process, through real descriptors, and in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qwed.cli import main

COMMAND = (sys.executable, "-m", "qwed.cli", "hook")
CAUGHT = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)


class Said(NamedTuple):
    """How the hook ended, and what it said."""

    code: int
    out: str
    err: str


def claude(tool: str, tool_input: Any, use_id: str = "toolu_01", **members: Any) -> dict[str, Any]:
    """What Claude Code tells its hooks before a tool runs."""
    return {
        "session_id": "5f0c1d8e-4b7a",
        "transcript_path": "/home/dev/.claude/projects/app/5f0c.jsonl",
        "cwd": "/home/dev/app",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": tool_input,
        "tool_use_id": use_id,
        **members,
    }


def as_bytes(given: Any) -> bytes:
    if isinstance(given, bytes):
        return given
    return given.encode() if isinstance(given, str) else json.dumps(given).encode()


class Hook:
    """Asks in this process."""

    def __init__(self, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capfd = capfd

    def __call__(self, given: Any, *arguments: str) -> Said:
        self._capfd.readouterr()
        with _caught(), _standard_input(as_bytes(given)):
            code = main(["hook", *arguments])
        return Said(code, *self._capfd.readouterr())

    @property
    def files(self) -> list[Path]:
        """What is kept of sessions."""
        return sorted((self.home / ".qwed" / "hook").glob("*.json"))

    @property
    def step(self) -> int:
        """The last number that was used in the one turn there was."""
        (step,) = self.kept()["steps"].values()
        return int(step)

    def kept(self) -> dict[str, Any]:
        """What is kept of the one session there was."""
        (file,) = self.files
        found: dict[str, Any] = json.loads(file.read_text())
        return found


@contextmanager
def _caught() -> Iterator[None]:
    """The hook means to end its process with these; this process goes on."""
    before = {number: signal.getsignal(number) for number in CAUGHT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _standard_input(data: bytes) -> Iterator[None]:
    kept = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def environment(home: Path, **variables: str) -> dict[str, str]:
    """What a hook needs of the environment, and nothing of qwed's that is not named."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), **variables}


def run(given: Any, *arguments: str, env: dict[str, str], command: tuple[str, ...] = COMMAND, **how: Any) -> Said:
    """Ask a process of its own."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    done = subprocess.run([*command, *arguments], input=as_bytes(given), env=env, timeout=60, **how)
    return Said(done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode())
