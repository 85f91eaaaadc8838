"""Runner of `qwed hook`, in this process with real descriptors, or in a process of its own."""

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
CAUGHT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)


class HookOutput(NamedTuple):
    """Exit code and output of the hook."""

    code: int
    out: str
    err: str


def claude_event(tool: str, tool_input: Any, use_id: str = "toolu_01", **members: Any) -> dict[str, Any]:
    """Return the input that Claude Code sends to its hooks before a tool runs."""
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


def encode_input(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


class HookRunner:
    """Runs the hook in this process."""

    def __init__(self, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capfd = capfd

    def __call__(self, value: Any, *arguments: str) -> HookOutput:
        self._capfd.readouterr()
        with _restored_signals(), _standard_input(encode_input(value)):
            code = main(["hook", *arguments])
        return HookOutput(code, *self._capfd.readouterr())

    @property
    def files(self) -> list[Path]:
        """Stored session files."""
        return sorted((self.home / ".qwed" / "hook").glob("*.json"))

    @property
    def step(self) -> int:
        """Last step number of the only turn."""
        (step,) = self.stored()["steps"].values()
        return int(step)

    def stored(self) -> dict[str, Any]:
        """Return the stored state of the only session."""
        (file,) = self.files
        state: dict[str, Any] = json.loads(file.read_text())
        return state


@contextmanager
def _restored_signals() -> Iterator[None]:
    """Restore the signal handlers, with which the hook would end this process."""
    before = {number: signal.getsignal(number) for number in CAUGHT_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _standard_input(data: bytes) -> Iterator[None]:
    saved = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def hook_environment(home: Path, **variables: str) -> dict[str, str]:
    """Return a minimal environment of a hook; it has no variables of qwed except the named ones."""
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**inherited, "HOME": str(home), **variables}


def run_process(
    value: Any, *arguments: str, env: dict[str, str], command: tuple[str, ...] = COMMAND, **how: Any
) -> HookOutput:
    """Run the hook in a process of its own."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    done = subprocess.run([*command, *arguments], input=encode_input(value), env=env, timeout=60, **how)
    return HookOutput(done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode())
