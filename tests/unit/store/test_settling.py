"""What waits for a person holds its cost; what is settled, or has run out, does not."""

from pathlib import Path
from typing import Any

import pytest

from qwed.store.protocol import StoreError
from qwed.store.usage import Charge
from qwed.words.clock import DAY
from tests.support.clock import HandClock
from tests.support.stores import CENT, Shop, agent_of


def _agent(shop: Shop) -> Any:
    return shop.store.find_agent("agent_1")


def test_what_was_held_is_used_when_approved_and_free_when_not(shop: Shop) -> None:
    agent = _agent(shop)
    dear = Charge(cost=70_000, tokens=30, requests=1, high_risk_calls=1)
    approvals = [shop.pending(agent, step, charge=dear) for step in (1, 2, 3)]
    spent = shop.spent(agent)
    assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk, spent.open_approvals) == (
        210_000,
        90,
        3,
        3,
    )
    for approval, state in zip(approvals, ("approved", "rejected", "expired"), strict=True):
        shop.change(shop.resolved(approval, state), cost=dear.cost if state == "approved" else 0)
    spent = shop.spent(agent)
    assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk, spent.open_approvals) == (0, 0, 0, 0)
    assert (spent.cost_day, spent.tokens_day, spent.high_risk_day, spent.requests_day) == (70_000, 30, 1, 3)
    assert shop.store.tally("agent_1", None, None)[:5] == (3, 0, 0, 0, 3)
    assert shop.store.tally("agent_1", None, None).cost == 70_000


def test_what_is_approved_the_next_day_is_charged_to_that_day(shop: Shop) -> None:
    agent = _agent(shop)
    approval = shop.pending(agent, 1)
    shop.commit(agent, 2)
    shop.hands.turn(DAY)
    shop.change(shop.resolved(approval), cost=CENT.cost)
    spent = shop.spent(agent)
    assert (spent.cost_day, spent.requests_day, spent.pending_cost, spent.open_approvals) == (10_000, 0, 0, 0)


def test_a_decision_and_an_approval_in_one_batch_leave_the_counters_of_both(disk: Shop) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    with disk.stopped():
        ticket = disk.store.change(disk.change_of(disk.resolved(approval), cost=CENT.cost))
        reservation = disk.reserve(agent, 2)
        disk.store.hold(reservation, CENT, disk.hands.now)
        other = disk.store.settle(disk.settlement(agent, reservation, charge=CENT))  # type: ignore[arg-type]  # held
    assert [ticket.block(30).log_index, other.block(30).log_index] == [1, 2]
    spent = disk.spent(agent)
    assert (spent.cost_day, spent.pending_cost, spent.open_approvals) == (20_000, 0, 0)
    disk.reopened()
    assert disk.spent(agent) == spent


def test_no_more_wait_for_one_agent_than_there_may(tmp_path: Path) -> None:
    shop = Shop("file", tmp_path / "data", HandClock(), max_open_approvals=2)
    agent, other = shop.register(agent_of()), shop.register(agent_of("agent_2"))
    first, _second = (shop.pending(agent, step) for step in (1, 2))
    with pytest.raises(AssertionError, match="APPROVALS_FULL"):
        shop.pending(agent, 3, "c2")
    shop.pending(other, 1)
    shop.reopened()
    with pytest.raises(AssertionError, match="APPROVALS_FULL"):
        shop.pending(agent, 3, "c3")
    shop.change(shop.resolved(first, "rejected"))
    shop.pending(agent, 3, "c4")
    shop.store.close()


def test_what_has_run_out_is_handed_out_until_it_is_settled(shop: Shop) -> None:
    """Whoever was handed it may have failed to settle it."""
    approval = shop.pending(_agent(shop), 1)
    shop.hands.turn(59)
    assert list(shop.store.expired_approvals(shop.hands.now, 10)) == []
    shop.hands.turn(1)
    for later in (0, 0, 0.001, 0.5):
        found = shop.store.expired_approvals(shop.hands.now + later, 10)
        assert [one.approval_id for one in found] == [approval.approval_id]
    shop.change(shop.resolved(approval, "expired"))
    for later in (0, 0.001, 1, 3_600):
        assert list(shop.store.expired_approvals(shop.hands.now + later, 10)) == []


def test_what_has_run_out_is_not_read_whole(shop: Shop) -> None:
    shop.pending(_agent(shop), 1)
    shop.hands.turn(60)
    for found in (
        shop.store.expired_approvals(shop.hands.now, 10),
        shop.store.expired_approvals_of("agent_1", shop.hands.now),
    ):
        assert [(one.leaf, one.payload) for one in found] == [("", "")]


def test_what_could_not_be_settled_is_handed_out_again(disk: Shop) -> None:
    approval = disk.pending(_agent(disk), 1)
    disk.hands.turn(60)
    assert len(disk.store.expired_approvals(disk.hands.now, 10)) == 1
    with disk.broken(), pytest.raises(StoreError):
        disk.change(disk.resolved(approval, "expired"))
    assert [one.approval_id for one in disk.store.expired_approvals(disk.hands.now, 10)] == [approval.approval_id]
    assert [one.approval_id for one in disk.store.expired_approvals_of("agent_1", disk.hands.now)] == [
        approval.approval_id
    ]


def test_what_is_being_settled_is_not_handed_out(disk: Shop) -> None:
    approval = disk.pending(_agent(disk), 1)
    disk.hands.turn(60)
    with disk.stopped():
        ticket = disk.store.change(disk.change_of(disk.resolved(approval, "expired")))
        assert list(disk.store.expired_approvals(disk.hands.now, 10)) == []
        assert list(disk.store.expired_approvals_of("agent_1", disk.hands.now)) == []
    ticket.block(30)


def test_one_that_runs_out_later_is_found_when_it_does(shop: Shop) -> None:
    """Nothing is looked for before the next one can have run out."""
    agent = _agent(shop)
    first = shop.pending(agent, 1)
    shop.hands.turn(30)
    second = shop.pending(agent, 2)
    shop.hands.turn(30)
    found = shop.store.expired_approvals(shop.hands.now, 10)
    assert [one.approval_id for one in found] == [first.approval_id]
    shop.change(shop.resolved(first, "expired"))
    assert list(shop.store.expired_approvals(shop.hands.now, 10)) == []
    assert list(shop.store.expired_approvals(shop.hands.now + 29.999, 10)) == []
    found = shop.store.expired_approvals(shop.hands.now + 30, 10)
    assert [one.approval_id for one in found] == [second.approval_id]


def test_what_has_run_out_is_found_however_much_it_is(shop: Shop) -> None:
    agent = _agent(shop)
    approvals = [shop.pending(agent, step) for step in range(1, 8)]
    shop.hands.turn(60)
    for _ in range(4):
        for found in shop.store.expired_approvals(shop.hands.now, 2):
            shop.change(shop.resolved(approvals.pop(0), "expired"))
            assert found.state_at(shop.hands.now) == "expired"
    assert (approvals, shop.spent(agent).open_approvals) == ([], 0)


def test_a_clock_that_goes_back_does_not_end_the_look_for_what_has_run_out(shop: Shop) -> None:
    shop.store.expired_approvals(shop.hands.now + 10 * DAY, 10)
    shop.pending(_agent(shop), 1)
    shop.hands.turn(61)
    assert len(shop.store.expired_approvals(shop.hands.now, 10)) == 1
