"""Before a request is walked through it knows who asks and how things stand: in one go for all who wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import psycopg
import pytest

from qwed.store.agent import Agent, AgentStatus
from qwed.store.parts import AgentAdded, AgentChanged, KeyAdded, SubjectErased
from qwed.store.postgres import near
from qwed.store.postgres.household import LEADING
from qwed.store.postgres.locks import try_to_lead
from qwed.store.protocol import ActivityQuery, StoreError, Subject, Wanted
from qwed.words import ErrorCode
from tests.support.clock import HandClock
from tests.support.stores import ORGANISATION, SharedShop, agent_of, owner_key
from tests.support.waiting import wait_for


@pytest.fixture
def one(empty: str) -> Iterator[SharedShop]:
    shop = SharedShop(empty, HandClock())
    shop.register(agent_of())
    yield shop
    shop.store.close()


@pytest.fixture
def other(one: SharedShop) -> Iterator[SharedShop]:
    shop = one.beside()
    yield shop
    shop.store.close()


def _ask(shop: SharedShop, **wanted: object) -> object:
    ticket = shop.store.freshen(Wanted(**wanted))  # type: ignore[arg-type]  # as each test says
    return None if ticket is None else ticket.block(30)


def _is_near(shop: SharedShop, **wanted: object) -> bool:
    return shop.store.freshen(Wanted(any_age=True, **wanted)) is None  # type: ignore[arg-type]  # as each test says


def test_who_was_asked_for_is_near(one: SharedShop) -> None:
    assert not _is_near(one, agent_id="agent_1", prefix="qwed_live_a")
    _ask(one, agent_id="agent_1", prefix="qwed_live_a")
    assert _is_near(one, agent_id="agent_1", prefix="qwed_live_a")
    with one.store._lock:
        one.store._lines._away = "away"
    assert (one.store.find_agent("agent_1"), one.store.find_key("qwed_live_a")) == (agent_of(), owner_key())
    assert not one.store.halted(ORGANISATION)
    one.store._lines._away = ""


NOBODIES = {
    "unknown": "nobody",
    "empty": "",
    "null": "a\0b",
    "half a letter": "half \ud800",
    "long": "é" * 3_000,
    "a statement": "'; DROP TABLE agents; --",
    "placeholders": "%s %(x)s {}",
}


@pytest.mark.parametrize("name", NOBODIES.values(), ids=NOBODIES)
def test_nobody_is_nobody_and_asking_is_no_harm(one: SharedShop, name: str) -> None:
    _ask(one, agent_id=name, prefix=name, conversations=((name, name),), memory=(name, name), spends=True)
    assert (one.store.find_agent(name), one.store.find_key(name)) == (None, None)
    assert one.store._live._usages == {}
    assert one.store.claim_key(name, name, "hash", 0.0) == (None, None)
    _ask(one, agent_id="agent_1")
    assert one.store.find_agent("agent_1") == agent_of()


def test_who_was_nobody_a_moment_ago_is_somebody_once_they_are_there(one: SharedShop, other: SharedShop) -> None:
    late = agent_of("agent_2")
    _ask(other, agent_id="agent_2", prefix="late")
    assert (other.store.find_agent("agent_2"), other.store.find_key("late")) == (None, None)
    one.change(AgentAdded(late), KeyAdded(owner_key("key_2", prefix="late")))
    _ask(other, agent_id="agent_2", prefix="late")
    assert (other.store.find_agent("agent_2"), other.store.find_key("late")) == (
        late,
        owner_key("key_2", prefix="late"),
    )


def test_no_more_nobodies_are_kept_in_mind_than_there_may_be(one: SharedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "MOST_NOBODIES", 5)
    monkeypatch.setattr(near, "MOST_MEMORIES", 5)
    for number in range(20):
        _ask(one, agent_id=f"nobody {number}", memory=("agent_1", f"k{number}"))
    assert (len(one.store._known._nobodies), len(one.store._memories._asked)) == (5, 5)


def test_many_who_ask_at_once_all_get_their_answer(one: SharedShop) -> None:
    names = [f"agent_{number % 7}" for number in range(200)]
    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(lambda name: _ask(one, agent_id=name, spends=True), names)) == {None}
    assert one.store.find_agent("agent_1") == agent_of()


def test_who_cannot_be_read_is_refused_and_nobody_else_is(one: SharedShop) -> None:
    one.register(agent_of("agent_2"))
    with psycopg.connect(one.url, autocommit=True) as outside:
        outside.execute("UPDATE agents SET permissions = 'rubbish' WHERE agent_id = 'agent_2'")
    with one.store._lock:
        # So that they are read for together.
        tickets = [one.store.freshen(Wanted(agent_id=f"agent_{number}")) for number in (1, 2, 1)]
    for ticket in tickets[::2]:
        assert ticket.block(30) is None
    with pytest.raises(msgspec.DecodeError):
        tickets[1].block(30)
    assert one.store.find_agent("agent_1") == agent_of()


def test_a_key_that_is_revoked_between_two_statements_of_one_look_is_not_believed(
    one: SharedShop, other: SharedShop
) -> None:
    one.change(KeyAdded(owner_key("key_2", prefix="late", role="member")))
    with psycopg.connect(one.url) as outside, psycopg.connect(one.url, autocommit=True) as watching:
        # Keys are read before agents, which have to be waited for.
        outside.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
        asked = other.store.freshen(Wanted(prefix="late", agent_id="agent_1"))
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        wait_for(lambda: watching.execute(waits).fetchone() == (1,))
        outside.execute("UPDATE keys SET revoked_at = 5 WHERE key_id = 'key_2'")
    asked.block(30)
    assert other.store.find_key("late") is None
    _ask(other, prefix="late", agent_id="agent_1")
    assert other.store.find_key("late") is None


def test_an_agent_that_changes_while_it_is_met_is_not_as_it_was(
    one: SharedShop, other: SharedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask(other, prefix="qwed_live_a")
    real, first = near.NearKnown.meet_agent, [agent_of()]

    def late(known: Any, agent: Agent) -> Agent:
        if known is other.store._known and first:
            before = first.pop()
            one.change(AgentChanged(before, replace(before, status=AgentStatus.SUSPENDED)))
            with suppress(TimeoutError):
                # What is learnt now must not come between reading and remembering.
                other.store.freshen(Wanted(prefix="qwed_live_a")).block(0.5)
        return real(known, agent)

    monkeypatch.setattr(near.NearKnown, "meet_agent", late)
    other.store.find_agent("agent_1")
    other.freshen()
    agent = other.store.find_agent("agent_1")
    assert agent.status is AgentStatus.SUSPENDED
    assert other.commit(agent, 1) is ErrorCode.AGENT_SUSPENDED


def test_an_erasure_is_heard_of_though_a_row_beside_it_cannot_be_read(one: SharedShop, other: SharedShop) -> None:
    heard: list[bool] = []
    other.store.on_erased = lambda: heard.append(True)
    one.register(agent_of("agent_2"))
    one.store.add_subject(Subject("subject", ORGANISATION, "name", b"key", 0.0)).block(30)
    other.freshen()
    with psycopg.connect(one.url, autocommit=True) as outside:
        outside.execute("UPDATE agents SET permissions = 'rubbish' WHERE agent_id = 'agent_2'")
    one.change(SubjectErased(ORGANISATION, "name", 1.0, "by"), agent_id="")
    with pytest.raises(msgspec.DecodeError):
        _ask(other, agent_id="agent_2")
    assert heard == [True]
    other.freshen()
    assert heard == [True]


def test_who_looks_at_a_house_for_the_first_time_hears_that_somebody_was_erased_there(
    one: SharedShop, other: SharedShop
) -> None:
    """Their key may be in mind all the same: whoever keeps house opens what is about anybody."""
    heard: list[bool] = []
    other.store.on_erased = lambda: heard.append(True)
    one.store.add_subject(Subject("subject", ORGANISATION, "name", b"key", 0.0)).block(30)
    one.change(SubjectErased(ORGANISATION, "name", 1.0, "by"), agent_id="")
    other.freshen()
    assert heard == [True]


def test_connections_that_were_cut_while_nobody_used_them_are_nobodys_affair(one: SharedShop) -> None:
    one.freshen()
    one.commit(agent_of(), 1)
    assert len(one.store.activities(ActivityQuery("agent_1", 10))) == 1
    with psycopg.connect(one.url, autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'qwed'")
    one.freshen()
    assert one.store.take_token(ORGANISATION, "pair", 1, 0.0) == 0.0
    assert one.commit(agent_of(), 2).log_index == 1
    assert len(one.store.activities(ActivityQuery("agent_1", 10))) == 2
    wait_for(one.store.leads)


def test_a_closed_store_answers_nobody(one: SharedShop) -> None:
    shop = one.beside()
    shop.store.close()
    for ask in (lambda: shop.store.find_agent("agent_9"), shop.store.durable):
        with pytest.raises(StoreError, match="closed"):
            ask()


def test_one_of_them_leads_and_when_it_is_gone_another(one: SharedShop, other: SharedShop) -> None:
    assert (one.store.leads(), other.store.leads()) == (True, False)
    one.store._household.close()
    wait_for(other.store.leads)
    assert not one.store.leads()


def test_who_leads_and_does_nothing_leads_no_longer(one: SharedShop) -> None:
    one.store._household.close()
    still = one.store._lines.open(LEADING._replace(unused=0.5))
    assert try_to_lead(still)
    other = one.beside()
    wait_for(other.store.leads)
    with pytest.raises(psycopg.OperationalError):
        still.execute("SELECT 1")
    other.store.close()
