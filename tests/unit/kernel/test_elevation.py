"""One request for more trust at a time; an expired one does not count (spec 8.2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qwed.gate import Gate, GateError, open_gate
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.manual_clock import ManualClock


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gate(tmp_path: Path, manual_clock: ManualClock) -> Iterator[Gate]:
    with open_gate(tmp_path / "data", clock=manual_clock.clock(), trust_min_days=0, trust_min_actions=0) as opened:
        yield opened
    DataDirectoryCheck(tmp_path / "data").require_consistent()


@pytest.fixture
def agent_id(gate: Gate) -> str:
    registered: str = gate.register_agent(name="a", principal_id="p")["agent_id"]
    return registered


def _states(gate: Gate) -> list[Any]:
    return [approval["state"] for approval in gate.list_approvals()]


def test_a_second_request_is_refused_while_the_first_one_waits(gate: Gate, agent_id: str) -> None:
    gate.request_trust_change(agent_id, 2)
    with pytest.raises(GateError, match="already pending"):
        gate.request_trust_change(agent_id, 2)
    assert _states(gate) == ["pending"]


def test_a_request_that_ran_out_does_not_stand_in_the_way_of_the_next(
    gate: Gate, manual_clock: ManualClock, agent_id: str
) -> None:
    first = gate.request_trust_change(agent_id, 2)["approval_id"]
    manual_clock.advance(86_399)
    with pytest.raises(GateError, match="already pending"):
        gate.request_trust_change(agent_id, 2)
    manual_clock.advance(1)
    second = gate.request_trust_change(agent_id, 2)["approval_id"]
    assert (second != first, _states(gate)) == (True, ["pending", "expired"])
    gate.approve(second, "earned")
    assert gate.get_agent(agent_id)["trust_level"] == 2


@pytest.mark.parametrize("settle", [Gate.approve, Gate.reject], ids=["approved", "rejected"])
def test_a_request_that_is_settled_makes_room_for_the_next(
    gate: Gate, manual_clock: ManualClock, agent_id: str, settle: Any
) -> None:
    settle(gate, gate.request_trust_change(agent_id, 2)["approval_id"], "said")
    manual_clock.advance(1)
    level = gate.get_agent(agent_id)["trust_level"]
    gate.request_trust_change(agent_id, level + 1)
    assert _states(gate)[0] == "pending"


def test_each_agent_has_its_own(gate: Gate, agent_id: str) -> None:
    other: str = gate.register_agent(name="b", principal_id="p")["agent_id"]
    for one in (agent_id, other):
        gate.request_trust_change(one, 2)
    assert _states(gate) == ["pending"] * 2
