"""Servers under test: qwed on each store, and the bare echo."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import psutil


class Running(NamedTuple):
    """A ready server: address, first process and data directory."""

    base: str
    pid: int
    data: Path

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.base)
        return parts.hostname or "127.0.0.1", parts.port or 80

    @property
    def owner_key(self) -> str:
        """Key of the first organisation's owner."""
        return (self.data / "owner.key").read_text().strip()

    @property
    def resident_mb(self) -> float:
        """Memory of the server process, without engine workers."""
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20

    def register(self, name: str = "bench") -> dict[str, Any]:
        """Register an agent with wide permissions."""
        body = {"name": name, "principal_id": "bench", "type": "autonomous"}
        answer = httpx.post(f"{self.base}/agents/register", headers={"X-API-Key": self.owner_key}, json=body)
        answer.raise_for_status()
        registered: dict[str, Any] = answer.json()
        return registered

    def cpu_seconds(self) -> float:
        """CPU time of the server and all its processes so far."""
        return cpu_seconds(self.pid)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its running descendants."""
    first = psutil.Process(pid)
    return sum(_cpu(process) for process in [first, *first.children(recursive=True)])


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


@contextmanager
def qwed_server(data: Path, options: Sequence[str] = (), **settings: str) -> Iterator[Running]:
    """Start a server and yield it when it is ready."""
    command = [sys.executable, "-m", "qwed.cli", "serve", "--port", "0", "--data-dir", str(data), *options]
    # One key serves all agents: it is counted like any other, but its limit is never reached.
    environment = os.environ | {"QWED_RATE_LIMIT_PER_KEY": str(10**9)} | settings
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        base = next((word for word in said.split() if word.startswith("http")), None)
        if base is None:
            raise RuntimeError(f"the server did not start: {' '.join(command)}")
        wait_ready(base)
        try:
            yield Running(base, process.pid, data)
        finally:
            process.terminate()
            process.communicate()


def wait_ready(base: str) -> None:
    """Wait until the engines are ready too."""
    with httpx.Client(base_url=base) as client:
        while client.get("/ready").status_code != 200:
            pass


@contextmanager
def echo_server() -> Iterator[tuple[str, int]]:
    """Start a bare echo and yield its host and port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, "-m", "benchmarks.echo", str(port)], stderr=subprocess.DEVNULL) as process:
        _wait_open(port)
        try:
            yield "127.0.0.1", port
        finally:
            process.terminate()


def _wait_open(port: int) -> None:
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
