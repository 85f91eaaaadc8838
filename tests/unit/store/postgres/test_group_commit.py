"""A batch is written as a whole or not at all, and every caller learns which, whatever happens to the connection."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec
import psycopg
import pytest

from qwed.domain.agent import AgentStatus
from qwed.domain.behaviour import BehaviourFlag
from qwed.domain.change_parts import AgentChanged, Conflict, ToolChanged
from qwed.domain.snapshot import SnapshotKeys
from qwed.domain.write_set import Committed, IdempotentAnswer, Reservation, WriteSet
from qwed.ledger.sequencer import head_from
from qwed.ledger.verifier import Tree, leaf_hash, read_head
from qwed.model import Decision, ErrorCode, Trust
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.postgres import connections, group_commit, snapshot_loader
from qwed.store.postgres import store as shared
from qwed.store.postgres.connections import Timeouts
from qwed.store.postgres.locks import exclusive_startup
from qwed.store.protocol import (
    ActivityQuery,
    DatabaseUnreachableError,
    DataSubject,
    StoreError,
)
from tests.support.manual_clock import ManualClock
from tests.support.postgres_cut_proxy import CommitCutProxy
from tests.support.postgres_server import Postgres, database_name
from tests.support.store_parts import StoreParts
from tests.support.stores import CENT, KEYRING, ORGANISATION, PostgresStoreFixture, agent_of, owner_key
from tests.support.wait_until import wait_for_condition


@pytest.fixture
def one(empty: str) -> Iterator[PostgresStoreFixture]:
    store_fixture = PostgresStoreFixture(empty, ManualClock())
    store_fixture.register(agent_of())
    yield store_fixture
    store_fixture.store.close()


def _agent(store_fixture: PostgresStoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _walked(store_fixture: PostgresStoreFixture, step: int, **more: Any) -> WriteSet:
    """Return the write set of a decision."""
    reservation = store_fixture.reserve(_agent(store_fixture), step, f"c{step}", CENT)
    assert isinstance(reservation, Reservation)
    return store_fixture.write_set(_agent(store_fixture), reservation, charge=CENT, **more)


def _decided(store_fixture: PostgresStoreFixture, step: int, **more: Any) -> Any:
    """Submit a commit."""
    return store_fixture.store.commit(_walked(store_fixture, step, **more))


def _leaves(store_fixture: PostgresStoreFixture) -> list[int]:
    return [
        row[0] for row in StoreParts(store_fixture.store).rows("SELECT log_index FROM activities ORDER BY log_index")
    ]


# Writes that fail


def test_one_that_cannot_be_written_leaves_the_others_of_its_batch(one: PostgresStoreFixture) -> None:
    with one.stopped():
        first = _decided(one, 1)
        tickets = [_decided(one, step, subject_id="sub_nobody" if step == 4 else None) for step in range(2, 7)]
    assert isinstance(first.wait_result(30), Committed)
    with pytest.raises(StoreError, match="foreign key"):
        tickets.pop(2).wait_result(30)
    assert [ticket.wait_result(30).log_index for ticket in tickets] == [1, 2, 3, 4]
    assert _leaves(one) == [0, 1, 2, 3, 4]
    assert one.spent(_agent(one)).cost_day == 5 * CENT.cost


def test_one_whose_decision_is_surprised_leaves_the_others(one: PostgresStoreFixture) -> None:
    def surprise(_settled: Committed) -> bytes:
        raise RuntimeError("surprise")

    with one.stopped():
        first = _decided(one, 1)
        bad = _decided(one, 2, memory=IdempotentAnswer("k", "hash", surprise, 9e9))
        last = _decided(one, 3)
    with pytest.raises(RuntimeError, match="surprise"):
        bad.wait_result(30)
    assert [ticket.wait_result(30).log_index for ticket in (first, last)] == [0, 1]


@contextmanager
def circling(store_fixture: PostgresStoreFixture, circles: int, after: int = 0) -> Iterator[None]:
    """Make some batches fail with a deadlock."""
    with psycopg.connect(store_fixture.url, autocommit=True) as outside:
        outside.execute("CREATE SEQUENCE circles")
        breaks = f"IF n BETWEEN {after + 1} AND {after + circles} THEN RAISE deadlock_detected; END IF; RETURN NULL;"
        body = f"DECLARE n BIGINT := nextval('circles'); BEGIN {breaks} END"
        outside.execute(f"CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $${body}$$".encode())
        outside.execute("CREATE TRIGGER break AFTER INSERT ON heads EXECUTE FUNCTION break()")
        try:
            yield
        finally:
            outside.execute("DROP FUNCTION break CASCADE")
            outside.execute("DROP SEQUENCE circles")


@pytest.mark.parametrize(("circles", "written"), [(1, True), (2, True), (3, False)])
def test_a_circle_that_postgresql_breaks_is_tried_again(one: PostgresStoreFixture, circles: int, written: bool) -> None:
    with circling(one, circles):
        ticket = _decided(one, 1)
        if written:
            assert ticket.wait_result(30).log_index == 0
        else:
            with pytest.raises(StoreError, match="could not write"):
                ticket.wait_result(30)
    assert _leaves(one) == [0] * written
    assert one.commit(_agent(one), 2, "after").log_index == int(written)


def test_what_is_refused_writes_nothing_and_costs_no_place(one: PostgresStoreFixture) -> None:
    other = one.open_second()
    walked = [(store_fixture, _walked(store_fixture, 1)) for store_fixture in (one, other)]
    outcomes = [store_fixture.outcome(store_fixture.store.commit(request)) for store_fixture, request in walked]
    assert outcomes.count(Conflict.STALE) == 1
    assert _leaves(one) == [0]
    other.store.close()


def test_of_two_decisions_of_one_batch_the_second_stands_on_the_first(one: PostgresStoreFixture) -> None:
    agent = _agent(one)
    with one.stopped():
        second_step = _decided(one, 9)
        early, late = (one.reserve(agent, step, "c") for step in (1, 2))
        assert isinstance(early, Reservation)
        assert isinstance(late, Reservation)
        second = one.store.commit(one.write_set(agent, late))
        first = one.store.commit(one.write_set(agent, early))
    second_step.wait_result(30)
    assert isinstance(second.wait_result(30), Committed)
    assert first.wait_result(30) is Conflict.STALE


def test_months_are_made_ahead_by_whoever_leads(one: PostgresStoreFixture) -> None:
    partitions = StoreParts(one.store).rows(
        "SELECT relname FROM pg_class WHERE relname ~ '^activities_2[0-9]+_[0-9]+$'"
    )
    assert len(partitions) >= 3


# Lost connections


@pytest.fixture(scope="module")
def own() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture
def store_fixture(own: Postgres, template: str) -> Iterator[PostgresStoreFixture]:
    shop_ = PostgresStoreFixture(own.database(), ManualClock())
    shop_.register(agent_of())
    yield shop_
    shop_.store.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_whose_answer_was_lost_is_looked_for(own: Postgres, when: str) -> None:
    with CommitCutProxy(str(own.home)) as wire:
        store_fixture = PostgresStoreFixture(wire.url(database_name(own.database())), ManualClock())
        store_fixture.register(agent_of())
        _decided(store_fixture, 1).wait_result(30)
        wire.cut_at_commit(when)
        ticket = _decided(store_fixture, 2)
        if when == "after":
            assert ticket.wait_result(30).log_index == 1
            assert ticket.result().position.index == 1
        else:
            with pytest.raises(StoreError, match="could not write"):
                ticket.wait_result(30)
        assert wire.cuts == 1
        wait_for_condition(lambda: not StoreParts(store_fixture.store).connector.is_down)
        assert store_fixture.spent(_agent(store_fixture)).cost_day == (2 if when == "after" else 1) * CENT.cost
        third = _decided(store_fixture, 3).wait_result(30)
        assert _leaves(store_fixture) == list(range(third.log_index + 1))
        store_fixture.store.close()


def test_after_a_crash_of_the_server_everything_goes_on(own: Postgres, store_fixture: PostgresStoreFixture) -> None:
    _decided(store_fixture, 1).wait_result(30)
    own.restart_immediate()
    wait_for_condition(lambda: _is_back(store_fixture))
    assert _decided(store_fixture, 2).wait_result(30).log_index == 1
    assert [entry.log_index for entry in store_fixture.store.entries(ORGANISATION, 0, 9)] == [0, 1]
    wait_for_condition(store_fixture.store.is_leader)


def _tell(store_fixture: PostgresStoreFixture, word: str) -> int:
    """Make a change with a leaf of its own; return its index."""
    change = store_fixture.change_of()
    activity = msgspec.structs.replace(change.activity, leaf=f'{{"word":"{word}"}}')
    index: int = (
        store_fixture.store.commit(msgspec.structs.replace(change, activity=activity)).wait_result(30).log_index
    )
    return index


def test_a_log_goes_on_from_the_backup_that_was_put_in_its_place(
    own: Postgres, store_fixture: PostgresStoreFixture
) -> None:
    assert _tell(store_fixture, "first") == 0
    with own.closed(store_fixture.url):
        backup = own.database(like=store_fixture.url)
    wait_for_condition(lambda: _is_back(store_fixture))
    assert _tell(store_fixture, "lost") == 1
    own.drop(store_fixture.url)
    with pytest.raises(StoreError):
        store_fixture.load()
    own.rename(backup, store_fixture.url)
    wait_for_condition(lambda: _is_back(store_fixture))
    other = store_fixture.open_second()
    assert (_tell(other, "second"), _tell(store_fixture, "third")) == (1, 2)
    other.store.close()
    tree = Tree()
    for entry in store_fixture.store.entries(ORGANISATION, 0, 9):
        tree.add(leaf_hash(entry.leaf.encode()))
    head = msgspec.to_builtins(head_from(store_fixture.store.latest_head(ORGANISATION)))
    assert read_head(head, KEYRING.public_keys()).root == tree.root()


def test_nothing_is_believed_of_before_the_backup_that_was_put_in_its_place(
    own: Postgres, store_fixture: PostgresStoreFixture
) -> None:
    before = agent_of()
    store_fixture.load()
    with own.closed(store_fixture.url):
        backup = own.database(like=store_fixture.url)
    wait_for_condition(lambda: _is_back(store_fixture))
    raised = [replace(before, trust=trust) for trust in (Trust.AUTONOMOUS, Trust.TRUSTED)]
    store_fixture.change(AgentChanged(before, raised[0]))
    store_fixture.change(AgentChanged(*raised))
    store_fixture.load()
    store_fixture.commit(_agent(store_fixture), 1)
    reservation = store_fixture.reserve(_agent(store_fixture), 7)
    own.drop(store_fixture.url)
    own.rename(backup, store_fixture.url)
    other = store_fixture.open_second()
    stopped = replace(before, status=AgentStatus.SUSPENDED)
    # The same number of changes: a count alone does not distinguish them.
    other.change(AgentChanged(before, stopped))
    other.change(AgentChanged(stopped, replace(stopped, trust=Trust.UNTRUSTED)))
    wait_for_condition(lambda: _is_back(store_fixture))
    store_fixture.load()
    assert (_agent(store_fixture).status, _agent(store_fixture).trust) == (AgentStatus.SUSPENDED, Trust.UNTRUSTED)
    assert isinstance(reservation, Reservation)
    assert store_fixture.settle(raised[1], reservation) is Conflict.STALE
    assert store_fixture.spent(_agent(store_fixture)).cost_day == 0
    # The committed step is free again, and the reserved one is still reserved.
    assert isinstance(reservation, Reservation)
    assert isinstance(store_fixture.reserve(_agent(store_fixture), 1), Reservation)
    assert store_fixture.reserve(_agent(store_fixture), 7) is ErrorCode.REPLAY
    other.store.close()


@pytest.mark.parametrize("circles", [1, 2])
def test_what_a_decision_needed_is_written_with_the_attempt_that_succeeds(
    one: PostgresStoreFixture, circles: int
) -> None:
    heard: list[bool] = []
    one.store.on_write_failure = lambda: heard.append(True)

    with circling(one, circles, after=1):
        with one.stopped():
            first = _decided(one, 1)
            one.store.add_subject(DataSubject("late", ORGANISATION, "name", b"key", 0.0))
            violation = _walked(one, 3, mark=BehaviourFlag.VIOLATION, subject_id="late")
            tickets = [_decided(one, 2), one.store.commit(violation)]
        assert {type(future.wait_result(30)) for future in (first, *tickets)} == {Committed}
    assert heard == []
    assert one.store.subject("late") is not None


def test_a_key_that_the_tables_have_not_got_is_held_in_mind_by_nobody(one: PostgresStoreFixture) -> None:
    heard: list[bool] = []
    one.store.on_write_failure = lambda: heard.append(True)
    with pytest.raises(StoreError, match="foreign key"):
        _decided(one, 1, subject_id="sub_nobody").wait_result(30)
    assert heard == [True]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_job_whose_answer_was_lost_is_there_once_and_told(own: Postgres, when: str) -> None:
    with CommitCutProxy(str(own.home)) as wire:
        store_fixture = PostgresStoreFixture(wire.url(database_name(own.database())), ManualClock())
        job = BatchJob("job_1", ORGANISATION, "key", "owner", 10, False, 1, 1000.0, 9e9)
        wire.cut_at_commit(when)
        store_fixture.store.add_job(job, [JobItem("job_1", 0, "query", None, None)]).wait_result(30)
        assert wire.cuts == 1
        assert [stored.job_id for stored in store_fixture.store.open_jobs()] == ["job_1"]
        store_fixture.store.close()


@pytest.mark.parametrize("cut", [True, False], ids=["connections end", "connections stay"])
def test_one_that_is_only_read_from_now_on_is_away_until_it_is_written_to_again(
    own: Postgres, store_fixture: PostgresStoreFixture, cut: bool
) -> None:
    _decided(store_fixture, 1).wait_result(30)
    walked = _walked(store_fixture, 2)
    with _only_read(own, store_fixture, cut=cut):
        with pytest.raises(StoreError):
            store_fixture.outcome(store_fixture.store.commit(walked))
        assert not store_fixture.store.is_available()
        with pytest.raises(StoreError, match="read-only"):
            store_fixture.load()
        with pytest.raises(DatabaseUnreachableError, match=r"PostgreSQL cannot be reached: .* read-only"):
            store_fixture.open_second()
        with pytest.raises(DatabaseUnreachableError, match="read-only"), exclusive_startup(store_fixture.url):
            pass
    wait_for_condition(lambda: _is_back(store_fixture))
    assert store_fixture.outcome(store_fixture.store.commit(walked)).log_index == 1


@contextmanager
def _only_read(own: Postgres, store_fixture: PostgresStoreFixture, *, cut: bool) -> Iterator[None]:
    """Make the server read-only, as after a failover."""
    name = database_name(store_fixture.url)
    own.say(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    if cut:
        own.say(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    else:
        StoreParts(store_fixture.store).writer_connection.get().execute("SET default_transaction_read_only = on")
    yield
    own.say(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_while_the_database_is_away_everybody_is_refused_at_once_and_then_served_again(
    own: Postgres, store_fixture: PostgresStoreFixture
) -> None:
    store_fixture.load()
    walked = _walked(store_fixture, 1)
    own.stop()
    try:
        with pytest.raises(StoreError, match="cannot be reached"):
            store_fixture.load()
        assert StoreParts(store_fixture.store).connector.is_down
        for ask in (
            store_fixture.load,
            lambda: store_fixture.store.commit(walked),
            lambda: store_fixture.store.usage_counters("agent_1", 0.0),
        ):
            with pytest.raises(StoreError, match="unavailable"):
                ask()
    finally:
        own.start()
    wait_for_condition(lambda: _is_back(store_fixture))
    assert store_fixture.outcome(store_fixture.store.commit(walked)).log_index == 0
    assert store_fixture.store.find_agent("agent_1") == agent_of()


def _is_back(store_fixture: PostgresStoreFixture) -> bool:
    try:
        store_fixture.load()
    except StoreError:
        return False
    return True


def test_where_no_further_connection_is_to_be_had_those_that_are_there_go_on() -> None:
    with Postgres(settings={"max_connections": "20"}) as crowded:
        store_fixture = PostgresStoreFixture(crowded.database(), ManualClock())
        store_fixture.register(agent_of())
        store_fixture.load()
        _decided(store_fixture, 1).wait_result(30)
        with _crowd(crowded) as take:
            with pytest.raises(StoreError, match=r"PostgreSQL cannot be reached: .* too many clients"):
                store_fixture.store.activities(ActivityQuery("agent_1", 10))
            store_fixture.load()
            # Nor for the leader election, which has disconnected.
            wait_for_condition(lambda: not _leads_again(store_fixture, take))
            assert _decided(store_fixture, 2).wait_result(30).log_index == 1
            assert store_fixture.store.is_available()
        wait_for_condition(lambda: _leads_again(store_fixture, lambda: None))
        assert len(store_fixture.store.activities(ActivityQuery("agent_1", 10))) == 2
        store_fixture.store.close()


def _leads_again(store_fixture: PostgresStoreFixture, meanwhile: Callable[[], None]) -> bool:
    """Return True if this process becomes the leader after a reconnect."""
    election = StoreParts(store_fixture.store).leader_election
    election.close()
    meanwhile()
    election._heartbeat()
    leads: bool = store_fixture.store.is_leader()
    return leads


@contextmanager
def _crowd(own: Postgres) -> Iterator[Callable[[], None]]:
    """Use up every connection, and release them again."""
    with ExitStack() as stack:

        def take() -> None:
            with suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(own.url()))

        take()
        yield take


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short timeouts."""
    short = Timeouts(0.3, 0.1, 1)
    for module in (shared, snapshot_loader):
        monkeypatch.setattr(module, "READ_TIMEOUTS", short)
    monkeypatch.setattr(group_commit, "WRITE_TIMEOUTS", short)
    monkeypatch.setattr(connections, "_MARGIN", 0.1)
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_hangs_holds_nobody_up_for_long(own: Postgres, store_fixture: PostgresStoreFixture) -> None:
    _decided(store_fixture, 1).wait_result(30)
    store_fixture.load()
    walked = _walked(store_fixture, 2)
    own.freeze()
    try:
        refreshed, decided = (
            store_fixture.store.load(SnapshotKeys("agent_1")),
            store_fixture.store.commit(walked),
        )
        for ticket in (refreshed, decided):
            with pytest.raises(StoreError):
                ticket.wait_result(30)
        with pytest.raises(StoreError, match="unavailable"):
            store_fixture.store.usage_counters("agent_1", 0.0)
    finally:
        own.thaw()
    wait_for_condition(lambda: not StoreParts(store_fixture.store).connector.is_down)
    store_fixture.load()
    index = _decided(store_fixture, 3).wait_result(30).log_index
    assert _leaves(store_fixture) == list(range(index + 1))


@pytest.mark.usefixtures("impatient")
def test_whoever_holds_a_log_for_ever_stops_its_batches_and_no_others(one: PostgresStoreFixture) -> None:
    one.store.add_organisation("org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")).wait_result(30)
    with psycopg.connect(one.url) as other:
        other.execute("SELECT 1 FROM logs WHERE organisation_id = 'org_1' FOR UPDATE")
        with pytest.raises(StoreError, match="lock timeout"):
            _decided(one, 1).wait_result(30)
        change = one.change_of(ToolChanged("org_2", "t", b"1"), agent_id="", organisation_id="org_2")
        assert one.outcome(one.store.commit(change)).log_index == 0
    receipt = one.settle(_agent(one), None, Decision.DENIED)
    assert isinstance(receipt, Committed)
    assert receipt.log_index == 0
