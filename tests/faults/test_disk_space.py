"""P1 and P4 on a disk that fills up, and in a read-only directory: at the start, and while serving."""

import random
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.scenario import CRASHING
from tests.faults.small_disks import Disk, SmallDisk, small_disk
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.raw_http import message, send_concurrently
from tests.support.server import SERVE, Server

NEVER = (*CRASHING, "--place", "never", "--times", "1")
UNPRIVILEGED = (sys.executable, "-m", "tests.support.unprivileged", "serve", "--port", "0")
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
PAGE = 4096
DOWN = (503, "QWED-SYS-002")


class DiskServer:
    """Server on a disk, with its requests and answers."""

    def __init__(self, directory: Path, command: tuple[str, ...] = NEVER) -> None:
        self.directory = directory
        self.server = Server(directory, command)
        self.told: dict[str, str] = {}
        self.asked = 0
        self.counts: Counter[str] = Counter()

    def api(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.base_url, headers={"X-API-Key": self.server.owner_key}, timeout=60)

    def send_load(self, agent_id: str, count: int) -> Counter[str]:
        """Send concurrent decisions: each is stored, or refused because it could not be."""
        shown = {"X-API-Key": self.server.owner_key}
        messages = []
        for _ in range(count):
            self.asked += 1
            action: dict[str, Any] = {"type": "calculate", "query": f"{self.asked}+1"}
            if self.asked % 5 == 0:
                action = {**MAIL, "cost": {"usd": 0.01}}
            place = {"conversation_id": f"conversation {self.asked}", "step_number": 1, "user_intent": "x" * 500}
            messages.append(message(f"/agents/{agent_id}/verify", {"action": action, "context": place}, shown))
        heard: Counter[str] = Counter()
        for answer in send_concurrently(self.server.base_url, messages, 12):
            assert answer is not None
            said = answer.json
            heard[said["decision"]] += 1
            if said["decision"] in COMMITTED:
                self.told[said["action_id"]] = said["decision"]
            else:
                assert (answer.status, said["error"]["code"]) == DOWN, said
        self.counts += heard
        return heard

    def require_kept(self) -> DataDirectoryCheck:
        books = DataDirectoryCheck(self.directory)
        books.require_consistent()
        kept = {one.activity_id: one.decision for one in books.activities}
        assert self.told == {action_id: kept.get(action_id) for action_id in self.told}
        return books


def _registered(api: httpx.Client) -> str:
    answer = api.post("/agents/register", json={"name": unique_name(), "principal_id": "p"})
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["agent_id"]
    return agent_id


def _refused_or_done(answer: httpx.Response) -> bool:
    """Return True if the change was made; a refusal must say that it could not be stored."""
    if answer.status_code in (200, 201):
        return True
    assert (answer.status_code, answer.json()["error"]["code"]) == DOWN, answer.text
    return False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def _fill_and_empty(disk: Disk, rounds: int, seed: int, command: tuple[str, ...] = NEVER) -> Counter[str]:
    chance = random.Random(seed)
    disk_server = DiskServer(disk.place / "data", command)
    done: Counter[str] = Counter()
    try:
        for round_ in range(rounds):
            with disk_server.api() as api:
                agent_id = _registered(api)
                waits = _pending(api, agent_id)
                with disk.full(disk_server.server, leave=chance.choice((0, 0, 1, 2, 5, 11, 40)) * PAGE):
                    heard = disk_server.send_load(agent_id, 60)
                    done["refused while it was full"] += heard["DENIED"]
                    assert api.get("/health").status_code == 200
                    settled = _refused_or_done(api.post(f"/approvals/{waits}/approve", json={"reason": "fine"}))
                    done["changes refused while it was full"] += not settled
                    if round_ % 6 == 5:
                        disk_server.server.kill()
                if round_ % 6 == 5:
                    disk_server.server = Server(disk_server.directory, command)
                    done["kills while it was full"] += 1
            with disk_server.api() as api:
                after = disk_server.send_load(agent_id, 20)
                assert after["DENIED"] == 0
                expected = 409 if settled else 200
                assert api.post(f"/approvals/{waits}/approve", json={"reason": "fine"}).status_code == expected
            done["times it filled up"] += 1
    finally:
        disk_server.server.kill()
    disk_server.require_kept()
    done["told and kept"] = len(disk_server.told)
    return done


def _pending(api: httpx.Client, agent_id: str) -> str:
    body = {"action": MAIL, "context": {"conversation_id": "waits", "step_number": 1}}
    approval_id: str = api.post(f"/agents/{agent_id}/verify", json=body).json()["approval_id"]
    return approval_id


def test_a_disk_that_fills_up_gives_refusals_and_serves_again_when_there_is_room(disk: Disk) -> None:
    done = _fill_and_empty(disk, rounds=2, seed=1)
    assert done["refused while it was full"] > 60


