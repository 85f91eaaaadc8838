"""A real `qwed serve` of its own: on a free port, in a temporary directory, and without a trace afterwards."""

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

from qwed.cli.demo.stops import Stops

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

QWED = (sys.executable, "-P", "-m", "qwed.cli")
"""The command itself, whatever lies in the directory one is in."""
_ERROR = re.compile(r"^(qwed|\w+Error): ")
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_MOST_LOG = 4_096
_KEPT_SETTING = "QWED_STARTUP_HOOKS_ALLOW"
"""Where the administrator of a machine has accepted a hook, a server does not start there without it."""


class ServerDidNotStart(Exception):
    """There is no server to play against; the message is what it said."""


class House(NamedTuple):
    """Where the demo happens."""

    place: Path
    base_url: str

    @property
    def data_dir(self) -> Path:
        """The server's data directory."""
        return self.place / "data"

    @property
    def owner_key(self) -> str:
        """The key that the server made when it started."""
        return (self.data_dir / "owner.key").read_text().strip()


@contextmanager
def opened(stops: Stops) -> Iterator[House]:
    """The house while its server runs; neither process nor directory is left, whatever happens in the block."""
    place: Path | None = None
    server: subprocess.Popen[bytes] | None = None
    try:
        with stops.held():
            place = Path(tempfile.mkdtemp(prefix="qwed-demo-"))
            server = _start(place)
        yield House(place, _address(server, place / "log"))
    finally:
        with stops.held():
            _put_away(server, place)


@contextmanager
def directly() -> Iterator[None]:
    """Within the block this machine is asked without a proxy, whatever is set for the world outside."""
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
    """Ours without the settings of qwed: the story is the same for everybody."""
    dropped = ("QWED_", "DOOM_LOOP_")
    return {name: value for name, value in os.environ.items() if name == _KEPT_SETTING or not name.startswith(dropped)}


def _start(place: Path) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def _end_with_us() -> None:
        # Even if nobody is left to put the house away.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    with (place / "log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            [*QWED, "serve", "--json", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(place / "data")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            # Ctrl-C is for the demo, which then ends its server itself.
            start_new_session=True,
            preexec_fn=_end_with_us,
        )


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Where it listens, as its greeting says."""
    greeting, until = b"", time.monotonic() + _START_SECONDS
    while b"\n" not in greeting:
        said = _read_before(until, server.stdout)
        if not said:
            raise ServerDidNotStart(_last_words(log))
        greeting += said
    return str(json.loads(greeting)["url"])


def _read_before(until: float, stream: IO[bytes] | None) -> bytes:
    """What comes next; nothing where it ends, or the time is over."""
    if stream is None:
        return b""
    ready, _, _ = select.select([stream], [], [], max(0.0, until - time.monotonic()))
    return os.read(stream.fileno(), 65_536) if ready else b""


def _last_words(log: Path) -> str:
    lines = log.read_bytes()[-_MOST_LOG:].decode(errors="replace").strip().splitlines()
    return _ERROR.sub("", lines[-1]) if lines else f"it said nothing for {_START_SECONDS:.0f} seconds"


def _put_away(server: subprocess.Popen[bytes] | None, place: Path | None) -> None:
    if server is not None:
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        if server.stdout is not None:
            server.stdout.close()
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)


def wait_until_ready(client: "QWEDClient") -> None:
    """Return when the server can decide; ServerDidNotStart where it takes too long."""
    until = time.monotonic() + _START_SECONDS
    while not client.ready().ready:
        if time.monotonic() > until:
            raise ServerDidNotStart(f"its engines were not ready within {_START_SECONDS:.0f} seconds")
        time.sleep(0.05)
