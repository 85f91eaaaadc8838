"""Costly inputs are answered within their time and memory limits, never VERIFIED, without delaying others."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.spec.sections import spec
from tests.support.costly_inputs import CostlyInput, costly_inputs
from tests.support.server import Server

SECONDS = 10
MEMORY_MB = 1024


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A dedicated server, so that other tests are not disturbed."""
    server = Server(tmp_path_factory.mktemp("yard") / "data", QWED_ENGINE_MEMORY_MB=str(MEMORY_MB))
    yield server
    assert server.stop() == 0


def peaks_mb(process: int) -> list[int]:
    """Return the peak memory of the process and its live children."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        status = Path(f"/proc/{process}/status").read_text()
        found += [int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")]
        for listed in Path(f"/proc/{process}/task").glob("*/children"):
            found += [peak for child in listed.read_text().split() for peak in peaks_mb(int(child))]
    return found


def of_the_engines(server: Server) -> tuple[int, list[int]]:
    """Return the peak memory of the zygote and its workers, once two workers are up."""
    tick = threading.Event()
    for _ in range(6_000):
        _server, *engines = peaks_mb(server.process.pid)
        if len(engines) >= 3:
            return engines[0], engines[1:]
        tick.wait(0.01)
    raise AssertionError("a worker that was ended is not replaced")


@spec("2.1")
@pytest.mark.parametrize("bomb", list(costly_inputs()), ids=lambda bomb: bomb.name)
def test_a_bomb_is_answered_and_never_verified(bomb: CostlyInput, yard: Server) -> None:
    body = {**bomb.sent(), "options": {"timeout_ms": SECONDS * 1000}}
    with httpx.Client(base_url=yard.base_url, headers={"X-API-Key": yard.owner_key}, timeout=3 * SECONDS) as api:
        answer = api.post(f"/verify/{bomb.engine}", json=body)
        assert api.get("/health").status_code == 200
    assert answer.status_code == 200, answer.text[:500]
    assert answer.json()["status"] in ("FAILED", "BLOCKED", "INCONCLUSIVE", "UNKNOWN"), answer.text[:500]
    assert answer.json()["verified"] is False
    zygote, workers = of_the_engines(yard)
    # The memory that a worker adds to its initial memory is below its limit.
    assert max(workers) < zygote + MEMORY_MB


@spec("2.1")
def test_after_all_of_them_the_engines_answer_as_before(yard: Server) -> None:
    with httpx.Client(base_url=yard.base_url, headers={"X-API-Key": yard.owner_key}, timeout=30) as api:
        assert api.post("/verify/math", json={"expression": "sin(x)^2 + cos(x)^2 = 1"}).json()["status"] == "VERIFIED"
