"""A pending approval holds its cost; a resolved or expired one does not."""

from pathlib import Path
from typing import Any

import pytest

from qwed.domain.budget import RequestCost
from qwed.model.clock import DAY
from qwed.store.protocol import StoreError
from tests.support.manual_clock import ManualClock
from tests.support.stores import CENT, StoreFixture, agent_of


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def test_what_was_held_is_used_when_approved_and_free_when_not(store_fixture: StoreFixture) -> None:
    agent = _agent(store_fixture)
    dear = RequestCost(cost=70_000, tokens=30, requests=1, high_risk_calls=1)
    approvals = [store_fixture.pending(agent, step, charge=dear) for step in (1, 2, 3)]
    usage = store_fixture.spent(agent)
    assert (usage.pending_cost, usage.pending_tokens, usage.pending_high_risk, usage.open_approvals) == (
        210_000,
        90,
        3,
        3,
    )
    for approval, state in zip(approvals, ("approved", "rejected", "expired"), strict=True):
        store_fixture.change(store_fixture.resolved(approval, state), cost=dear.cost if state == "approved" else 0)
    usage = store_fixture.spent(agent)
    assert (usage.pending_cost, usage.pending_tokens, usage.pending_high_risk, usage.open_approvals) == (0, 0, 0, 0)
    assert (usage.cost_day, usage.tokens_day, usage.high_risk_day, usage.requests_day) == (70_000, 30, 1, 3)
    assert store_fixture.store.activity_summary("agent_1", None, None)[:5] == (3, 0, 0, 0, 3)
    assert store_fixture.store.activity_summary("agent_1", None, None).cost == 70_000


def test_what_is_approved_the_next_day_is_charged_to_that_day(store_fixture: StoreFixture) -> None:
    agent = _agent(store_fixture)
    approval = store_fixture.pending(agent, 1)
    store_fixture.commit(agent, 2)
    store_fixture.manual_clock.advance(DAY)
    store_fixture.change(store_fixture.resolved(approval), cost=CENT.cost)
    usage = store_fixture.spent(agent)
    assert (usage.cost_day, usage.requests_day, usage.pending_cost, usage.open_approvals) == (10_000, 0, 0, 0)


def test_a_decision_and_an_approval_in_one_batch_leave_the_counters_of_both(disk: StoreFixture) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    with disk.stopped():
        ticket = disk.submit(disk.resolved(approval), cost=CENT.cost)
        reservation = disk.reserve(agent, 2, charge=CENT)
        other = disk.store.commit(disk.write_set(agent, reservation, charge=CENT))
    assert [ticket.wait_result(30).log_index, other.wait_result(30).log_index] == [1, 2]
    usage = disk.spent(agent)
    assert (usage.cost_day, usage.pending_cost, usage.open_approvals) == (20_000, 0, 0)
    disk.reopened()
    assert disk.spent(agent) == usage


def test_no_more_wait_for_one_agent_than_there_may(tmp_path: Path) -> None:
    store_fixture = StoreFixture("file", tmp_path / "data", ManualClock(), max_open_approvals=2)
    agent, other = store_fixture.register(agent_of()), store_fixture.register(agent_of("agent_2"))
    first, _second = (store_fixture.pending(agent, step) for step in (1, 2))
    with pytest.raises(AssertionError, match="changed by another request"):
        store_fixture.pending(agent, 3, "c2")
    store_fixture.pending(other, 1)
    store_fixture.reopened()
    with pytest.raises(AssertionError, match="changed by another request"):
        store_fixture.pending(agent, 3, "c3")
    store_fixture.change(store_fixture.resolved(first, "rejected"))
    store_fixture.pending(agent, 3, "c4")
    store_fixture.store.close()


