"""Two processes on one database: of two conflicting requests one wins, and the other gets a conflict."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.agent import AgentStatus
from qwed.domain.behaviour import BehaviourFlag
from qwed.domain.budget import LimitExceeded, RequestCost
from qwed.domain.change_parts import (
    AgentChanged,
    ApprovalRequest,
    Conflict,
    ExecutionLogged,
    KeyAdded,
    KeyRevoked,
    ListChanged,
    OrganisationHalted,
    PolicySetChanged,
    ToolChanged,
    WebhookChanged,
)
from qwed.domain.policy_set import NO_POLICIES
from qwed.domain.snapshot import NO_CHAIN, StoredAnswer
from qwed.domain.write_set import ChainLink, Committed, IdempotentAnswer, Reservation
from qwed.model import Decision, ErrorCode, Trust
from qwed.store.postgres.batch_transaction import BatchTransaction
from tests.support.manual_clock import ManualClock
from tests.support.store_parts import StoreParts
from tests.support.stores import CENT, ORGANISATION, PostgresStoreFixture, agent_of, owner_key
from tests.unit.store.test_change_handlers import HOOK, POLICIES


class Two(NamedTuple):
    """Two processes."""

    one: PostgresStoreFixture
    other: PostgresStoreFixture

    def load(self) -> None:
        for store_fixture in self:
            store_fixture.load()


@pytest.fixture
def two(empty: str) -> Iterator[Two]:
    one = PostgresStoreFixture(empty, ManualClock(), max_open_approvals=2)
    one.register(agent_of(daily_cost=30_000))
    other = one.open_second()
    yield Two(one, other)
    one.store.close()
    other.store.close()


def _agent(store_fixture: PostgresStoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _held(store_fixture: PostgresStoreFixture, step: int = 1, charge: RequestCost = CENT, **more: Any) -> Reservation:
    reservation = store_fixture.reserve(_agent(store_fixture), step, charge=charge, **more)
    assert isinstance(reservation, Reservation)
    return reservation


def test_of_two_who_hold_the_same_step_one_commits_it(two: Two) -> None:
    mine, theirs = _held(two.one), _held(two.other)
    assert isinstance(two.one.settle(_agent(two.one), mine, charge=CENT), Committed)
    assert two.other.settle(_agent(two.other), theirs, charge=CENT) is Conflict.STALE
    two.other.store.release(theirs)
    assert two.other.reserve(_agent(two.other), 1) is ErrorCode.REPLAY
    assert two.one.spent(_agent(two.one)).cost_day == two.other.spent(_agent(two.other)).cost_day == CENT.cost


def test_a_later_step_overtakes_an_earlier_one_wherever_it_is_committed(two: Two) -> None:
    early, late = _held(two.one, 1), _held(two.other, 2)
    assert isinstance(two.other.settle(_agent(two.other), late, charge=CENT), Committed)
    assert two.one.settle(_agent(two.one), early, charge=CENT) is Conflict.STALE


def test_a_denial_uses_up_no_step_and_is_not_in_the_way_of_another(two: Two) -> None:
    mine, theirs = _held(two.one), _held(two.other)
    assert isinstance(two.one.settle(_agent(two.one), mine, Decision.DENIED, CENT), Committed)
    assert isinstance(two.other.settle(_agent(two.other), theirs, charge=CENT), Committed)


@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.DENIED])
def test_what_others_have_spent_is_not_spent_again(two: Two, decision: Decision) -> None:
    """A decision about budget that is gone is a conflict, even a denial: it must say that the budget is gone."""
    reservations = [
        _held(store_fixture, conversation=f"{name}{number}")
        for store_fixture, name in zip(two, "ab", strict=True)
        for number in "12"
    ]
    outcomes = [
        store_fixture.settle(_agent(store_fixture), reservation, charge=CENT)
        for store_fixture, reservation in zip((two.one, two.one, two.other), reservations, strict=False)
    ]
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    assert two.other.settle(_agent(two.other), reservations[3], decision, CENT) is Conflict.STALE
    two.other.store.release(reservations[3])
    exceeded = two.other.reserve(_agent(two.other), 9, "elsewhere", CENT)
    assert isinstance(exceeded, LimitExceeded)
    assert (exceeded.code, exceeded.current) == (ErrorCode.COST_EXCEEDED, 30_000)


def _answer(store_fixture: PostgresStoreFixture, key: str = "k", body: str = "hash") -> IdempotentAnswer:
    return IdempotentAnswer(key, body, lambda _settled: b"sealed", store_fixture.manual_clock.now + 60)


def _stored(store_fixture: PostgresStoreFixture, key: str = "k") -> StoredAnswer | None:
    return store_fixture.load(idempotency_key=key).stored_answer


def test_the_same_key_is_answered_once(two: Two) -> None:
    mine, theirs = _held(two.one, key="k"), _held(two.other, conversation="another", key="k")
    assert two.one.load(idempotency_key="k").key_in_flight
    committed = two.one.settle(_agent(two.one), mine, charge=CENT, memory=_answer(two.one), activity_id="act_k")
    assert isinstance(committed, Committed)
    assert two.other.settle(_agent(two.other), theirs, charge=CENT, memory=_answer(two.other)) is Conflict.STALE
    two.other.store.release(theirs)
    assert _stored(two.other) == StoredAnswer("hash", b"sealed", "act_k")


def test_an_answer_whose_time_is_over_is_given_anew(two: Two) -> None:
    two.one.settle(_agent(two.one), _held(two.one), charge=CENT, memory=_answer(two.one))
    two.one.manual_clock.advance(61)
    assert _stored(two.other) is None
    again = two.other.settle(_agent(two.other), _held(two.other, 2), charge=CENT, memory=_answer(two.other, body="o"))
    assert isinstance(again, Committed)
    stored = _stored(two.one)
    assert stored is not None
    assert stored.body_hash == "o"


def test_a_loop_is_one_though_each_process_has_seen_half_of_it(two: Two) -> None:
    for step, store_fixture in ((1, two.one), (2, two.other)):
        reservation = _held(store_fixture, step, fingerprint="same")
        assert isinstance(store_fixture.settle(_agent(store_fixture), reservation, charge=CENT), Committed)
    third = _held(two.one, 3, fingerprint="same")
    assert two.one.settle(_agent(two.one), third, charge=CENT) is Conflict.STALE


def test_who_is_refused_because_of_what_is_stored_under_the_same_key_is_told_to_look_there(two: Two) -> None:
    two.one.settle(_agent(two.one), _held(two.one), charge=CENT, memory=_answer(two.one))
    # Its key was read before that, and its conversation after.
    refused = two.other.settle(_agent(two.other), None, Decision.DENIED, key=_answer(two.other).key)
    assert refused is Conflict.STALE
    assert isinstance(two.other.settle(_agent(two.other), None, Decision.DENIED, key="another"), Committed)
    assert isinstance(two.other.settle(_agent(two.other), None, Decision.DENIED), Committed)


def test_a_number_that_is_allotted_while_another_is_on_its_way_is_given_to_one_alone(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, released, real = threading.Event(), threading.Event(), BatchTransaction.apply

    def late(work: BatchTransaction) -> None:
        written.set()
        assert released.wait(30)
        real(work)

    first = _held(two.one, 0, auto_numbered=True, fingerprint="first")
    monkeypatch.setattr(BatchTransaction, "apply", late)
    future = two.one.store.commit(two.one.write_set(_agent(two.one), first))
    assert written.wait(30)
    # It is in the tables, and the writer has not counted it yet.
    second = _held(two.one, 0, auto_numbered=True, fingerprint="second")
    monkeypatch.setattr(BatchTransaction, "apply", real)
    released.set()
    assert isinstance(future.wait_result(30), Committed)
    theirs = _held(two.other, 0, auto_numbered=True, fingerprint="theirs")
    assert (first.step.number, second.step.number, theirs.step.number) == (1, 2, 2)
    assert isinstance(two.other.settle(_agent(two.other), theirs), Committed)
    assert two.one.settle(_agent(two.one), second) is Conflict.STALE
    two.one.store.release(second)
    again = _held(two.one, 0, auto_numbered=True, fingerprint="second")
    assert isinstance(two.one.settle(_agent(two.one), again), Committed)
    assert again.step.number == 3


def test_a_step_that_both_were_allotted_is_one_of_them_only(two: Two) -> None:
    reservations = [_held(store_fixture, 0, auto_numbered=True) for store_fixture in two]
    assert [reservation.step.number for reservation in reservations] == [1, 1]
    assert isinstance(two.one.settle(_agent(two.one), reservations[0], charge=CENT), Committed)
    assert two.other.settle(_agent(two.other), reservations[1], charge=CENT) is Conflict.STALE
    two.other.store.release(reservations[1])
    again = _held(two.other, 0, auto_numbered=True)
    assert again.step.number == 2
    assert isinstance(two.other.settle(_agent(two.other), again, charge=CENT), Committed)


def test_as_many_approvals_wait_as_may_wherever_they_were_asked_for(two: Two) -> None:
    for store_fixture, name in zip(two, "ab", strict=True):
        store_fixture.pending(_agent(store_fixture), 1, name)
    reservation, now = _held(two.one, conversation="c"), two.one.manual_clock.now
    third = ApprovalRequest("apr_x", CENT.cost, CENT.tokens, 0, now, now + 60)
    outcome = two.one.settle(_agent(two.one), reservation, Decision.PENDING, CENT, approval=third)
    assert outcome is Conflict.STALE
    assert two.one.spent(_agent(two.one)).open_approvals == 2


def test_an_approval_is_settled_once_and_what_it_held_is_free_everywhere(two: Two) -> None:
    approval = two.one.pending(_agent(two.one), 1, charge=RequestCost(cost=30_000, requests=1))
    assert isinstance(two.other.reserve(_agent(two.other), 2, charge=CENT), LimitExceeded)
    outcomes = [store_fixture.change(store_fixture.resolved(approval, "rejected")) for store_fixture in two]
    assert outcomes == [1, Conflict.RESOLVED]
    assert isinstance(two.other.reserve(_agent(two.other), 2, charge=CENT), Reservation)


def test_what_became_of_an_action_is_told_once(two: Two) -> None:
    two.one.settle(_agent(two.one), None, Decision.DENIED, activity_id="act_told")
    assert two.other.change(ExecutionLogged("act_told", True, None, 1.0)) == 1
    assert two.one.change(ExecutionLogged("act_told", False, None, 2.0)) is Conflict.EXECUTED


def test_the_last_owner_stays_wherever_the_others_were_revoked(two: Two) -> None:
    second = owner_key("key_2", prefix="qwed_live_b")
    two.one.change(KeyAdded(second))
    assert isinstance(two.one.change(KeyRevoked(second, 1.0)), int)
    assert two.other.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER


def test_a_chain_has_one_next_link_and_whoever_is_second_is_told_where_it_ends(two: Two) -> None:
    assert [store_fixture.chain() for store_fixture in two] == [NO_CHAIN, NO_CHAIN]
    reservations = [_held(store_fixture, conversation=name) for store_fixture, name in zip(two, "ab", strict=True)]
    first = two.one.settle(_agent(two.one), reservations[0], charge=CENT, link=ChainLink("ch", 0, None, "att_a"))
    assert isinstance(first, Committed)
    second = two.other.settle(_agent(two.other), reservations[1], charge=CENT, link=ChainLink("ch", 0, None, "att_b"))
    assert second is Conflict.STALE
    assert two.other.chain() == (1, "att_a")
    again = two.other.settle(_agent(two.other), reservations[1], charge=CENT, link=ChainLink("ch", 1, "att_a", "att_b"))
    assert isinstance(again, Committed)


# A change in one process is visible in the other before its next request


def _suspended(store_fixture: PostgresStoreFixture) -> Any:
    agent = _agent(store_fixture)
    return AgentChanged(agent, replace(agent, status=AgentStatus.SUSPENDED))


def _lowered(store_fixture: PostgresStoreFixture) -> Any:
    agent = _agent(store_fixture)
    return AgentChanged(agent, replace(agent, trust=Trust.UNTRUSTED))


STOPS: dict[str, Any] = {
    "the agent is suspended": _suspended,
    "the agent is another one": _lowered,
    "everybody is stopped": lambda _shop: OrganisationHalted(ORGANISATION, 1.0),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_decision_does_not_commit_once_somebody_else_has_stopped_it(two: Two, stop: str) -> None:
    reservation, agent = _held(two.other), _agent(two.other)
    two.one.change(STOPS[stop](two.one))
    assert two.other.settle(agent, reservation, charge=CENT) is Conflict.STALE
    # From then on it is cached, without a request.
    assert (_agent(two.other), two.other.store.halted(ORGANISATION)) == (
        _agent(two.one),
        two.one.store.halted(ORGANISATION),
    )
    assert two.other.spent(agent).cost_day == 0


EVE = ListEntry(ListName.BLOCKS, "eve")
SEEN: dict[str, tuple[Any, Any]] = {
    "suspension": (_suspended, lambda store: store.find_agent("agent_1").status),
    "halt": (lambda _: OrganisationHalted(ORGANISATION, 1.0), lambda store: store.halted(ORGANISATION)),
    "key": (lambda _: KeyRevoked(owner_key("key_2", prefix="b"), 1.0), lambda store: store.find_key("b")),
    "tool": (lambda _: ToolChanged(ORGANISATION, "t", b"1"), lambda store: store.tool_rows(ORGANISATION)),
    "policies": (
        lambda _: PolicySetChanged(ORGANISATION, NO_POLICIES, POLICIES, 1.0, "key_1"),
        lambda store: store.policies(ORGANISATION),
    ),
    "list": (
        lambda _: ListChanged(ORGANISATION, EVE, present=True),
        lambda store: store.access_lists(ORGANISATION).entries,
    ),
    "webhook": (lambda _: WebhookChanged(ORGANISATION, HOOK), lambda store: store.webhook(ORGANISATION)),
}


@pytest.mark.parametrize("kind", SEEN)
def test_what_one_process_changes_the_other_knows_when_it_is_next_asked(two: Two, kind: str) -> None:
    part, look = SEEN[kind]
    two.one.change(KeyAdded(owner_key("key_2", prefix="b")))
    two.load()
    before = look(two.other.store)
    two.one.change(part(two.one))
    assert look(two.other.store) == before
    two.other.load()
    after = look(two.other.store)
    assert (after != before, after) == (True, look(two.one.store))


def test_as_long_as_nothing_changes_everything_stays_the_very_same(two: Two) -> None:
    looks: list[Any] = [look for _part, look in SEEN.values()]
    two.load()
    before = [_agent(two.other), *(look(two.other.store) for look in looks)]
    two.one.commit(_agent(two.one), 1)
    two.load()
    after = [_agent(two.other), *(look(two.other.store) for look in looks)]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_trust_that_is_lost_in_one_process_is_lost_in_the_other(two: Two) -> None:
    two.load()
    two.one.settle(_agent(two.one), None, Decision.DENIED, mark=BehaviourFlag.VIOLATION)
    two.other.load()
    assert _agent(two.other).trust is Trust.UNTRUSTED
    assert two.other.store.trust_evidence("agent_1") == two.one.store.trust_evidence("agent_1")


def test_denials_add_up_wherever_they_were_decided(two: Two) -> None:
    for number in range(20):
        store_fixture = two[number % 2]
        store_fixture.load()
        store_fixture.settle(_agent(store_fixture), None, Decision.DENIED, mark=BehaviourFlag.DENIED)
    assert _agent(store_fixture).trust is Trust.UNTRUSTED


def test_a_pair_is_as_fast_as_it_may_be_whichever_process_it_asks(two: Two) -> None:
    waits = [
        store_fixture.store.take_token(ORGANISATION, "pair", 10, store_fixture.manual_clock.now)
        for _ in range(8)
        for store_fixture in (two.one, two.other)
    ]
    assert waits.count(0.0) == 10


def test_logs_that_two_make_grow_have_no_gap_and_every_head_leads_on(two: Two) -> None:
    for number in range(12):
        store_fixture = two[number % 2]
        assert store_fixture.change(ToolChanged(ORGANISATION, f"t{number}", b"1")) == number
    assert [head[0] for head in StoreParts(two.one.store).rows("SELECT size FROM heads ORDER BY size")] == list(
        range(1, 13)
    )


def test_whoever_is_erased_in_one_process_is_forgotten_in_the_other(two: Two) -> None:
    calls: list[int] = []
    for number, store_fixture in enumerate(two):
        store_fixture.store.on_subject_erased = lambda number=number: calls.append(number)
    two.load()
    StoreParts(two.one.store).write("INSERT INTO subjects VALUES ('sub_1', 'org_1', 'n', 'key', 0, NULL)").wait_result(
        30
    )
    two.other.load()
    assert calls == []
    StoreParts(two.one.store).write("UPDATE subjects SET key = NULL").wait_result(30)
    two.other.load()
    two.other.load()
    assert calls == [1]
