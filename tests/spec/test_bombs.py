"""P6: what is ruinous to work out is answered within its time and memory, never VERIFIED, and nobody else waits."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.spec.sections import spec
from tests.support.bombs import Bomb, bombs
from tests.support.server import Server

SECONDS = 10
MEMORY_MB = 1024


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own: what happens here must not disturb other tests."""
    server = Server(tmp_path_factory.mktemp("yard") / "data", QWED_ENGINE_MEMORY_MB=str(MEMORY_MB))
    yield server
    assert server.stop() == 0


def below(process: int) -> list[int]:
    """Every process that descends from this one."""
    found = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        children = [int(child) for child in listed.read_text().split()]
        found += [grown for child in children for grown in (child, *below(child))]
    return found


def peak_mb(process: int) -> int:
    """The most memory it ever held."""
    status = Path(f"/proc/{process}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


@spec("2.1")
@pytest.mark.parametrize("bomb", list(bombs()), ids=lambda bomb: bomb.name)
def test_a_bomb_is_answered_and_never_verified(bomb: Bomb, yard: Server) -> None:
    body = {**bomb.body, "options": {"timeout_ms": SECONDS * 1000}}
    with httpx.Client(base_url=yard.base_url, headers={"X-API-Key": yard.owner_key}, timeout=3 * SECONDS) as api:
        answer = api.post(f"/verify/{bomb.engine}", json=body)
        assert api.get("/health").status_code == 200
    assert answer.status_code == 200, answer.text[:500]
    assert answer.json()["status"] in ("FAILED", "BLOCKED", "INCONCLUSIVE", "UNKNOWN"), answer.text[:500]
    assert answer.json()["verified"] is False
    zygote, *workers = [peak_mb(process) for process in below(yard.process.pid)]
    assert len(workers) >= 2
    # What a worker holds beside what it was born with is under its cap.
    assert max(workers) < zygote + MEMORY_MB


@spec("2.1")
def test_after_all_of_them_the_engines_answer_as_before(yard: Server) -> None:
    with httpx.Client(base_url=yard.base_url, headers={"X-API-Key": yard.owner_key}, timeout=30) as api:
        assert api.post("/verify/math", json={"expression": "sin(x)^2 + cos(x)^2 = 1"}).json()["status"] == "VERIFIED"
