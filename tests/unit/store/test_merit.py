"""Spec 8.2: what speaks for an agent at its present level, counted as it happens and begun anew with every level."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.gate import open_gate
from qwed.store.agent import AgentStatus
from qwed.store.conduct import Mark
from qwed.store.merit import NO_MERIT, Merit
from qwed.store.parts import AgentChanged, AgentStands, Approval, ElevationRequested
from qwed.store.protocol import Reservation, Settled, StoreError
from qwed.words import Decision, Trust
from tests.support.books import TRUST_EVENTS, Books
from tests.support.clock import NOON, HandClock
from tests.support.stores import CENT, ORGANISATION, Shop, agent_of

EARNED = Merit(5.0, 10, 2, 3)


def _agent(shop: Shop) -> Any:
    return shop.store.find_agent("agent_1")


def _merit(shop: Shop) -> Any:
    return shop.store.merit("agent_1")


def _denied(shop: Shop, mark: Mark = Mark.DENIED, times: int = 1) -> None:
    for _ in range(times):
        shop.settle(_agent(shop), None, Decision.DENIED, mark=mark)


def _approved(shop: Shop, step: int, *, attested: bool = False) -> None:
    reservation = shop.reserve(_agent(shop), step)
    assert isinstance(reservation, Reservation)
    assert isinstance(shop.settle(_agent(shop), reservation, mark=Mark.CLEAN, attested=attested), Settled)


def _asked(shop: Shop, step: int) -> Approval:
    """An action that is counted when it is asked, as the kernel counts it."""
    now = shop.hands.now
    approval = Approval(f"apr_{step}", *CENT[:2], 0, now, now + 60, "key_9")
    reservation = shop.reserve(_agent(shop), step)
    assert isinstance(reservation, Reservation)
    shop.settle(_agent(shop), reservation, Decision.PENDING, CENT, approval=approval, mark=Mark.CLEAN)
    return approval


# The rule


@pytest.mark.parametrize("attested", [False, True])
@pytest.mark.parametrize(
    ("mark", "actions", "denied"),
    [(Mark.CLEAN, 11, 2), (Mark.DENIED, 11, 3), (Mark.VIOLATION, 11, 3), (Mark.EXCEEDED, 10, 2), (Mark.NONE, 10, 2)],
    ids=lambda value: value.name if isinstance(value, Mark) else "",
)
def test_a_decision_counts_where_it_says_something_about_the_agent(
    mark: Mark, actions: int, denied: int, attested: bool
) -> None:
    counts = actions > EARNED.actions
    assert EARNED.after(mark, attested) == Merit(5.0, actions, denied, 3 + (attested and counts))


@pytest.mark.parametrize(
    ("state", "after"),
    [("approved", EARNED._replace(attestations=4)), ("rejected", EARNED._replace(denied=3)), ("expired", EARNED)],
)
def test_what_a_person_says_counts_and_that_nobody_came_does_not(state: str, after: Merit) -> None:
    assert EARNED.settled(state) == after


@given(st.lists(st.tuples(st.sampled_from(Mark), st.booleans()), max_size=60))
def test_nothing_is_denied_or_attested_that_was_no_action(decisions: list[tuple[Mark, bool]]) -> None:
    merit = NO_MERIT
    for mark, attested in decisions:
        before, merit = merit, merit.after(mark, attested)
        assert all(new >= old for new, old in zip(merit, before, strict=True))
    assert max(merit.denied, merit.attestations) <= merit.actions <= len(decisions)
    assert merit.since == 0.0


# As it is kept


def test_an_agent_nobody_has_heard_of_has_none(shop: Shop) -> None:
    assert _merit(shop) == shop.store.merit("agent_9") == NO_MERIT


def test_decisions_are_counted_and_live_through_a_restart(disk: Shop) -> None:
    _approved(disk, 1, attested=True)
    _approved(disk, 2)
    _denied(disk)
    _denied(disk, Mark.NONE)
    _denied(disk, Mark.EXCEEDED)
    assert _merit(disk) == Merit(0.0, 3, 1, 1)
    disk.reopened()
    assert _merit(disk) == Merit(0.0, 3, 1, 1)


@pytest.mark.parametrize(
    ("state", "after"),
    [("approved", Merit(0.0, 1, 0, 1)), ("rejected", Merit(0.0, 1, 1, 0)), ("expired", Merit(0.0, 1, 0, 0))],
)
def test_what_waits_is_one_action_and_counts_once_more_when_a_person_settles_it(
    shop: Shop, state: str, after: Merit
) -> None:
    approval = _asked(shop, 1)
    assert _merit(shop) == Merit(0.0, 1, 0, 0)
    shop.change(shop.resolved(approval, state))
    assert _merit(shop) == after
    shop.change(shop.resolved(approval, state))
    assert _merit(shop) == after, "settled once"


@pytest.mark.parametrize("to", [Trust.UNTRUSTED, Trust.AUTONOMOUS, Trust.TRUSTED])
def test_a_new_level_begins_a_new_record_up_or_down(disk: Shop, to: Trust) -> None:
    _approved(disk, 1, attested=True)
    _denied(disk)
    disk.hands.turn(100)
    disk.change(AgentChanged(_agent(disk), replace(_agent(disk), trust=to)))
    assert _merit(disk) == Merit(since=NOON + 100)
    _denied(disk)
    assert _merit(disk) == Merit(NOON + 100, 1, 1, 0)
    disk.reopened()
    assert _merit(disk) == Merit(NOON + 100, 1, 1, 0)


def test_a_level_an_agent_that_never_acted_is_given_begins_its_record(disk: Shop) -> None:
    disk.change(AgentChanged(_agent(disk), replace(_agent(disk), trust=Trust.TRUSTED)))
    disk.reopened()
    assert _merit(disk) == Merit(since=NOON)
    assert disk.store.tally("agent_1", None, None).total_actions == 0


def test_what_leaves_the_level_as_it_is_leaves_the_record_as_it_is(shop: Shop) -> None:
    _denied(shop)
    suspended = replace(_agent(shop), status=AgentStatus.SUSPENDED)
    shop.change(AgentChanged(_agent(shop), suspended))
    shop.change(AgentChanged(suspended, replace(suspended, status=AgentStatus.ACTIVE, token_prefix="qwed_agent_new")))
    shop.change(AgentStands(_agent(shop)))
    assert _merit(shop) == Merit(0.0, 1, 1, 0)


def test_a_decision_that_costs_trust_ends_the_record_it_stood_in(disk: Shop) -> None:
    _approved(disk, 1)
    disk.hands.turn(7)
    _denied(disk, Mark.VIOLATION)
    assert (_agent(disk).trust, _merit(disk)) == (Trust.UNTRUSTED, Merit(since=NOON + 7))
    disk.hands.turn(1)
    _denied(disk, Mark.VIOLATION)
    assert _merit(disk) == Merit(NOON + 7, 1, 1, 0), "with no level left to lose the record goes on"
    disk.reopened()
    assert _merit(disk) == Merit(NOON + 7, 1, 1, 0)


def test_an_elevation_that_is_asked_for_or_refused_leaves_the_record_as_it_is(shop: Shop) -> None:
    _denied(shop)
    wish = Approval("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", "{}")
    shop.change(ElevationRequested(ORGANISATION, "agent_1", "act_up", wish), activity_id="act_up")
    shop.change(shop.resolved(wish, "rejected"))
    assert _merit(shop) == Merit(0.0, 1, 1, 0)


def test_an_elevation_that_is_granted_begins_a_new_record(shop: Shop) -> None:
    _approved(shop, 1, attested=True)
    wish = Approval("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", "{}")
    shop.change(ElevationRequested(ORGANISATION, "agent_1", "act_up", wish), activity_id="act_up")
    raised = AgentChanged(_agent(shop), replace(_agent(shop), trust=Trust.AUTONOMOUS))
    shop.change(shop.resolved(wish), raised)
    assert _merit(shop) == Merit(since=NOON)


def test_agents_earn_for_themselves_alone(shop: Shop) -> None:
    shop.register(agent_of("agent_2"))
    _denied(shop, times=3)
    assert shop.store.merit("agent_2") == NO_MERIT
    other = shop.store.find_agent("agent_2")
    shop.change(AgentChanged(other, replace(other, trust=Trust.TRUSTED)), agent_id="agent_2")
    assert (_merit(shop), shop.store.merit("agent_2")) == (Merit(0.0, 3, 3, 0), Merit(since=NOON))


def test_what_could_not_be_kept_has_not_counted(disk: Shop) -> None:
    approval = _asked(disk, 1)
    before = _merit(disk)
    raised = AgentChanged(_agent(disk), replace(_agent(disk), trust=Trust.TRUSTED))
    with disk.broken():
        for part in (disk.resolved(approval, "rejected"), raised):
            with pytest.raises(StoreError):
                disk.change(part)
        with pytest.raises(StoreError):
            _denied(disk)
    assert _merit(disk) == before
    disk.change(disk.resolved(approval, "rejected"))
    assert _merit(disk) == before._replace(denied=1)


def test_what_is_held_is_held_through_a_new_level(shop: Shop) -> None:
    reservation = shop.reserve(_agent(shop), 1)
    shop.store.hold(reservation, CENT, shop.hands.now)
    shop.change(AgentChanged(_agent(shop), replace(_agent(shop), trust=Trust.TRUSTED)))
    usage = shop.store._live.usage("agent_1")
    assert (usage.held, usage.merit) == (CENT, Merit(since=NOON))
    shop.store.release(reservation)


# One story with the log

SUM = {"type": "calculate", "query": "2+2"}
ATTACK = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
TOO_RISKY = {"type": "execute_sql", "query": "DROP TABLE users"}
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}}


def _live(directory: Path, hands: HandClock) -> str:
    """Everything that can happen to a record, at several levels; the agent it happened to."""
    with open_gate(directory, clock=hands.clock(), trust_min_days=0, trust_min_actions=0) as gate:
        agent_id: str = gate.register_agent(name="a", principal_id="p")["agent_id"]
        steps = itertools.count(1)

        def ask(action: dict[str, Any], **options: Any) -> Any:
            hands.turn(1)
            place = {"conversation_id": f"c{next(steps)}", "step_number": 1}
            return gate.verify_action(agent_id, action, place, options or None)

        def level() -> None:
            assert ask(SUM, require_attestation=True).attestation is not None
            assert ask(TOO_RISKY).decision in ("DENIED", "PENDING")
            gate.reject(ask(MAIL).approval_id, "no")
            gate.approve(ask(MAIL).approval_id, "yes")
            assert ask(MAIL).decision == "PENDING"

        level()
        hands.turn(86_401)  # one runs out
        gate.get_agent_budget(agent_id)
        gate.services.store.durable().block(30)
        Books(directory).require_one_story()
        refused = gate.services.store.merit(agent_id)
        assert (refused.actions, refused.denied, refused.attestations) == (5, 2, 2)
        gate.reduce_trust(agent_id, 0)
        assert gate.services.store.merit(agent_id) == Merit(since=hands.now)
        for _ in range(20):
            assert ask(SUM).decision == "PENDING"
        gate.approve(gate.request_trust_change(agent_id, 1)["approval_id"], "earned")
        level()
        assert ask(ATTACK).decision == "DENIED"
        ask(SUM)
    return agent_id


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The agent, and the directory in which it lived; nobody writes there any more."""
    directory = tmp_path_factory.mktemp("merit") / "data"
    return _live(directory, HandClock()), directory


def test_what_speaks_for_an_agent_is_what_the_log_says_of_it(lived: tuple[str, Path]) -> None:
    agent_id, directory = lived
    books = Books(directory)
    books.require_one_story()
    assert {one.event for one in books.events(*TRUST_EVENTS)} == set(TRUST_EVENTS)
    kept = books.usage[agent_id]
    assert (kept["actions"], kept["denied"], kept["attestations"]) == (1, 0, 0), "since the attack"


@pytest.mark.parametrize("column", ["since", "actions", "denied", "attestations"])
def test_a_record_that_says_something_else_is_noticed(lived: tuple[str, Path], column: str) -> None:
    agent_id, directory = lived
    books = Books(directory)
    books.usage[agent_id][column] += 1
    with pytest.raises(AssertionError, match=column):
        books.require_one_story()
