"""P6: requests of one caller do not grow the memory of the server without bound."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import qwed
from qwed.domain.snapshot import SnapshotKeys
from qwed.gate import Gate
from qwed.kernel.analysis.assessment import AssessmentCache
from tests.support.store_caches import cached_conversations, cached_entities


@pytest.fixture
def gate() -> Iterator[Gate]:
    with qwed.open(":memory:") as opened:
        yield opened


def _tool(gate: Gate, agent_id: str, number: int, size: int) -> Any:
    parameters = {"text": f"{number} " + "x" * size}
    place = {"conversation_id": f"c{number}", "step_number": 1}
    return gate.verify_tool_call(agent_id, "log_message", parameters, place)


def test_large_actions_are_decided_and_not_remembered(gate: Gate) -> None:
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    for number in range(50):
        assert _tool(gate, agent_id, number, 100_000).decision in ("APPROVED", "PENDING")
    assert len(gate.services.assessments) == 0


def test_no_more_judgements_are_remembered_than_there_is_room_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed.kernel.analysis.assessment.MAX_ENTRIES", 10)
    gate.services = replace(gate.services, assessments=AssessmentCache())
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    for number in range(50):
        assert _tool(gate, agent_id, number, 10).decision == "APPROVED"
    assert len(gate.services.assessments) == 10


def test_nothing_stays_behind_after_requests_that_were_refused(gate: Gate) -> None:
    agent_id = gate.register_agent(name="a", principal_id="p", trust_level=0)["agent_id"]
    for number in range(200):
        place = {"conversation_id": f"c{number}", "step_number": 1}
        reply = gate.verify_action(
            agent_id, {"type": "file_delete", "target": "x"}, place, idempotency_key=f"k{number}"
        )
        assert reply.decision == "DENIED"
    store: Any = gate.services.store
    assert len(store.reservations) == 0
    name = gate.services.vault.fingerprint
    keys = (SnapshotKeys(agent_id, idempotency_key=name(f"k{number}")) for number in range(200))
    assert not any(store.load(one).key_in_flight for one in keys)


def test_strangers_leave_nothing_behind(gate: Gate) -> None:
    store: Any = gate.services.store
    before = store.leaves(gate.organisation_id)
    for number in range(100):
        place = {"conversation_id": f"c{number}", "step_number": 1}
        refused = gate.verify_action(f"agent_{number}", {"type": "calculate", "query": "1+1"}, place)
        assert refused.error["code"] == "QWED-AGENT-001"
        wrong = gate.verify_action(f"agent_{number}", {"type": "calculate"}, place, agent_token="qwed_agent_nobody")
        assert wrong.error["code"] == "QWED-AGENT-002"
    assert store.leaves(gate.organisation_id) == before
    assert (cached_entities(store), cached_conversations(store), len(store.reservations)) == ((0, 0), 0, 0)
