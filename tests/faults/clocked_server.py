"""Server with a wall clock that a test sets through a memory-mapped file.

The application and its store are real; leases and waits use the clock of the machine.
"""

import argparse
import mmap
import socket
import struct
import sys
from pathlib import Path
from typing import Self

import uvicorn

from qwed.api.app import App
from qwed.cli.multiprocess.process import bind_socket
from qwed.kernel.bootstrap import open_services
from qwed.model.clock import Clock
from qwed.settings import settings_from
from tests.support.server import Server

_NOW = struct.Struct("d")


class WallClock:
    """Wall clock in a shared file; every process reads a new time at once."""

    def __init__(self, file: Path, now: float | None = None) -> None:
        if now is not None:
            file.write_bytes(_NOW.pack(now))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), _NOW.size)

    @property
    def now(self) -> float:
        return float(_NOW.unpack_from(self._map)[0])

    @now.setter
    def now(self, seconds: float) -> None:
        _NOW.pack_into(self._map, 0, seconds)


class ClockedServer(Server):
    """Server that starts at a time the test chooses."""

    def __init__(self, data_dir: Path, now: float, **settings: str) -> None:
        file = data_dir.parent / "clock"
        self.wall = WallClock(file, now)
        super().__init__(data_dir, self._command(file), **settings)

    @staticmethod
    def _command(file: Path) -> tuple[str, ...]:
        return (sys.executable, "-m", "tests.faults.clocked_server", "--clock", str(file))

    def again(self) -> Self:
        """Start another process on the same directory with the same clock."""
        other = type(self).__new__(type(self))
        other.wall = self.wall
        Server.__init__(other, self.data_dir, self._command(self.data_dir.parent / "clock"))
        return other


def main() -> None:
    """Serve until killed or asked to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--clock", type=Path)
    options = parser.parse_args()
    wall = WallClock(options.clock)
    opened = open_services(settings_from(data_dir=options.data_dir), clock=Clock(now=lambda: wall.now))
    listening = bind_socket("127.0.0.1", 0)
    listening.listen(socket.SOMAXCONN)
    host, port = listening.getsockname()
    print(f"listens on http://{host}:{port}", flush=True)
    # Without lifespan the engine workers start with the first request for them, and there is none.
    uvicorn.Server(uvicorn.Config(App(opened.services), log_config=None, lifespan="off")).run(sockets=[listening])


if __name__ == "__main__":
    main()
