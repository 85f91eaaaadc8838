"""P6: requests of one caller do not grow the memory of the server without bound."""

from collections.abc import Iterator
from typing import Any

import pytest

import qwed
from qwed.gate import Gate
from qwed.kernel.analysis import assessment


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
    assert len(gate.services.assessments._entries) == 0


def test_no_more_judgements_are_remembered_than_there_is_room_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assessment, "MAX_ENTRIES", 10)
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    for number in range(50):
        assert _tool(gate, agent_id, number, 10).decision == "APPROVED"
    assert len(gate.services.assessments._entries) == 10


def test_nothing_stays_behind_after_requests_that_were_refused(gate: Gate) -> None:
    agent_id = gate.register_agent(name="a", principal_id="p", trust_level=0)["agent_id"]
    for number in range(200):
        place = {"conversation_id": f"c{number}", "step_number": 1}
        reply = gate.verify_action(
            agent_id, {"type": "file_delete", "target": "x"}, place, idempotency_key=f"k{number}"
        )
        assert reply.decision == "DENIED"
    store: Any = gate.services.store
    assert (store._state._reservations, store._keys_in_flight) == ({}, {})


def test_strangers_leave_nothing_behind(gate: Gate) -> None:
    store: Any = gate.services.store
    before = store._one("SELECT count(*) FROM activities", ())
    for number in range(100):
        place = {"conversation_id": f"c{number}", "step_number": 1}
        refused = gate.verify_action(f"agent_{number}", {"type": "calculate", "query": "1+1"}, place)
        assert refused.error["code"] == "QWED-AGENT-001"
        wrong = gate.verify_action(f"agent_{number}", {"type": "calculate"}, place, agent_token="qwed_agent_nobody")
        assert wrong.error["code"] == "QWED-AGENT-002"
    assert store._one("SELECT count(*) FROM activities", ()) == before
    known = (store._entities._agents, store._entities._keys, store._entities._halted)
    assert (known, len(store._state._conversations), store._keys_in_flight) == (({}, {}, {}), 0, {})
