"""Latency of `/health` while every engine worker is busy with costly inputs."""

import http.client
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from benchmarks.report import Row, Say, absolute, at_most
from tests.support.costly_inputs import CostlyInput, costly_inputs
from tests.support.server import Server

SECONDS = 2
SENDERS = 4


class Pulse(NamedTuple):
    """Latencies of `/health` in milliseconds."""

    beats: int
    median: float
    p99: float
    worst: float


def rows(_rounds: int, _say: Say) -> list[Row]:
    """Measure at rest and under load."""
    quiet, busy = measure()
    name = f"/health while {SENDERS} connections send hostile inputs"
    return [
        absolute("/health at rest, median ms", [quiet.median]),
        absolute(f"{name}, median ms of {busy.beats}", [busy.median]),
        absolute(f"{name}, p99 ms", [busy.p99]),
        absolute(f"{name}, worst ms", [busy.worst], at_most(100)),
    ]


def measure() -> tuple[Pulse, Pulse]:
    """Return the latencies at rest and while costly inputs run, four at a time."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        try:
            _warm(server)
            over = threading.Event()
            quiet = _pulse(server.base_url, over, at_most=300)
            senders = _senders(server)
            threading.Thread(target=_end_after, args=(senders, over), daemon=True).start()
            return quiet, _pulse(server.base_url, over)
        finally:
            server.stop()


def _end_after(senders: list[threading.Thread], over: threading.Event) -> None:
    for sender in senders:
        sender.join()
    over.set()


def _warm(server: Server) -> None:
    httpx.post(f"{server.base_url}/verify/math", json={"expression": "x = x"}, headers=_key(server), timeout=60)


def _key(server: Server) -> dict[str, str]:
    return {"X-API-Key": server.owner_key}


def _senders(server: Server) -> list[threading.Thread]:
    waiting = list(costly_inputs())

    def send() -> None:
        with httpx.Client(base_url=server.base_url, headers=_key(server), timeout=60) as api:
            while waiting:
                bomb: CostlyInput = waiting.pop()
                api.post(f"/verify/{bomb.engine}", json={**bomb.body, "options": {"timeout_ms": SECONDS * 1000}})

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    return senders


def _pulse(base_url: str, over: threading.Event, at_most: int = 1_000_000) -> Pulse:
    place = urlsplit(base_url)
    line = http.client.HTTPConnection(place.hostname or "127.0.0.1", place.port)
    taken: list[float] = []
    while not over.wait(0.01) and len(taken) < at_most:
        started = time.perf_counter()
        line.request("GET", "/health")
        line.getresponse().read()
        taken.append((time.perf_counter() - started) * 1000)
    line.close()
    taken.sort()
    return Pulse(len(taken), statistics.median(taken), taken[int(len(taken) * 0.99)], taken[-1])
