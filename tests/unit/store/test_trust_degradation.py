"""Trust that decisions cost an agent, as a store keeps it (spec 8.3)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qwed.domain.behaviour import LEVELS_LOST, NO_BEHAVIOUR, BehaviourFlag, DegradationRule
from qwed.model import Decision, Trust
from tests.support.manual_clock import ManualClock
from tests.support.stores import KINDS, StoreFixture, agent_of


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFixture]:
    opened = StoreFixture(request.param, tmp_path / "data", ManualClock())
    yield opened
    opened.store.close()


def _mark(store_fixture: StoreFixture, mark: BehaviourFlag, agent_id: str = "agent_1") -> None:
    decision = Decision.BUDGET_EXCEEDED if mark is BehaviourFlag.EXCEEDED else Decision.DENIED
    store_fixture.settle(store_fixture.store.find_agent(agent_id), None, decision, mark=mark)


@pytest.mark.parametrize(("before", "after"), [(3, 1), (2, 0), (1, 0), (0, 0)])
def test_a_violation_costs_two_levels_and_never_more_than_there_are(
    store_fixture: StoreFixture, before: int, after: int
) -> None:
    store_fixture.register(replace(agent_of(), trust=Trust(before)))
    _mark(store_fixture, BehaviourFlag.VIOLATION)
    assert store_fixture.store.find_agent("agent_1").trust == after
    # The decision and the loss of trust are two leaves; without a loss nothing is logged.
    assert store_fixture.next_index("org_1") == (2 if before else 1)


@pytest.mark.parametrize(
    ("marks", "lost"),
    [
        ([BehaviourFlag.DENIED] * 19, 0),
        ([BehaviourFlag.DENIED] * 20, 1),
        ([BehaviourFlag.EXCEEDED] * 4, 0),
        ([BehaviourFlag.EXCEEDED] * 5, 1),
    ],
    ids=["nineteen denials", "twenty denials", "four budgets", "five budgets"],
)
def test_the_other_offences_cost_one_level(store_fixture: StoreFixture, marks: list[BehaviourFlag], lost: int) -> None:
    store_fixture.register(replace(agent_of(), trust=Trust.TRUSTED))
    for mark in marks:
        _mark(store_fixture, mark)
    assert store_fixture.store.find_agent("agent_1").trust == 3 - lost


def test_two_offences_of_one_decision_cost_both_penalties_each_with_its_leaf(store_fixture: StoreFixture) -> None:
    store_fixture.register(replace(agent_of(), trust=Trust.TRUSTED))
    for mark in [BehaviourFlag.DENIED] * 2 + [BehaviourFlag.CLEAN] * 17:
        _mark(store_fixture, mark)
    _mark(store_fixture, BehaviourFlag.VIOLATION)
    assert (
        store_fixture.store.find_agent("agent_1").trust
        == 3 - LEVELS_LOST[DegradationRule.SECURITY] - LEVELS_LOST[DegradationRule.DENIALS]
    )
    assert store_fixture.next_index("org_1") == 20 + 2


def test_an_answer_that_says_nothing_leaves_conduct_as_it_was(store_fixture: StoreFixture) -> None:
    store_fixture.register(agent_of())
    for _ in range(30):
        _mark(store_fixture, BehaviourFlag.NONE)
    assert store_fixture.load().usage.behaviour == NO_BEHAVIOUR


def test_each_agent_has_its_own_conduct(store_fixture: StoreFixture) -> None:
    for name in ("agent_1", "agent_2"):
        store_fixture.register(replace(agent_of(name), trust=Trust.TRUSTED))
    for number in range(20):
        _mark(store_fixture, BehaviourFlag.DENIED, f"agent_{number % 2 + 1}")
    assert [store_fixture.store.find_agent(f"agent_{number}").trust for number in (1, 2)] == [3, 3]


def test_conduct_lives_through_a_restart(tmp_path: Path) -> None:
    store_fixture = StoreFixture("file", tmp_path / "data", ManualClock())
    store_fixture.register(replace(agent_of(), trust=Trust.TRUSTED))
    for number in range(25):
        _mark(store_fixture, BehaviourFlag.EXCEEDED if number % 6 == 5 else BehaviourFlag.DENIED)
    before = store_fixture.load().usage.behaviour
    store_fixture.reopened()
    assert store_fixture.load().usage.behaviour == before
    assert (before.denial_cooldown, len(before.exceeded_times.split())) == (95, 4)
    _mark(store_fixture, BehaviourFlag.EXCEEDED)
    assert store_fixture.store.find_agent("agent_1").trust == 3 - 2
    store_fixture.reopened()
    assert store_fixture.store.find_agent("agent_1").trust == 3 - 2
    store_fixture.store.close()
