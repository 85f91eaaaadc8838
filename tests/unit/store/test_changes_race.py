"""Of two conflicting changes one wins, and a failed change fails those built on it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from qwed.domain import change_parts
from qwed.domain.agent import AgentStatus
from qwed.domain.change_parts import AgentChanged, AgentUnchanged, Conflict, KeyAdded, KeyRevoked, ToolChanged
from qwed.model import Trust
from qwed.store.protocol import StoreError
from tests.support.store_caches import cached_claims
from tests.support.stores import ORGANISATION, StoreFixture, owner_key

SECOND = owner_key("key_2", prefix="qwed_live_b")


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _both(*calls: Callable[[], Any]) -> list[Any]:
    """Return the results of calls that begin at the same moment."""
    together = threading.Barrier(len(calls))

    def begin(call: Callable[[], Any]) -> Any:
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [running.result(30) for running in [threads.submit(begin, call) for call in calls]]


@pytest.mark.parametrize("states", [("approved", "approved"), ("approved", "rejected"), ("approved", "expired")])
def test_of_two_threads_that_settle_one_approval_one_wins(store_fixture: StoreFixture, states: tuple[str, str]) -> None:
    agent = _agent(store_fixture)
    for step in range(1, 21):
        approval = store_fixture.pending(agent, step)
        heard = _both(*(partial(store_fixture.change, store_fixture.resolved(approval, state)) for state in states))
        lost = [one is Conflict.RESOLVED for one in heard]
        assert lost.count(True) == 1
        assert store_fixture.store.find_approval(approval.approval_id).state == states[lost.index(False)]
    assert (store_fixture.spent(agent).pending_cost, store_fixture.spent(agent).open_approvals) == (0, 0)


def test_an_approval_whose_settlement_is_still_on_its_way_is_settled(disk: StoreFixture) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    disk.manual_clock.advance(61)
    with disk.stopped():
        ticket = disk.submit(disk.resolved(approval))
        second = disk.submit(disk.resolved(approval, "rejected"))
        assert disk.store.expired_approvals(disk.manual_clock.now, 10) == []
    assert ticket.wait_result(30).log_index == 1
    assert disk.outcome(second) is Conflict.RESOLVED
    assert disk.change(disk.resolved(approval, "rejected")) is Conflict.RESOLVED
    assert disk.spent(agent).cost_day == 10_000


def test_what_is_remembered_as_settled_is_forgotten_once_it_is_on_disk(disk: StoreFixture) -> None:
    agent = _agent(disk)
    for step in range(1, 31):
        disk.change(disk.resolved(disk.pending(agent, step)))
    assert cached_claims(disk.store) <= 1


def test_an_approval_whose_settlement_failed_is_open_again_and_holds_its_cost_once(disk: StoreFixture) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    for state in ("approved", "rejected", "expired"):
        with disk.broken(), pytest.raises(StoreError):
            disk.change(disk.resolved(approval, state))
        usage = disk.spent(agent)
        assert (usage.pending_cost, usage.open_approvals, usage.cost_day) == (10_000, 1, 0)
        assert disk.store.find_approval(approval.approval_id).state == "pending"
    assert disk.change(disk.resolved(approval)) == 1
    usage = disk.spent(agent)
    assert (usage.pending_cost, usage.open_approvals, usage.cost_day) == (0, 0, 10_000)


def test_what_queued_behind_a_change_that_failed_fails_with_it(disk: StoreFixture) -> None:
    agent = _agent(disk)
    approvals = [disk.pending(agent, step) for step in (1, 2, 3)]
    raised = AgentChanged(agent, replace(agent, trust=Trust.TRUSTED))
    with disk.broken():
        with disk.held():  # the failing write waits for this lock, so the next ones queue behind it
            parts: list[change_parts.ChangePart] = [*(disk.resolved(approval) for approval in approvals), raised]
            tickets = [disk.submit(part) for part in parts]
        for ticket in tickets:
            with pytest.raises(StoreError):
                ticket.wait_result(30)
    assert _agent(disk) == agent
    assert disk.spent(agent).pending_cost == 30_000
    assert [disk.change(disk.resolved(approval)) for approval in approvals] == [3, 4, 5]


def test_of_an_approval_and_a_suspension_that_race_the_later_one_sees_the_first(store_fixture: StoreFixture) -> None:
    for step in range(1, 21):
        agent = _agent(store_fixture)
        approval = store_fixture.pending(agent, step)
        suspended = replace(agent, status=AgentStatus.SUSPENDED)
        heard = _both(
            partial(store_fixture.change, store_fixture.resolved(approval), AgentUnchanged(agent)),
            partial(store_fixture.change, AgentChanged(agent, suspended)),
        )
        state = store_fixture.store.find_approval(approval.approval_id).state
        assert (heard[0], state) == (Conflict.STALE, "pending") or (state == "approved" and heard[0] < heard[1])
        if state == "pending":
            store_fixture.change(store_fixture.resolved(approval, "rejected"))
        store_fixture.change(AgentChanged(suspended, agent))


def test_of_two_owners_who_revoke_each_other_at_once_one_stays(store_fixture: StoreFixture) -> None:
    keys = [owner_key(), SECOND]
    store_fixture.change(KeyAdded(SECOND))
    heard = _both(*(partial(store_fixture.change, KeyRevoked(key, 5.0)) for key in keys))
    assert [one is Conflict.LAST_OWNER for one in heard].count(True) == 1
    assert [key.revoked_at for key in store_fixture.store.list_keys(ORGANISATION)].count(None) == 1


def test_an_owner_is_the_last_one_while_the_revocation_of_the_other_is_on_its_way(disk: StoreFixture) -> None:
    disk.change(KeyAdded(SECOND))
    with disk.stopped():
        ticket = disk.submit(KeyRevoked(SECOND, 5.0))
        second = disk.submit(KeyRevoked(owner_key(), 5.0))
    assert ticket.wait_result(30).log_index == 1
    assert disk.outcome(second) is Conflict.LAST_OWNER
    assert disk.store.find_key("qwed_live_b") is None


def test_a_key_is_revoked_from_the_moment_that_is_submitted_where_one_process_knows_everything(
    file: StoreFixture,
) -> None:
    file.change(KeyAdded(SECOND))
    with file.stopped():
        file.submit(KeyRevoked(SECOND, 5.0))
        assert file.store.find_key("qwed_live_b") is None


def test_a_key_on_its_way_opens_nothing_until_it_is_kept(disk: StoreFixture) -> None:
    with disk.stopped():
        ticket = disk.submit(KeyAdded(SECOND))
        assert disk.store.find_key("qwed_live_b") is None
    ticket.wait_result(30)
    assert disk.store.find_key("qwed_live_b") == SECOND


def test_an_owner_is_the_last_one_until_another_is_kept(file: StoreFixture) -> None:
    """With several writers, requests are decided in the order of their arrival."""
    with file.stopped():
        ticket = file.submit(KeyAdded(SECOND))
        assert file.change(KeyRevoked(owner_key(), 5.0)) is Conflict.LAST_OWNER
    ticket.wait_result(30)


def test_a_revocation_that_failed_leaves_the_key_open(disk: StoreFixture) -> None:
    disk.change(KeyAdded(SECOND))
    with disk.broken(), pytest.raises(StoreError):
        disk.change(KeyRevoked(SECOND, 5.0))
    assert disk.store.find_key("qwed_live_b") == SECOND


def test_of_many_threads_that_change_one_agent_each_starts_from_where_the_one_before_it_ended(
    store_fixture: StoreFixture,
) -> None:
    first = _agent(store_fixture)
    change = partial(store_fixture.change, AgentChanged(first, replace(first, trust=Trust.TRUSTED)))
    heard = _both(*[change] * 8)
    assert [one is Conflict.STALE for one in heard].count(False) == 1


def test_log_indexes_of_decisions_and_changes_that_race_have_no_gap(store_fixture: StoreFixture) -> None:
    agent = _agent(store_fixture)

    def decide() -> None:
        for step in range(1, 31):
            store_fixture.commit(agent, step)

    def change() -> None:
        for number in range(30):
            store_fixture.change(ToolChanged(ORGANISATION, f"t{number}", b"1"))

    _both(decide, change)
    indexes = store_fixture.rows("SELECT log_index FROM activities WHERE organisation_id = 'org_1' ORDER BY sequence")
    assert [index for (index,) in indexes] == list(range(60))
