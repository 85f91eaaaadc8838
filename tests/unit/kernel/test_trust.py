"""Parsing of trust requests, and sufficient evidence (spec 8.2)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from qwed.gate import Gate, GateError, open_gate
from qwed.kernel.agents.trust import (
    Evidence,
    TrustChangeRequest,
    TrustRequest,
    evidence_of,
    refuse_evidence,
    trust_request_of,
)
from qwed.kernel.answer import Problem
from qwed.kernel.request_schema import parse
from qwed.model import Trust
from qwed.model.clock import DAY
from tests.support.manual_clock import ManualClock
from tests.support.stores import agent_of

AGENT = agent_of()


def read_request(raw: Any, agent: Any) -> TrustRequest | Problem:
    request = parse(raw, TrustChangeRequest)
    return request if isinstance(request, Problem) else trust_request_of(request, agent)


def _at(level: int) -> Any:
    return replace(AGENT, trust=Trust(level))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_trust_is_raised_by_one_level(level: int) -> None:
    assert read_request({"to_level": level + 1}, _at(level)) == TrustRequest("trust_elevation", Trust(level + 1), "")


@pytest.mark.parametrize(("level", "to"), [(1, 1), (1, 0), (1, 3), (0, 2), (3, 3), (2, 0)])
def test_no_level_is_skipped_and_none_is_asked_for_twice(level: int, to: int) -> None:
    refused = read_request({"to_level": to}, _at(level))
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-REQ-005"


@pytest.mark.parametrize(
    ("level", "to", "read"), [(3, 0, True), (3, 2, True), (1, 1, False), (0, 0, False), (1, 2, False)]
)
def test_trust_is_lowered_to_any_level_below(level: int, to: int, read: bool) -> None:
    request = read_request({"request": "trust_reduction", "to_level": to, "justification": "why"}, _at(level))
    assert (request == TrustRequest("trust_reduction", Trust(to), "why")) is read


@pytest.mark.parametrize("to", [None, True, False, 2.0, "2", -1, 4, [2], 10**30], ids=repr)
def test_a_level_is_a_whole_number(to: Any) -> None:
    assert isinstance(read_request({"to_level": to}, AGENT), Problem)


@pytest.mark.parametrize(
    "body",
    [
        [],
        None,
        "2",
        {},
        {"to_level": 2, "level": 2},
        {"to_level": 2, "request": "trust"},
        {"to_level": 2, "request": ["trust_elevation"]},
        {"to_level": 2, "from_level": 0},
        {"to_level": 2, "from_level": True},
        {"to_level": 2, "from_level": "1"},
        {"to_level": 2, "justification": 7},
        {"to_level": 2, "justification": "x" * 4_097},
        {"to_level": 2, "justification": "nul \x00"},
        {"to_level": 2, "evidence": "very good"},
        {"to_level": 2, "evidence": [1]},
        {"to_level": 2, "agent_id": "agent_2"},
    ],
    ids=lambda body: str(body)[:60],
)
def test_what_is_no_request_is_refused(body: Any) -> None:
    assert isinstance(read_request(body, AGENT), Problem)


def test_evidence_that_a_request_brings_is_not_believed() -> None:
    body = {"to_level": 2, "from_level": 1, "agent_id": "agent_1", "evidence": {"total_actions": 10**9}}
    assert read_request(body, AGENT) == TrustRequest("trust_elevation", Trust.AUTONOMOUS, "")


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gate(manual_clock: ManualClock) -> Iterator[Gate]:
    with open_gate(":memory:", clock=manual_clock.clock(), trust_min_days=2, trust_min_actions=4) as opened:
        yield opened


def _evidence(days: int = 2, actions: int = 4, denied: int = 0) -> Evidence:
    return Evidence(
        days_active=days, total_actions=actions, denied_actions=denied, denial_rate=denied / actions, attestations=0
    )


@pytest.mark.parametrize(
    ("evidence", "short"),
    [
        (_evidence(), None),
        (_evidence(days=1), "2 days active"),
        (_evidence(actions=3), "4 actions"),
        (_evidence(actions=100, denied=1), None),
        (_evidence(actions=100, denied=2), "a denial rate of at most 0.01"),
    ],
    ids=["enough", "too young", "too few", "a hundredth", "more than a hundredth"],
)
def test_evidence_is_enough_at_each_threshold_and_not_below_it(
    gate: Gate, evidence: Evidence, short: str | None
) -> None:
    refused = refuse_evidence(evidence, gate.services)
    assert (refused is None) == (short is None)
    if refused is not None:
        assert short is not None
        assert short in refused.message
        assert refused.details["evidence"]["total_actions"] == evidence.total_actions
        assert refused.final is False


def test_evidence_is_what_the_log_says(gate: Gate, manual_clock: ManualClock) -> None:
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    for step in range(1, 4):
        action = {"type": "calculate", "query": f"{step}+1"}
        gate.verify_action(
            agent_id, action, {"conversation_id": "c", "step_number": step}, {"require_attestation": True}
        )
    gate.verify_action(agent_id, {"type": "file_delete", "target": "x"}, {"conversation_id": "c", "step_number": 4})
    manual_clock.advance(1.9 * DAY)
    agent = gate.services.store.find_agent(agent_id)
    assert agent is not None
    assert evidence_of(agent, gate.services) == Evidence(
        days_active=1, total_actions=4, denied_actions=1, denial_rate=0.25, attestations=3
    )


def test_an_agent_younger_than_now_has_no_negative_age(gate: Gate, manual_clock: ManualClock) -> None:
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    manual_clock.now -= 3 * DAY
    agent = gate.services.store.find_agent(agent_id)
    assert agent is not None
    assert evidence_of(agent, gate.services).days_active == 0


def test_a_request_that_has_run_out_does_not_keep_the_next_one_waiting(manual_clock: ManualClock) -> None:
    with open_gate(":memory:", clock=manual_clock.clock(), trust_min_days=0, trust_min_actions=0) as gate:
        agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
        gate.request_trust_change(agent_id, 2)
        with pytest.raises(GateError, match="already pending"):
            gate.request_trust_change(agent_id, 2)
        manual_clock.advance(86_401)
        gate.request_trust_change(agent_id, 2)
        assert [one["state"] for one in gate.list_approvals()] == ["pending", "expired"]