def test_what_has_run_out_is_handed_out_until_it_is_settled(store_fixture: StoreFixture) -> None:
    """The caller may fail to resolve it."""
    approval = store_fixture.pending(_agent(store_fixture), 1)
    store_fixture.manual_clock.advance(59)
    assert list(store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 10)) == []
    store_fixture.manual_clock.advance(1)
    for later in (0, 0, 0.001, 0.5):
        approvals = store_fixture.store.expired_approvals(store_fixture.manual_clock.now + later, 10)
        assert [one.approval_id for one in approvals] == [approval.approval_id]
    store_fixture.change(store_fixture.resolved(approval, "expired"))
    for later in (0, 0.001, 1, 3_600):
        assert list(store_fixture.store.expired_approvals(store_fixture.manual_clock.now + later, 10)) == []


def test_what_has_run_out_is_not_read_whole(store_fixture: StoreFixture) -> None:
    store_fixture.pending(_agent(store_fixture), 1)
    store_fixture.manual_clock.advance(60)
    for approval in (
        store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 10),
        store_fixture.store.expired_approvals_of("agent_1", store_fixture.manual_clock.now),
    ):
        assert [(one.leaf, one.payload) for one in approval] == [("", "")]


def test_what_could_not_be_settled_is_handed_out_again(disk: StoreFixture) -> None:
    approval = disk.pending(_agent(disk), 1)
    disk.manual_clock.advance(60)
    assert len(disk.store.expired_approvals(disk.manual_clock.now, 10)) == 1
    with disk.broken(), pytest.raises(StoreError):
        disk.change(disk.resolved(approval, "expired"))
    assert [one.approval_id for one in disk.store.expired_approvals(disk.manual_clock.now, 10)] == [
        approval.approval_id
    ]
    assert [one.approval_id for one in disk.store.expired_approvals_of("agent_1", disk.manual_clock.now)] == [
        approval.approval_id
    ]


def test_what_is_being_settled_is_not_handed_out(disk: StoreFixture) -> None:
    approval = disk.pending(_agent(disk), 1)
    disk.manual_clock.advance(60)
    with disk.stopped():
        ticket = disk.submit(disk.resolved(approval, "expired"))
        assert list(disk.store.expired_approvals(disk.manual_clock.now, 10)) == []
        assert list(disk.store.expired_approvals_of("agent_1", disk.manual_clock.now)) == []
    ticket.wait_result(30)


def test_one_that_runs_out_later_is_found_when_it_does(store_fixture: StoreFixture) -> None:
    """The table is not read before the next expiry."""
    agent = _agent(store_fixture)
    first = store_fixture.pending(agent, 1)
    store_fixture.manual_clock.advance(30)
    second = store_fixture.pending(agent, 2)
    store_fixture.manual_clock.advance(30)
    approvals = store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 10)
    assert [one.approval_id for one in approvals] == [first.approval_id]
    store_fixture.change(store_fixture.resolved(first, "expired"))
    assert list(store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 10)) == []
    assert list(store_fixture.store.expired_approvals(store_fixture.manual_clock.now + 29.999, 10)) == []
    approvals = store_fixture.store.expired_approvals(store_fixture.manual_clock.now + 30, 10)
    assert [one.approval_id for one in approvals] == [second.approval_id]


def test_what_has_run_out_is_found_however_much_it_is(store_fixture: StoreFixture) -> None:
    agent = _agent(store_fixture)
    approvals = [store_fixture.pending(agent, step) for step in range(1, 8)]
    store_fixture.manual_clock.advance(60)
    for _ in range(4):
        for approval in store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 2):
            store_fixture.change(store_fixture.resolved(approvals.pop(0), "expired"))
            assert approval.state_at(store_fixture.manual_clock.now) == "expired"
    assert (approvals, store_fixture.spent(agent).open_approvals) == ([], 0)


def test_a_clock_that_goes_back_does_not_end_the_look_for_what_has_run_out(store_fixture: StoreFixture) -> None:
    store_fixture.store.expired_approvals(store_fixture.manual_clock.now + 10 * DAY, 10)
    store_fixture.pending(_agent(store_fixture), 1)
    store_fixture.manual_clock.advance(61)
    assert len(store_fixture.store.expired_approvals(store_fixture.manual_clock.now, 10)) == 1
