"""What may change between the load of a decision and its commit, and what the commit makes of it."""

from typing import Any

import pytest

from qwed.domain.behaviour import BehaviourFlag
from qwed.domain.change_parts import Conflict, KeyAdded, KeyRevoked, OrganisationHalted, ToolChanged
from qwed.domain.write_set import Committed, IdempotentAnswer, Reservation
from qwed.model import Decision, Trust
from tests.support.stores import CENT, ORGANISATION, StoreFixture, owner_key

KEY = owner_key("key_2", prefix="qwed_live_b")


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def test_a_decision_commits_although_its_key_was_revoked_after_the_load(store_fixture: StoreFixture) -> None:
    store_fixture.change(KeyAdded(KEY))
    assert store_fixture.load(key_prefix=KEY.prefix).key is not None
    agent, reservation = _agent(store_fixture), store_fixture.reserve(_agent(store_fixture), 1)
    assert isinstance(store_fixture.change(KeyRevoked(KEY, 9.0)), int)
    assert isinstance(store_fixture.settle(agent, reservation), Committed)
    assert store_fixture.load(key_prefix=KEY.prefix).key is None, "the next request"


def test_a_decision_commits_although_a_tool_was_changed_after_the_load(store_fixture: StoreFixture) -> None:
    agent, reservation = _agent(store_fixture), store_fixture.reserve(_agent(store_fixture), 1)
    store_fixture.change(ToolChanged(ORGANISATION, "t", b"1"))
    assert isinstance(store_fixture.settle(agent, reservation), Committed)
    assert store_fixture.load().tools == {"t": b"1"}, "the next request"


def test_a_decision_does_not_commit_once_its_organisation_was_halted(store_fixture: StoreFixture) -> None:
    agent, reservation = _agent(store_fixture), store_fixture.reserve(_agent(store_fixture), 1)
    store_fixture.change(OrganisationHalted(ORGANISATION, 1.0))
    assert store_fixture.settle(agent, reservation) is Conflict.STALE


def test_a_decision_behind_one_of_its_batch_that_costs_trust_conflicts(disk: StoreFixture) -> None:
    agent = _agent(disk)
    reservations = [disk.reserve(agent, step) for step in (1, 2)]
    costly = disk.write_set(agent, None, Decision.DENIED, mark=BehaviourFlag.VIOLATION)
    approved, denied = (
        disk.write_set(agent, reservation, decision)
        for reservation, decision in zip(reservations, (Decision.APPROVED, Decision.DENIED), strict=True)
    )
    with disk.stopped():
        # The writer is busy with this one, so that the others are one batch.
        disk.store.commit(disk.write_set(agent, None, Decision.DENIED))
        waiting = [disk.store.commit(write_set) for write_set in (costly, approved, denied)]
    outcomes = [outcome.wait_result(30) for outcome in waiting]
    assert isinstance(outcomes[0], Committed), "the decision itself stands on the trust from before"
    assert outcomes[1] is Conflict.STALE
    assert isinstance(outcomes[2], Committed), "what denies does not depend on the trust"
    assert _agent(disk).trust is Trust.UNTRUSTED


@pytest.mark.parametrize("kind", [Decision.APPROVED, Decision.DENIED])
def test_a_key_is_in_flight_until_its_answer_is_stored(store_fixture: StoreFixture, kind: Decision) -> None:
    agent = _agent(store_fixture)
    answer = IdempotentAnswer("k", "hash", lambda _committed: b"sealed", store_fixture.manual_clock.now + 60)
    first = store_fixture.reserve(agent, 1, key="k")
    assert store_fixture.load(idempotency_key="k").key_in_flight
    assert isinstance(store_fixture.settle(agent, first, kind, CENT, memory=answer), Committed)
    store_fixture.store.release(first)
    again = store_fixture.load(idempotency_key="k")
    assert again.stored_answer is not None
    assert not again.key_in_flight


def test_a_step_that_another_reserved_after_the_load_is_a_conflict(store_fixture: StoreFixture) -> None:
    agent, snapshot = _agent(store_fixture), store_fixture.load()
    held = store_fixture.reserve(agent, 1)
    assert isinstance(held, Reservation)
    late = Reservation(held.agent_id, held.conversation_id, held.step, held.charge, held.reserved_at)
    assert store_fixture.store.reserve(late, snapshot) is Conflict.STALE
    store_fixture.store.release(held)
    assert store_fixture.store.reserve(late, store_fixture.load()) is None


def test_a_request_under_an_answered_idempotency_key_does_not_commit(store_fixture: StoreFixture) -> None:
    agent = _agent(store_fixture)
    answer = IdempotentAnswer("k", "hash", lambda _committed: b"sealed", store_fixture.manual_clock.now + 60)
    snapshot = store_fixture.load(conversation="other", idempotency_key="k")
    first = store_fixture.reserve(agent, 1, key="k")
    assert isinstance(first, Reservation)
    assert isinstance(store_fixture.settle(agent, first, Decision.APPROVED, CENT, memory=answer), Committed)
    store_fixture.store.release(first)
    late = Reservation("agent_1", "other", first.step, CENT, first.reserved_at, idempotency_key="k")
    reserved = store_fixture.store.reserve(late, snapshot)
    # Where one process owns the database it is known at once, else when it commits.
    assert Conflict.STALE in (reserved, store_fixture.settle(agent, late, Decision.APPROVED, CENT, memory=answer))
    assert store_fixture.spent(agent).cost_day == CENT.cost
