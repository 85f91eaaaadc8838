"""Temporary `qwed serve` process on a free port, removed with its directory afterwards."""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from qwed.cli.demo.signals import StopSignals

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

QWED = (sys.executable, "-P", "-m", "qwed.cli")
"""Command line of qwed; `-P` ignores modules in the current directory."""
_ERROR = re.compile(r"^(qwed|\w+Error): ")
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_MAX_LOG = 4_096
_KEPT_SETTING = "QWED_STARTUP_HOOKS_ALLOW"
"""Setting that is passed on: without it a server refuses to start on a machine with an accepted startup hook."""


class ServerStartError(Exception):
    """The server did not start; the message is its last log line."""


class DemoServer(NamedTuple):
    """Address and directory of the running server."""

    directory: Path
    base_url: str

    @property
    def data_dir(self) -> Path:
        """Data directory of the server."""
        return self.directory / "data"

    @property
    def owner_key(self) -> str:
        """Owner's API key that the server created."""
        return (self.data_dir / "owner.key").read_text().strip()


@contextmanager
def run_demo_server(stops: StopSignals) -> Iterator[DemoServer]:
    """Yield the running server; its process and directory are removed however the block ends."""
    directory: Path | None = None
    server: subprocess.Popen[bytes] | None = None
    try:
        with stops.deferred():
            directory = Path(tempfile.mkdtemp(prefix="qwed-demo-"))
            server = _start(directory)
        yield DemoServer(directory, _address(server, directory / "log"))
    finally:
        with stops.deferred():
            _clean_up(server, directory)


@contextmanager
def without_proxy() -> Iterator[None]:
    """Connect to 127.0.0.1 without a proxy inside the block."""
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    os.environ.update(dict.fromkeys(before, "127.0.0.1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def environment() -> dict[str, str]:
    """Return the environment without QWED settings, so that the demo is the same for everyone."""
    prefixes = ("QWED_", "DOOM_LOOP_")
    return {name: value for name, value in os.environ.items() if name == _KEPT_SETTING or not name.startswith(prefixes)}


def _start(directory: Path) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def _exit_with_parent() -> None:
        # The server must end even if this process is killed.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    with (directory / "log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            [*QWED, "serve", "--json", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(directory / "data")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            # Ctrl-C must reach only the demo, which then stops the server itself.
            start_new_session=True,
            preexec_fn=_exit_with_parent,
        )


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Return the URL from the first line that the server prints."""
    line, deadline = b"", time.monotonic() + _START_SECONDS
    while b"\n" not in line:
        chunk = _read_before(deadline, server.stdout)
        if not chunk:
            raise ServerStartError(_last_log_line(log))
        line += chunk
    return str(json.loads(line)["url"])


def _read_before(deadline: float, stream: IO[bytes] | None) -> bytes:
    """Return the next bytes; empty at the end of the stream or after the deadline."""
    if stream is None:
        return b""
    ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
    return os.read(stream.fileno(), 65_536) if ready else b""


def _last_log_line(log: Path) -> str:
    lines = log.read_bytes()[-_MAX_LOG:].decode(errors="replace").strip().splitlines()
    return _ERROR.sub("", lines[-1]) if lines else f"no output for {_START_SECONDS:.0f} seconds"


def _clean_up(server: subprocess.Popen[bytes] | None, directory: Path | None) -> None:
    if server is not None:
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        if server.stdout is not None:
            server.stdout.close()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def wait_until_ready(client: "QWEDClient") -> None:
    """Return when the server can decide; raise ServerStartError if it takes too long."""
    deadline = time.monotonic() + _START_SECONDS
    while not client.ready().ready:
        if time.monotonic() > deadline:
            raise ServerStartError(f"its engines were not ready within {_START_SECONDS:.0f} seconds")
        time.sleep(0.05)
