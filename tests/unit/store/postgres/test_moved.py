"""Two processes on one database: what both want one gets, and the other is told that the ground has moved."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from qwed.store.agent import AgentStatus
from qwed.store.boundary import Entry, ListName
from qwed.store.conduct import Mark
from qwed.store.parts import (
    AgentChanged,
    Approval,
    Conflict,
    Executed,
    KeyAdded,
    KeyRevoked,
    ListChanged,
    OrganisationHalted,
    ToolChanged,
    WebhookChanged,
)
from qwed.store.postgres.transaction import Transaction
from qwed.store.protocol import MOVED, Link, Memory, Reservation, Settled
from qwed.store.usage import Charge, Exceeded
from qwed.words import Decision, ErrorCode, Trust
from tests.support.clock import HandClock
from tests.support.stores import CENT, ORGANISATION, SharedShop, agent_of, owner_key
from tests.unit.store.test_changes import HOOK


class Two(NamedTuple):
    """Two processes."""

    one: SharedShop
    other: SharedShop

    def freshen(self, **wanted: Any) -> None:
        for shop in self:
            shop.freshen(**wanted)


@pytest.fixture
def two(empty: str) -> Iterator[Two]:
    one = SharedShop(empty, HandClock(), max_open_approvals=2)
    one.register(agent_of(daily_cost=30_000))
    other = one.beside()
    yield Two(one, other)
    one.store.close()
    other.store.close()


def _agent(shop: SharedShop) -> Any:
    return shop.store.find_agent("agent_1")


def _held(shop: SharedShop, step: int = 1, charge: Charge = CENT, **more: Any) -> Reservation:
    reservation = shop.reserve(_agent(shop), step, **more)
    assert isinstance(reservation, Reservation)
    assert shop.store.hold(reservation, charge, shop.hands.now) is None
    return reservation


def test_of_two_who_hold_the_same_step_one_commits_it(two: Two) -> None:
    mine, theirs = _held(two.one), _held(two.other)
    assert isinstance(two.one.settle(_agent(two.one), mine, charge=CENT), Settled)
    assert two.other.settle(_agent(two.other), theirs, charge=CENT) is MOVED
    two.other.store.release(theirs)
    two.freshen()
    assert two.other.reserve(_agent(two.other), 1) is ErrorCode.REPLAY
    assert two.one.spent(_agent(two.one)).cost_day == two.other.spent(_agent(two.other)).cost_day == CENT.cost


def test_a_later_step_overtakes_an_earlier_one_wherever_it_is_committed(two: Two) -> None:
    early, late = _held(two.one, 1), _held(two.other, 2)
    assert isinstance(two.other.settle(_agent(two.other), late, charge=CENT), Settled)
    assert two.one.settle(_agent(two.one), early, charge=CENT) is MOVED


def test_a_denial_uses_up_no_step_and_is_not_in_the_way_of_another(two: Two) -> None:
    mine, theirs = _held(two.one), _held(two.other)
    assert isinstance(two.one.settle(_agent(two.one), mine, Decision.DENIED, CENT), Settled)
    assert isinstance(two.other.settle(_agent(two.other), theirs, charge=CENT), Settled)


@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.DENIED])
def test_what_others_have_spent_is_not_spent_again(two: Two, decision: Decision) -> None:
    """A decision about money that is gone by now is none, be it a denial: it is to say that the money is gone."""
    held = [
        _held(shop, conversation=f"{name}{number}") for shop, name in zip(two, "ab", strict=True) for number in "12"
    ]
    outcomes = [
        shop.settle(_agent(shop), reservation, charge=CENT)
        for shop, reservation in zip((two.one, two.one, two.other), held, strict=False)
    ]
    assert all(isinstance(outcome, Settled) for outcome in outcomes)
    assert two.other.settle(_agent(two.other), held[3], decision, CENT) is MOVED
    two.other.store.release(held[3])
    two.other.freshen()
    again = two.other.reserve(_agent(two.other), 9, "elsewhere")
    assert isinstance(again, Reservation)
    exceeded = two.other.store.hold(again, CENT, two.other.hands.now)
    assert isinstance(exceeded, Exceeded)
    assert (exceeded.code, exceeded.current) == (ErrorCode.COST_EXCEEDED, 30_000)


def _answer(shop: SharedShop, key: str = "k", body: str = "hash") -> Memory:
    return Memory(key, body, lambda _settled: b"sealed", shop.hands.now + 60)


def test_the_same_key_is_answered_once(two: Two) -> None:
    two.freshen(key="k")
    for shop in two:
        assert shop.store.claim_key("agent_1", "k", "hash", shop.hands.now) == (None, None)
    mine, theirs = _held(two.one), _held(two.other, conversation="another")
    kept = two.one.settle(_agent(two.one), mine, charge=CENT, memory=_answer(two.one), activity_id="act_k")
    assert isinstance(kept, Settled)
    assert two.other.settle(_agent(two.other), theirs, charge=CENT, memory=_answer(two.other)) is MOVED
    two.other.store.release_key("agent_1", "k")
    two.other.freshen(key="k")
    found = two.other.store.claim_key("agent_1", "k", "hash", two.other.hands.now).remembered
    assert (found.answer, found.activity_id) == (b"sealed", "act_k")
    two.other.freshen(key="k")
    refused = two.other.store.claim_key("agent_1", "k", "another", two.other.hands.now).refusal
    assert "another request" in refused


def test_an_answer_whose_time_is_over_is_given_anew(two: Two) -> None:
    two.one.settle(_agent(two.one), _held(two.one), charge=CENT, memory=_answer(two.one))
    two.one.hands.turn(61)
    two.other.freshen(key="k")
    assert two.other.store.claim_key("agent_1", "k", "other", two.other.hands.now) == (None, None)
    again = two.other.settle(_agent(two.other), _held(two.other, 2), charge=CENT, memory=_answer(two.other, body="o"))
    assert isinstance(again, Settled)
    two.one.freshen(key="k")
    assert two.one.store.claim_key("agent_1", "k", "o", two.one.hands.now).remembered is not None


def test_a_loop_is_one_though_each_process_has_seen_half_of_it(two: Two) -> None:
    for step, shop in ((1, two.one), (2, two.other)):
        shop.freshen()
        held = _held(shop, step, fingerprint="same")
        assert isinstance(shop.settle(_agent(shop), held, charge=CENT), Settled)
    third = _held(two.one, 3, fingerprint="same")
    assert two.one.settle(_agent(two.one), third, charge=CENT) is MOVED


def test_who_is_refused_because_of_what_is_stored_under_the_same_key_is_told_to_look_there(two: Two) -> None:
    two.one.settle(_agent(two.one), _held(two.one), charge=CENT, memory=_answer(two.one))
    # Its key was looked up before that, and its conversation after.
    refused = two.other.settle(_agent(two.other), None, Decision.DENIED, key=_answer(two.other).key)
    assert refused is MOVED
    assert isinstance(two.other.settle(_agent(two.other), None, Decision.DENIED, key="another"), Settled)
    assert isinstance(two.other.settle(_agent(two.other), None, Decision.DENIED), Settled)


def test_a_number_that_is_allotted_while_another_is_on_its_way_is_given_to_one_alone(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, told, real = threading.Event(), threading.Event(), Transaction.keep

    def late(work: Transaction) -> None:
        written.set()
        assert told.wait(30)
        real(work)

    two.freshen()
    first = _held(two.one, 0, allotted=True, fingerprint="first")
    monkeypatch.setattr(Transaction, "keep", late)
    asked = two.one.store.settle(two.one.settlement(_agent(two.one), first))
    assert written.wait(30)
    # It is in the tables, and whoever wrote it has not counted it yet.
    two.one.freshen()
    second = _held(two.one, 0, allotted=True, fingerprint="second")
    monkeypatch.setattr(Transaction, "keep", real)
    told.set()
    assert isinstance(asked.block(30), Settled)
    two.other.freshen()
    theirs = _held(two.other, 0, allotted=True, fingerprint="theirs")
    assert (first.step.number, second.step.number, theirs.step.number) == (1, 2, 2)
    assert isinstance(two.other.settle(_agent(two.other), theirs), Settled)
    assert two.one.settle(_agent(two.one), second) is MOVED
    two.one.store.release(second)
    two.one.freshen()
    again = _held(two.one, 0, allotted=True, fingerprint="second")
    assert isinstance(two.one.settle(_agent(two.one), again), Settled)
    assert again.step.number == 3


def test_a_step_that_both_were_allotted_is_one_of_them_only(two: Two) -> None:
    held = [_held(shop, 0, allotted=True) for shop in two]
    assert [reservation.step.number for reservation in held] == [1, 1]
    assert isinstance(two.one.settle(_agent(two.one), held[0], charge=CENT), Settled)
    assert two.other.settle(_agent(two.other), held[1], charge=CENT) is MOVED
    two.other.store.release(held[1])
    two.other.freshen()
    again = _held(two.other, 0, allotted=True)
    assert again.step.number == 2
    assert isinstance(two.other.settle(_agent(two.other), again, charge=CENT), Settled)


def test_as_many_approvals_wait_as_may_wherever_they_were_asked_for(two: Two) -> None:
    for shop, name in zip(two, "ab", strict=True):
        shop.pending(_agent(shop), 1, name)
    held, now = _held(two.one, conversation="c"), two.one.hands.now
    third = Approval("apr_x", *CENT[:2], 0, now, now + 60)
    asked = two.one.settle(_agent(two.one), held, Decision.PENDING, CENT, approval=third)
    assert asked is ErrorCode.APPROVALS_FULL


def test_an_approval_is_settled_once_and_what_it_held_is_free_everywhere(two: Two) -> None:
    approval = two.one.pending(_agent(two.one), 1, charge=Charge(cost=30_000, requests=1))
    two.other.freshen()
    full = two.other.reserve(_agent(two.other), 2)
    assert isinstance(full, Reservation)
    assert isinstance(two.other.store.hold(full, CENT, two.other.hands.now), Exceeded)
    outcomes = [shop.change(shop.resolved(approval, "rejected")) for shop in two]
    assert outcomes == [1, Conflict.RESOLVED]
    two.other.freshen()
    assert two.other.store.hold(full, CENT, two.other.hands.now) is None


def test_what_became_of_an_action_is_told_once(two: Two) -> None:
    two.one.settle(_agent(two.one), None, Decision.DENIED, activity_id="act_told")
    assert two.other.change(Executed("act_told", True, None, 1.0)) == 1
    assert two.one.change(Executed("act_told", False, None, 2.0)) is Conflict.EXECUTED


def test_the_last_owner_stays_wherever_the_others_were_revoked(two: Two) -> None:
    second = owner_key("key_2", prefix="qwed_live_b")
    two.one.change(KeyAdded(second))
    assert isinstance(two.one.change(KeyRevoked(second, 1.0)), int)
    assert two.other.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER


def test_a_chain_has_one_next_link_and_whoever_is_second_is_told_where_it_ends(two: Two) -> None:
    ends = [shop.store.chain(ORGANISATION, "ch") for shop in two]
    assert ends == [(0, None), (0, None)]
    held = [_held(shop, conversation=name) for shop, name in zip(two, "ab", strict=True)]
    first = two.one.settle(_agent(two.one), held[0], charge=CENT, link=Link("ch", 0, None, "att_a"))
    assert isinstance(first, Settled)
    second = two.other.settle(_agent(two.other), held[1], charge=CENT, link=Link("ch", 0, None, "att_b"))
    assert second is ErrorCode.CONFLICT
    assert two.other.store.chain(ORGANISATION, "ch") == (1, "att_a")
    again = two.other.settle(_agent(two.other), held[1], charge=CENT, link=Link("ch", 1, "att_a", "att_b"))
    assert isinstance(again, Settled)


# What is changed in one process is so in the other before its next request


def _suspended(shop: SharedShop) -> Any:
    agent = _agent(shop)
    return AgentChanged(agent, replace(agent, status=AgentStatus.SUSPENDED))


def _lowered(shop: SharedShop) -> Any:
    agent = _agent(shop)
    return AgentChanged(agent, replace(agent, trust=Trust.UNTRUSTED))


STOPS: dict[str, tuple[Any, ErrorCode]] = {
    "the agent is suspended": (_suspended, ErrorCode.AGENT_SUSPENDED),
    "the agent is another one": (_lowered, ErrorCode.AGENT_CHANGED),
    "everybody is stopped": (lambda _shop: OrganisationHalted(ORGANISATION, 1.0), ErrorCode.AGENT_SUSPENDED),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_decision_does_not_commit_once_somebody_else_has_stopped_it(two: Two, stop: str) -> None:
    part, code = STOPS[stop]
    held, agent = _held(two.other), _agent(two.other)
    two.one.change(part(two.one))
    assert two.other.settle(agent, held, charge=CENT) is code
    assert two.other.spent(agent).cost_day == 0
    # From then on it is known, without anybody having asked.
    assert (_agent(two.other), two.other.store.halted(ORGANISATION)) == (
        _agent(two.one),
        two.one.store.halted(ORGANISATION),
    )


EVE = Entry(ListName.BLOCKS, "eve")
SEEN: dict[str, tuple[Any, Any]] = {
    "suspension": (_suspended, lambda store: store.find_agent("agent_1").status),
    "halt": (lambda _: OrganisationHalted(ORGANISATION, 1.0), lambda store: store.halted(ORGANISATION)),
    "key": (lambda _: KeyRevoked(owner_key("key_2", prefix="b"), 1.0), lambda store: store.find_key("b")),
    "tool": (lambda _: ToolChanged(ORGANISATION, "t", b"1"), lambda store: store.tool_rows(ORGANISATION)),
    "list": (lambda _: ListChanged(ORGANISATION, EVE, there=True), lambda store: store.boundary(ORGANISATION).entries),
    "webhook": (lambda _: WebhookChanged(ORGANISATION, HOOK), lambda store: store.webhook(ORGANISATION)),
}


@pytest.mark.parametrize("kind", SEEN)
def test_what_one_process_changes_the_other_knows_when_it_is_next_asked(two: Two, kind: str) -> None:
    part, look = SEEN[kind]
    two.one.change(KeyAdded(owner_key("key_2", prefix="b")))
    two.freshen()
    before = look(two.other.store)
    two.one.change(part(two.one))
    assert look(two.other.store) == before
    two.other.freshen()
    after = look(two.other.store)
    assert (after != before, after) == (True, look(two.one.store))


def test_as_long_as_nothing_changes_everything_stays_the_very_same(two: Two) -> None:
    looks: list[Any] = [look for _part, look in SEEN.values()]
    two.freshen()
    before = [_agent(two.other), *(look(two.other.store) for look in looks)]
    two.one.commit(_agent(two.one), 1)
    two.freshen()
    after = [_agent(two.other), *(look(two.other.store) for look in looks)]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_trust_that_is_lost_in_one_process_is_lost_in_the_other(two: Two) -> None:
    two.freshen()
    two.one.settle(_agent(two.one), None, Decision.DENIED, mark=Mark.VIOLATION)
    two.other.freshen()
    assert _agent(two.other).trust is Trust.UNTRUSTED
    assert two.other.store.merit("agent_1") == two.one.store.merit("agent_1")


def test_denials_add_up_wherever_they_were_decided(two: Two) -> None:
    for number in range(20):
        shop = two[number % 2]
        shop.freshen()
        shop.settle(_agent(shop), None, Decision.DENIED, mark=Mark.DENIED)
    assert _agent(shop).trust is Trust.UNTRUSTED


def test_a_pair_is_as_fast_as_it_may_be_whichever_process_it_asks(two: Two) -> None:
    waits = [
        shop.store.take_token(ORGANISATION, "pair", 10, shop.hands.now)
        for _ in range(8)
        for shop in (two.one, two.other)
    ]
    assert waits.count(0.0) == 10


def test_logs_that_two_make_grow_have_no_gap_and_every_head_leads_on(two: Two) -> None:
    for number in range(12):
        shop = two[number % 2]
        assert shop.change(ToolChanged(ORGANISATION, f"t{number}", b"1")) == number
    assert [head[0] for head in two.one.store._all("SELECT size FROM heads ORDER BY size", ())] == list(range(1, 13))


def test_whoever_is_erased_in_one_process_is_forgotten_in_the_other(two: Two) -> None:
    told: list[int] = []
    for number, shop in enumerate(two):
        shop.store.on_erased = lambda number=number: told.append(number)
    two.freshen()
    two.one.store._write(("INSERT INTO subjects VALUES ('sub_1', 'org_1', 'n', 'key', 0, NULL)", ())).block(30)
    two.other.freshen()
    assert told == []
    two.one.store._write(("UPDATE subjects SET key = NULL", ())).block(30)
    two.other.freshen()
    two.other.freshen()
    assert told == [1]
