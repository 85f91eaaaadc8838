"""P1 and P4 when the disk fails during a person's change, or over HTTP: stored or refused like a decision."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.bootstrap import close_services
from qwed.store.data_directory import FILE_NAME
from qwed.store.protocol import StoreError
from tests.faults.disk_faults import (
    DISK_FAULTS,
    MAIL,
    DiskFault,
    DiskGateFixture,
    failing_at,
    locked,
    open_disk_gate,
    read_only,
)
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.raw_http import message, send_concurrently
from tests.support.server import Server


@pytest.fixture
def gate_fixture(tmp_path: Path) -> Iterator[DiskGateFixture]:
    yield from open_disk_gate(tmp_path / "data")


class PendingRequests(NamedTuple):
    gate_fixture: DiskGateFixture
    approval_id: str


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[PendingRequests]:
    built = DiskGateFixture(tmp_path / "data")
    answer = built.gate.verify_action(
        built.agent_id, {**MAIL, "cost": {"usd": 0.25}}, {"conversation_id": "mail", "step_number": 1}
    )
    assert answer.decision == "PENDING"
    yield PendingRequests(built, answer.approval_id)
    close_services(built.gate.services)
    DataDirectoryCheck(built.directory).require_consistent()


OF_A_CHANGE = {
    name: disk_fault for name, disk_fault in DISK_FAULTS.items() if not name.endswith("at the conversation")
} | {
    "failing at begin": failing_at("BEGIN"),
    "failing at the approval": failing_at("UPDATE approvals"),
    "failing at the commit": failing_at("COMMIT"),
}
LONG = "because " * 400
"""Text larger than the free space inside the pages of a full database."""
SETTLING: dict[str, tuple[Callable[[Gate, str], Any], int]] = {
    "approved": (lambda gate, approval_id: gate.approve(approval_id, LONG), 250_000),
    "rejected": (lambda gate, approval_id: gate.reject(approval_id, LONG), 0),
}


@pytest.mark.parametrize("state", SETTLING)
@pytest.mark.parametrize("disk_fault", OF_A_CHANGE.values(), ids=OF_A_CHANGE)
def test_a_disk_in_trouble_settles_no_approval_and_does_when_it_ends(
    waiting: PendingRequests, tmp_path: Path, state: str, disk_fault: DiskFault
) -> None:
    gate_fixture, approval_id = waiting
    settle, used = SETTLING[state]
    with disk_fault(gate_fixture):
        for _attempt in range(3):
            with pytest.raises(StoreError):
                settle(gate_fixture.gate, approval_id)
        assert gate_fixture.gate.list_approvals()[0]["state"] == "pending"
        spent = gate_fixture.store.usage_counters(gate_fixture.agent_id, gate_fixture.manual_clock.now)
        assert (spent.pending_cost, spent.cost_day) == (250_000, 10_000 * gate_fixture.approved)
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")
    assert settle(gate_fixture.gate, approval_id)["state"] == state
    spent = gate_fixture.store.usage_counters(gate_fixture.agent_id, gate_fixture.manual_clock.now)
    assert (spent.pending_cost, spent.cost_day) == (0, used + 10_000 * gate_fixture.approved)
    with pytest.raises(GateError, match=f"already {state}"):
        settle(gate_fixture.gate, approval_id)
    gate_fixture.require_memory_equals_disk(tmp_path / "later copy")


@pytest.mark.parametrize("disk_fault", [locked, read_only, failing_at("COMMIT")], ids=["locked", "read only", "commit"])
def test_a_disk_in_trouble_changes_no_agent(
    gate_fixture: DiskGateFixture, tmp_path: Path, disk_fault: DiskFault
) -> None:
    before = gate_fixture.store.find_agent(gate_fixture.agent_id)
    verbs: tuple[Callable[[Gate], Any], ...] = (
        lambda gate: gate.suspend_agent(gate_fixture.agent_id, "stop"),
        lambda gate: gate.rotate_token(gate_fixture.agent_id),
        lambda gate: gate.reduce_trust(gate_fixture.agent_id, 0),
        lambda gate: gate.suspend_all("stop"),
    )
    with disk_fault(gate_fixture):
        for verb in verbs:
            with pytest.raises(StoreError):
                verb(gate_fixture.gate)
        assert gate_fixture.store.find_agent(gate_fixture.agent_id) == before
        assert not gate_fixture.store.halted(before.organisation_id)
    assert gate_fixture.ask().decision == "APPROVED"
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")


# The same over HTTP, with a limit of the operating system on what the server may write.


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    assert server.stop() == 0
    DataDirectoryCheck(server.data_dir).require_consistent()


@contextmanager
def _no_space(server: Server) -> Iterator[None]:
    """Limit the files of the server to the current size of the database log: the kernel refuses larger writes."""
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
    # A write that fits into the existing log succeeds; past it nothing is approved.
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
    heard = send_concurrently(server.base_url, [message(f"/agents/{agent_id}/verify", b, shown) for b in bodies], 10)
    answers = [answer for answer in heard if answer is not None]
    assert len(answers) == 150
    for answer in answers:
        if answer.json["decision"] not in COMMITTED:
            assert (answer.status, answer.json["error"]["code"]) == (503, "QWED-SYS-002")
    return [answer.json["decision"] for answer in answers]
