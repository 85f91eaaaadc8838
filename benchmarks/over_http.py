"""Durable decisions over HTTP beside bare echo on the same server, from a second process on loopback."""

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from benchmarks.load import Load, drive, post

REQUESTS = 4000
CONNECTIONS = 32

ACTION: dict[str, str] = {"type": "execute_sql", "query": "SELECT id, name FROM customers WHERE status = 'active'"}


class Rig(NamedTuple):
    """Both servers running; `echo` and `decide` drive one load each. `resident_mb` is the idle server's memory."""

    echo: Callable[[], Load]
    decide_with_jwt: Callable[[], Load]
    decide_without_jwt: Callable[[], Load]
    decide_new_sql: Callable[[], Load]
    resident_mb: float


@contextmanager
def rig() -> Iterator[Rig]:
    """Start both, stop both."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _echo() as echo_port,
        qwed_server(Path(folder) / "data") as (base, pid),
    ):
        key = (Path(folder) / "data" / "owner.key").read_text().strip()
        resident = _resident_mb(pid)
        agent = _register(base, key)
        place = urlsplit(base)
        host, port = place.hostname or "127.0.0.1", place.port or 80
        turn = itertools.count()

        def decide(options: dict[str, Any], query: Callable[[int], str]) -> Load:
            run = next(turn)
            streams = [_requests(agent, f"c{run}_{n}", options, query) for n in range(CONNECTIONS)]
            return drive(host, port, streams, count=REQUESTS, expect=b'"APPROVED"')

        def echo() -> Load:
            streams = [_requests(agent, "c", {}, _same) for _ in range(CONNECTIONS)]
            return drive("127.0.0.1", echo_port, streams, count=REQUESTS, expect=b"execute_sql")

        yield Rig(
            echo=echo,
            decide_with_jwt=lambda: decide({"require_attestation": True}, _same),
            decide_without_jwt=lambda: decide({}, _same),
            decide_new_sql=lambda: decide({}, lambda n: f"{_same(n)} AND id > {n}"),
            resident_mb=resident,
        )


def _same(_n: int) -> str:
    return ACTION["query"]


_numbers = itertools.count()


def _requests(
    agent: dict[str, Any], talk: str, options: dict[str, Any], query: Callable[[int], str]
) -> Iterator[bytes]:
    """An agent at work, 50 steps a conversation; every third step does something else, so it is no loop."""
    headers = {"Authorization": f"Bearer {agent['agent_token']}"}
    for n in itertools.count():
        action = {**ACTION, "query": query(next(_numbers))}
        if n % 3 == 2:
            action["target"] = "replica"
        body = {
            "action": action,
            "context": {"conversation_id": f"{talk}_{n // 50}", "step_number": n % 50 + 1},
            "options": options,
        }
        yield post(f"/agents/{agent['agent_id']}/verify", json.dumps(body).encode(), headers)


def _register(base: str, key: str) -> dict[str, Any]:
    body = {"name": "bench", "principal_id": "bench", "type": "autonomous"}
    response = httpx.post(f"{base}/agents/register", headers={"X-API-Key": key}, json=body)
    response.raise_for_status()
    registered: dict[str, Any] = response.json()
    return registered


@contextmanager
def qwed_server(data_dir: Path, **settings: str) -> Iterator[tuple[str, int]]:
    """A server that is ready: its address and its process."""
    command = [sys.executable, "-m", "qwed.cli", "serve", "--port", "0", "--data-dir", str(data_dir)]
    # One key asks for everybody here: counted like any other, and never full.
    environment = os.environ | {"QWED_RATE_LIMIT_PER_KEY": str(10**9)} | settings
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        base = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        _wait_ready(base)
        try:
            yield base, process.pid
        finally:
            process.terminate()
            process.communicate()


def _wait_ready(base: str) -> None:
    with httpx.Client(base_url=base) as client:
        while client.get("/ready").status_code != 200:
            pass


@contextmanager
def _echo() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, "-m", "benchmarks.echo", str(port)], stderr=subprocess.DEVNULL) as process:
        _wait_open(port)
        try:
            yield port
        finally:
            process.terminate()


def _wait_open(port: int) -> None:
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    return int(kilobytes) / 1024
