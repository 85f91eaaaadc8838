"""Each request loads what it reads, in one round trip for all that wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import psycopg
import pytest

from qwed.domain.agent import Agent, AgentStatus
from qwed.domain.change_parts import AgentAdded, AgentChanged, Conflict, KeyAdded, SubjectErased
from qwed.domain.snapshot import NO_CHAIN, Snapshot, SnapshotKeys
from qwed.domain.write_set import Reservation
from qwed.store.postgres import cache
from qwed.store.postgres.leader_election import LEADER_TIMEOUTS
from qwed.store.postgres.locks import try_acquire_leadership
from qwed.store.protocol import ActivityQuery, DataSubject, RefreshKeys, StoreError
from tests.support.manual_clock import ManualClock
from tests.support.store_caches import cached_missing_entities
from tests.support.store_parts import StoreParts
from tests.support.stores import ORGANISATION, PostgresStoreFixture, agent_of, owner_key
from tests.support.wait_until import wait_for_condition


@pytest.fixture
def one(empty: str) -> Iterator[PostgresStoreFixture]:
    store_fixture = PostgresStoreFixture(empty, ManualClock())
    store_fixture.register(agent_of())
    yield store_fixture
    store_fixture.store.close()


@pytest.fixture
def other(one: PostgresStoreFixture) -> Iterator[PostgresStoreFixture]:
    store_fixture = one.open_second()
    yield store_fixture
    store_fixture.store.close()


def _refresh(store_fixture: PostgresStoreFixture, **keys: Any) -> None:
    future = store_fixture.store.refresh(RefreshKeys(**keys))
    if future is not None:
        future.wait_result(30)


def _is_near(store_fixture: PostgresStoreFixture, **keys: Any) -> bool:
    return store_fixture.store.refresh(RefreshKeys(allow_stale=True, **keys)) is None


def test_who_was_asked_for_is_near(one: PostgresStoreFixture) -> None:
    assert not _is_near(one, agent_id="agent_1", prefix="qwed_live_a")
    _refresh(one, agent_id="agent_1", prefix="qwed_live_a")
    assert _is_near(one, agent_id="agent_1", prefix="qwed_live_a")
    with StoreParts(one.store).lock:
        StoreParts(one.store).connector._down_reason = "away"
    assert (one.store.find_agent("agent_1"), one.store.find_key("qwed_live_a")) == (agent_of(), owner_key())
    assert not one.store.halted(ORGANISATION)
    StoreParts(one.store).connector._down_reason = ""


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
def test_nobody_is_nobody_and_asking_is_no_harm(one: PostgresStoreFixture, name: str) -> None:
    nobody = {"key_prefix": name, "idempotency_key": name, "chain_id": name, "receiver_id": name}
    assert one.load(name, name, **nobody) == Snapshot()
    assert (one.store.find_agent(name), one.store.find_key(name)) == (None, None)
    known = one.load("agent_1", name, **nobody)
    assert (known.agent, known.key, known.stored_answer, known.chain) == (agent_of(), None, None, NO_CHAIN)
    assert (known.history, known.key_in_flight, known.receiver_fingerprint) == (Snapshot().history, False, "")


def test_who_was_nobody_a_moment_ago_is_somebody_once_they_are_there(
    one: PostgresStoreFixture, other: PostgresStoreFixture
) -> None:
    late = agent_of("agent_2")
    _refresh(other, agent_id="agent_2", prefix="late")
    assert (other.store.find_agent("agent_2"), other.store.find_key("late")) == (None, None)
    one.change(AgentAdded(late), KeyAdded(owner_key("key_2", prefix="late")))
    _refresh(other, agent_id="agent_2", prefix="late")
    assert (other.store.find_agent("agent_2"), other.store.find_key("late")) == (
        late,
        owner_key("key_2", prefix="late"),
    )


def test_no_more_nobodies_are_kept_in_mind_than_there_may_be(
    one: PostgresStoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_MISSING", 5)
    for number in range(20):
        one.load(f"nobody {number}", idempotency_key=f"k{number}")
    assert cached_missing_entities(one.store) == 5


def test_many_who_ask_at_once_all_get_their_answer(one: PostgresStoreFixture) -> None:
    one.commit(agent_of(), 1)
    names = [f"agent_{number % 7}" for number in range(200)]
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(one.load, names))
    for name, snapshot in zip(names, found, strict=True):
        expected = (agent_of(), 1) if name == "agent_1" else (None, 0)
        assert (snapshot.agent, snapshot.history.last_step) == expected


def test_who_cannot_be_read_is_refused_and_nobody_else_is(one: PostgresStoreFixture) -> None:
    one.register(agent_of("agent_2"))
    with psycopg.connect(one.url, autocommit=True) as outside:
        outside.execute("UPDATE agents SET permissions = 'rubbish' WHERE agent_id = 'agent_2'")
    with StoreParts(one.store).lock:
        # So that they are read in one batch.
        tickets = [one.store.load(SnapshotKeys(f"agent_{number}")) for number in (1, 2, 1)]
    for ticket in tickets[::2]:
        assert ticket.wait_result(30).agent == agent_of()
    with pytest.raises(msgspec.DecodeError):
        tickets[1].wait_result(30)
    assert one.store.find_agent("agent_1") == agent_of()


def test_a_key_that_is_revoked_between_two_statements_of_one_look_is_not_believed(
    one: PostgresStoreFixture, other: PostgresStoreFixture
) -> None:
    one.change(KeyAdded(owner_key("key_2", prefix="late", role="member")))
    with psycopg.connect(one.url) as outside, psycopg.connect(one.url, autocommit=True) as watching:
        # Keys are read before agents, whose statement waits for a lock.
        outside.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
        future = other.store.load(SnapshotKeys("agent_1", key_prefix="late"))
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        wait_for_condition(lambda: watching.execute(waits).fetchone() == (1,))
        outside.execute("UPDATE keys SET revoked_at = 5 WHERE key_id = 'key_2'")
    assert future.wait_result(30).key is None
    assert other.store.find_key("late") is None
    assert other.load(key_prefix="late").key is None


def test_an_agent_that_changes_while_it_is_met_is_not_as_it_was(
    one: PostgresStoreFixture, other: PostgresStoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refresh(other, prefix="qwed_live_a")
    real, first = cache.SharedEntityCache.intern_agent, [agent_of()]

    def late(cache_: Any, agent: Agent) -> Agent:
        if cache_ is StoreParts(other.store).entities and first:
            before = first.pop()
            one.change(AgentChanged(before, replace(before, status=AgentStatus.SUSPENDED)))
            with suppress(TimeoutError):
                # An epoch update must not come between the read and the cache write.
                other.store.refresh(RefreshKeys(prefix="qwed_live_a")).wait_result(0.5)
        return real(cache_, agent)

    monkeypatch.setattr(cache.SharedEntityCache, "intern_agent", late)
    stale = other.store.find_agent("agent_1")
    reservation = other.reserve(agent_of(), 1)
    assert isinstance(reservation, Reservation)
    assert other.load().agent.status is AgentStatus.SUSPENDED
    assert stale == agent_of()
    assert other.settle(stale, reservation) is Conflict.STALE


def test_an_erasure_is_heard_of_though_a_row_beside_it_cannot_be_read(
    one: PostgresStoreFixture, other: PostgresStoreFixture
) -> None:
    heard: list[bool] = []
    other.store.on_subject_erased = lambda: heard.append(True)
    one.register(agent_of("agent_2"))
    one.store.add_subject(DataSubject("subject", ORGANISATION, "name", b"key", 0.0)).wait_result(30)
    other.load()
    with psycopg.connect(one.url, autocommit=True) as outside:
        outside.execute("UPDATE agents SET permissions = 'rubbish' WHERE agent_id = 'agent_2'")
    one.change(SubjectErased(ORGANISATION, "name", 1.0, "by"), agent_id="")
    with pytest.raises(msgspec.DecodeError):
        other.load("agent_2")
    assert heard == [True]
    other.load()
    assert heard == [True]


def test_who_looks_at_a_house_for_the_first_time_hears_that_somebody_was_erased_there(
    one: PostgresStoreFixture, other: PostgresStoreFixture
) -> None:
    """The subject's key may be cached elsewhere: the leader opens content of any organisation."""
    heard: list[bool] = []
    other.store.on_subject_erased = lambda: heard.append(True)
    one.store.add_subject(DataSubject("subject", ORGANISATION, "name", b"key", 0.0)).wait_result(30)
    one.change(SubjectErased(ORGANISATION, "name", 1.0, "by"), agent_id="")
    other.load()
    assert heard == [True]