@pytest.mark.drill
@campaign("P1 P4", "a disk that fills up while serving")
@pytest.mark.parametrize("seed", range(2, 5))
def test_a_disk_that_fills_up_again_and_again_loses_nothing_that_was_told(
    disk: Disk, seed: int, figure: Figure
) -> None:
    for name, value in _fill_and_empty(disk, rounds=12, seed=seed).items():
        figure(name, value)
    figure(f"disks {disk.kind}", 1)


# Starting where there is no room


def _start_failure(directory: Path, command: tuple[str, ...] = SERVE) -> str | None:
    """Return the message of a failing start, or None; it ends with one sentence and no traceback."""
    try:
        server = Server(directory, command)
    except RuntimeError:
        log = directory.parent / f"{directory.name}.log"
        said = log.read_text()
        assert "Traceback" not in said, said
        last = said.splitlines()[-1]
        assert last.startswith("qwed: "), said
        return last
    assert server.kill() < 0
    return None


@pytest.mark.drill
@campaign("P4", "a start on a disk without room")
def test_a_start_without_room_says_so_and_the_next_one_with_room_serves(disk: Disk, figure: Figure) -> None:
    """The output of the attempts is elsewhere: it would use the measured space."""
    directory = disk.place / "data"
    (disk.place / "data.log").symlink_to(disk.place.parent / "data.log")
    for leave in (0, 1, 2, 3, 4, 6, 9, 14, 30, 60, 90):
        with disk.full(None, leave * PAGE):
            figure("starts refused", _start_failure(directory) is not None)
        assert _start_failure(directory) is None
        figure("starts with room", 1)
        shutil.rmtree(directory)


@contextmanager
def _forbidden(directory: Path) -> Iterator[None]:
    """Make the directory unwritable for unprivileged processes."""
    directory.chmod(0o500)
    yield
    directory.chmod(0o700)


def test_a_directory_that_cannot_be_written_is_refused_with_a_sentence_and_used_again_when_it_can(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "data"
    outer = tmp_path / "outer"
    outer.mkdir()
    with _forbidden(outer):
        assert "Permission denied" in (_start_failure(outer / "data", UNPRIVILEGED) or "")
    server = Server(directory, UNPRIVILEGED)
    assert server.stop() == 0
    with _forbidden(directory):
        assert _start_failure(directory, UNPRIVILEGED) is not None
    assert _start_failure(directory, UNPRIVILEGED) is None


@contextmanager
def _nothing_written(server: Server) -> Iterator[None]:
    """Make the kernel refuse every byte that the server writes to a file."""
    _soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


def _read_only_while_running(directory: Path, rounds: int) -> Counter[str]:
    """Require refusals: of what needs a new file in a read-only directory, of everything if no file is writable."""
    disk_server = DiskServer(directory, UNPRIVILEGED)
    done: Counter[str] = Counter()
    try:
        with disk_server.api() as api:
            agent_id = _registered(api)
            keys = api.get("/.well-known/jwks.json").json()
            for _ in range(rounds):
                with _forbidden(directory):
                    rotated = api.post("/signing-key/rotate", json={"reason": "once a year"})
                    assert rotated.status_code >= 500, rotated.text
                    assert api.get("/.well-known/jwks.json").json() == keys
                    assert disk_server.send_load(agent_id, 10)["DENIED"] == 0
                    with _nothing_written(disk_server.server):
                        done["refused while nothing could be written"] += disk_server.send_load(agent_id, 20)["DENIED"]
                        assert api.get("/health").status_code == 200
                assert disk_server.send_load(agent_id, 10)["DENIED"] == 0
                assert api.post("/signing-key/rotate", json={"reason": "once a year"}).status_code == 200
                keys = api.get("/.well-known/jwks.json").json()
                done["times it was read-only"] += 1
    finally:
        disk_server.server.kill()
    disk_server.require_kept()
    done["told and kept"] = len(disk_server.told)
    return done


def test_a_directory_that_becomes_read_only_gives_refusals_and_serves_again_when_it_is_not(tmp_path: Path) -> None:
    assert _read_only_while_running(tmp_path / "data", 1)["refused while nothing could be written"] == 20


@pytest.mark.drill
@campaign("P1 P4", "a read-only directory")
def test_a_directory_that_is_read_only_again_and_again_loses_nothing_that_was_told(
    tmp_path: Path, figure: Figure
) -> None:
    for name, value in _read_only_while_running(tmp_path / "data", 20).items():
        figure(name, value)


@pytest.mark.drill
@campaign("P1 P4", "a read-only directory")
def test_a_start_on_a_read_only_file_system_says_so_and_the_next_one_serves(disk: Disk, figure: Figure) -> None:
    if not isinstance(disk, SmallDisk):
        figure("starts refused by file modes alone, as no file system could be made", 0)
        return
    directory = disk.place / "data"
    (disk.place / "data.log").symlink_to(disk.place.parent / "data.log")
    with disk.read_only():
        assert "Read-only file system" in (_start_failure(directory) or "")
    assert _start_failure(directory) is None
    with disk.read_only():
        assert "Read-only file system" in (_start_failure(directory) or "")
    assert _start_failure(directory) is None
    figure("starts refused", 2)
