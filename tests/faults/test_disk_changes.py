"""P1 and P4 when the disk fails while a person decides, or a server is asked: kept or refused like a decision."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.wiring import close_services
from qwed.store.place import FILE_NAME
from qwed.store.protocol import StoreError
from tests.faults.troubles import MAIL, TROUBLES, House, Trouble, failing_at, lived_in, locked, read_only
from tests.support.books import COMMITTED, Books
from tests.support.server import Server
from tests.support.wire import asked_at_once, message


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    yield from lived_in(tmp_path / "data")


class Waiting(NamedTuple):
    house: House
    approval_id: str


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    built = House(tmp_path / "data")
    answer = built.gate.verify_action(
        built.agent_id, {**MAIL, "cost": {"usd": 0.25}}, {"conversation_id": "mail", "step_number": 1}
    )
    assert answer.decision == "PENDING"
    yield Waiting(built, answer.approval_id)
    close_services(built.gate.services)
    Books(built.directory).require_one_story()


OF_A_CHANGE = {name: trouble for name, trouble in TROUBLES.items() if not name.endswith("at the conversation")} | {
    "failing at begin": failing_at("BEGIN"),
    "failing at the approval": failing_at("UPDATE approvals"),
    "failing at the commit": failing_at("COMMIT"),
}
LONG = "because " * 400
"""More than what is left free inside the pages of a full database."""
SETTLING: dict[str, tuple[Callable[[Gate, str], Any], int]] = {
    "approved": (lambda gate, approval_id: gate.approve(approval_id, LONG), 250_000),
    "rejected": (lambda gate, approval_id: gate.reject(approval_id, LONG), 0),
}


@pytest.mark.parametrize("state", SETTLING)
@pytest.mark.parametrize("trouble", OF_A_CHANGE.values(), ids=OF_A_CHANGE)
def test_a_disk_in_trouble_settles_no_approval_and_does_when_it_ends(
    waiting: Waiting, tmp_path: Path, state: str, trouble: Trouble
) -> None:
    house, approval_id = waiting
    settle, used = SETTLING[state]
    with trouble(house):
        for _attempt in range(3):
            with pytest.raises(StoreError):
                settle(house.gate, approval_id)
        assert house.gate.list_approvals()[0]["state"] == "pending"
        spent = house.store.spent(house.agent_id, house.hands.now)
        assert (spent.pending_cost, spent.cost_day) == (250_000, 10_000 * house.approved)
    house.require_memory_equals_disk(tmp_path / "copy")
    assert settle(house.gate, approval_id)["state"] == state
    spent = house.store.spent(house.agent_id, house.hands.now)
    assert (spent.pending_cost, spent.cost_day) == (0, used + 10_000 * house.approved)
    with pytest.raises(GateError, match=f"already {state}"):
        settle(house.gate, approval_id)
    house.require_memory_equals_disk(tmp_path / "later copy")


@pytest.mark.parametrize("trouble", [locked, read_only, failing_at("COMMIT")], ids=["locked", "read only", "commit"])
def test_a_disk_in_trouble_changes_no_agent(house: House, tmp_path: Path, trouble: Trouble) -> None:
    before = house.store.find_agent(house.agent_id)
    verbs: tuple[Callable[[Gate], Any], ...] = (
        lambda gate: gate.suspend_agent(house.agent_id, "stop"),
        lambda gate: gate.rotate_token(house.agent_id),
        lambda gate: gate.reduce_trust(house.agent_id, 0),
        lambda gate: gate.suspend_all("stop"),
    )
    with trouble(house):
        for verb in verbs:
            with pytest.raises(StoreError):
                verb(house.gate)
        assert house.store.find_agent(house.agent_id) == before
        assert not house.store.halted(before.organisation_id)
    assert house.ask().decision == "APPROVED"
    house.require_memory_equals_disk(tmp_path / "copy")


# The same over HTTP, with a limit of the operating system on what the server may write.


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    assert server.stop() == 0
    Books(server.data_dir).require_one_story()


@contextmanager
def _no_space(server: Server) -> Iterator[None]:
    """No file of the server may grow past what the database's log has now: writes fail with an error of the kernel."""
    size = (server.data_dir / f"{FILE_NAME}-wal").stat().st_size
    _soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def test_a_server_whose_disk_is_full_refuses_everyone_and_serves_again_when_there_is_room(served: Server) -> None:
    with httpx.Client(base_url=served.base_url, headers={"X-API-Key": served.owner_key}, timeout=60) as api:
        agent_id = api.post("/agents/register", json={"name": "a", "principal_id": "p"}).json()["agent_id"]
        with _no_space(served):
            during = _storm(served, agent_id, "during")
            assert api.get("/health").status_code == 200
            late = api.post("/agents/register", json={"name": "late", "principal_id": "p"})
            assert (late.status_code, late.json()["error"]["code"]) == (503, "QWED-SYS-002")
            assert late.headers["retry-after"] == "1"
        after = _storm(served, agent_id, "after")
        budget = api.get(f"/agents/{agent_id}/budget").json()
        log = api.get(f"/agents/{agent_id}/activity", params={"limit": 1000}).json()
    # A write that fits into what the log already had is no trouble; past it nothing is approved.
    assert during.count("DENIED") > 100
    assert set(during) <= {"APPROVED", "DENIED"}
    assert after == ["APPROVED"] * 150
    approved = (during + after).count("APPROVED")
    assert budget["cost"]["current_daily_usd"] == approved / 100
    assert log["summary"]["approved"] == approved