def test_connections_that_were_cut_while_nobody_used_them_are_nobodys_affair(one: PostgresStoreFixture) -> None:
    one.load()
    one.commit(agent_of(), 1)
    assert len(one.store.activities(ActivityQuery("agent_1", 10))) == 1
    with psycopg.connect(one.url, autocommit=True) as outside:
        # Of this database only: the other test process has its own on the same server.
        outside.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'qwed' AND datname = current_database()"
        )
    one.load()
    assert one.store.take_token(ORGANISATION, "pair", 1, 0.0) == 0.0
    assert one.commit(agent_of(), 2).log_index == 1
    assert len(one.store.activities(ActivityQuery("agent_1", 10))) == 2
    wait_for_condition(one.store.is_leader)


def test_a_closed_store_answers_nobody(one: PostgresStoreFixture) -> None:
    store_fixture = one.open_second()
    store_fixture.store.close()
    for ask in (lambda: store_fixture.store.find_agent("agent_9"), store_fixture.store.durable):
        with pytest.raises(StoreError, match="closed"):
            ask()


def test_one_of_them_leads_and_when_it_is_gone_another(one: PostgresStoreFixture, other: PostgresStoreFixture) -> None:
    assert (one.store.is_leader(), other.store.is_leader()) == (True, False)
    StoreParts(one.store).leader_election.close()
    wait_for_condition(other.store.is_leader)
    assert not one.store.is_leader()


def test_who_leads_and_does_nothing_leads_no_longer(one: PostgresStoreFixture) -> None:
    StoreParts(one.store).leader_election.close()
    still = StoreParts(one.store).connector.open(LEADER_TIMEOUTS._replace(idle_session=0.5))
    assert try_acquire_leadership(still)
    other = one.open_second()
    wait_for_condition(other.store.is_leader)
    with pytest.raises(psycopg.OperationalError):
        still.execute("SELECT 1")
    other.store.close()


def test_a_request_after_close_is_refused_and_does_not_wait(one: PostgresStoreFixture) -> None:
    second = one.open_second()
    second.store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        second.load("agent_unknown")