def test_a_server_whose_disk_is_full_settles_nothing_and_does_when_there_is_room(served: Server) -> None:
    with httpx.Client(base_url=served.base_url, headers={"X-API-Key": served.owner_key}, timeout=60) as api:
        agent_id = api.post("/agents/register", json={"name": "a", "principal_id": "p"}).json()["agent_id"]
        body = {"action": MAIL, "context": {"conversation_id": "c", "step_number": 1}}
        asked = api.post(f"/agents/{agent_id}/verify", json=body).json()
        assert asked["decision"] == "PENDING"
        approval = f"/approvals/{asked['approval_id']}"
        refused = [f"{approval}/approve", f"{approval}/reject", f"/agents/{agent_id}/suspend", "/suspend-all"]
        with _no_space(served):
            for path in refused:
                answer = api.post(path, json={"reason": "in need"})
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "QWED-SYS-002")
                assert answer.headers["retry-after"] == "1"
            assert api.get(approval).json()["state"] == "pending"
            action = api.get(f"/agents/{agent_id}/actions/{asked['action_id']}").json()
            assert (action["decision"], action["attestation"]) == ("PENDING", None)
        assert api.post(f"{approval}/approve", json={"reason": "there is room"}).status_code == 200
        budget = api.get(f"/agents/{agent_id}/budget").json()["cost"]
        assert (budget["current_daily_usd"], budget["held_usd"]) == (0.01, 0)
        assert api.post(f"{approval}/approve", json={"reason": "once more"}).status_code == 409


def _storm(server: Server, agent_id: str, name: str) -> list[str]:
    shown = {"X-API-Key": server.owner_key}
    action = {"type": "calculate", "query": "2+2"}
    bodies = [{"action": action, "context": {"conversation_id": f"{name} {n}", "step_number": 1}} for n in range(150)]
    heard = asked_at_once(server.base_url, [message(f"/agents/{agent_id}/verify", b, shown) for b in bodies], 10)
    answers = [answer for answer in heard if answer is not None]
    assert len(answers) == 150
    for answer in answers:
        if answer.json["decision"] not in COMMITTED:
            assert (answer.status, answer.json["error"]["code"]) == (503, "QWED-SYS-002")
    return [answer.json["decision"] for answer in answers]
