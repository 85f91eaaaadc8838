"""A batch is written as a whole or not at all, and whoever waits is told which, whatever becomes of the connection."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec
import psycopg
import pytest

from qwed.ledger.sequencer import head_from
from qwed.ledger.verifier import Tree, leaf_hash, read_head
from qwed.store.agent import Agent, AgentStatus
from qwed.store.conduct import Mark, Offence
from qwed.store.job import Job, JobItem
from qwed.store.parts import AgentChanged, ToolChanged
from qwed.store.postgres import freshening, lines, writing
from qwed.store.postgres import store as shared
from qwed.store.postgres.lines import Patience
from qwed.store.postgres.locks import starting_alone
from qwed.store.protocol import (
    MOVED,
    ActivityQuery,
    Change,
    Memory,
    Reservation,
    Settled,
    Settlement,
    StoreError,
    Subject,
    Unreachable,
    Wanted,
)
from qwed.words import Decision, ErrorCode, Trust
from tests.support.clock import HandClock
from tests.support.postgres_server import Postgres, named_by
from tests.support.postgres_wire import Wire
from tests.support.stores import CENT, KEYRING, ORGANISATION, SharedShop, agent_of, owner_key
from tests.support.waiting import wait_for


@pytest.fixture
def one(empty: str) -> Iterator[SharedShop]:
    shop = SharedShop(empty, HandClock())
    shop.register(agent_of())
    yield shop
    shop.store.close()


def _agent(shop: SharedShop) -> Any:
    return shop.store.find_agent("agent_1")


def _walked(shop: SharedShop, step: int, **more: Any) -> Settlement:
    """A decision that is about to be written."""
    reservation = shop.reserve(_agent(shop), step, f"c{step}")
    assert isinstance(reservation, Reservation)
    assert shop.store.hold(reservation, CENT, shop.hands.now) is None
    return shop.settlement(_agent(shop), reservation, charge=CENT, **more)


def _decided(shop: SharedShop, step: int, **more: Any) -> Any:
    """A decision on its way."""
    return shop.store.settle(_walked(shop, step, **more))


def _leaves(shop: SharedShop) -> list[int]:
    return [row[0] for row in shop.store._all("SELECT log_index FROM activities ORDER BY log_index", ())]


# What cannot be written


def test_one_that_cannot_be_written_leaves_the_others_of_its_batch(one: SharedShop) -> None:
    with one.stopped():
        first = _decided(one, 1)
        tickets = [_decided(one, step, subject_id="sub_nobody" if step == 4 else None) for step in range(2, 7)]
    assert isinstance(first.block(30), Settled)
    with pytest.raises(StoreError, match="foreign key"):
        tickets.pop(2).block(30)
    assert [ticket.block(30).log_index for ticket in tickets] == [1, 2, 3, 4]
    assert _leaves(one) == [0, 1, 2, 3, 4]
    assert one.spent(_agent(one)).cost_day == 5 * CENT.cost


def test_one_whose_decision_is_surprised_leaves_the_others(one: SharedShop) -> None:
    def surprise(_settled: Settled) -> bytes:
        raise RuntimeError("surprise")

    with one.stopped():
        first = _decided(one, 1)
        bad = _decided(one, 2, memory=Memory("k", "hash", surprise, 9e9))
        last = _decided(one, 3)
    with pytest.raises(RuntimeError, match="surprise"):
        bad.block(30)
    assert [ticket.block(30).log_index for ticket in (first, last)] == [0, 1]


@contextmanager
def circling(shop: SharedShop, circles: int, after: int = 0) -> Iterator[None]:
    """So many batches, after so many that do not, end as if two of them had waited for each other."""
    with psycopg.connect(shop.url, autocommit=True) as outside:
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
def test_a_circle_that_postgresql_breaks_is_tried_again(one: SharedShop, circles: int, written: bool) -> None:
    with circling(one, circles):
        ticket = _decided(one, 1)
        if written:
            assert ticket.block(30).log_index == 0
        else:
            with pytest.raises(StoreError, match="could not write"):
                ticket.block(30)
    assert _leaves(one) == [0] * written
    assert one.commit(_agent(one), 2, "after").log_index == int(written)


def test_what_is_refused_writes_nothing_and_costs_no_place(one: SharedShop) -> None:
    other = one.beside()
    walked = [(shop, _walked(shop, 1)) for shop in (one, other)]
    outcomes = [shop.outcome(shop.store.settle(settlement)) for shop, settlement in walked]
    assert outcomes.count(MOVED) == 1
    assert _leaves(one) == [0]
    other.store.close()


def test_of_two_decisions_of_one_batch_the_second_stands_on_the_first(one: SharedShop) -> None:
    agent = _agent(one)
    with one.stopped():
        held = _decided(one, 9)
        early, late = (one.reserve(agent, step, "c") for step in (1, 2))
        assert isinstance(early, Reservation)
        assert isinstance(late, Reservation)
        second = one.store.settle(one.settlement(agent, late))
        first = one.store.settle(one.settlement(agent, early))
    held.block(30)
    assert isinstance(second.block(30), Settled)
    assert first.block(30) is MOVED


def test_months_are_made_ahead_by_whoever_leads(one: SharedShop) -> None:
    found = one.store._all("SELECT relname FROM pg_class WHERE relname ~ '^activities_2[0-9]+_[0-9]+$'", ())
    assert len(found) >= 3


# A connection that is lost


@pytest.fixture(scope="module")
def own() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture
def shop(own: Postgres, template: str) -> Iterator[SharedShop]:
    found = SharedShop(own.database(), HandClock())
    found.register(agent_of())
    yield found
    found.store.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_whose_answer_was_lost_is_looked_for(own: Postgres, when: str) -> None:
    with Wire(str(own.home)) as wire:
        shop = SharedShop(wire.url(named_by(own.database())), HandClock())
        shop.register(agent_of())
        _decided(shop, 1).block(30)
        wire.cut_at_commit(when)
        ticket = _decided(shop, 2)
        if when == "after":
            assert ticket.block(30).log_index == 1
            assert ticket.result().placed.index == 1
        else:
            with pytest.raises(StoreError, match="could not write"):
                ticket.block(30)
        assert wire.cuts == 1
        wait_for(lambda: not shop.store._lines.away)
        assert shop.spent(_agent(shop)).cost_day == (2 if when == "after" else 1) * CENT.cost
        third = _decided(shop, 3).block(30)
        assert _leaves(shop) == list(range(third.log_index + 1))
        shop.store.close()


def test_after_a_crash_of_the_server_everything_goes_on(own: Postgres, shop: SharedShop) -> None:
    _decided(shop, 1).block(30)
    own.restart_immediate()
    wait_for(lambda: _is_back(shop))
    assert _decided(shop, 2).block(30).log_index == 1
    assert [entry.log_index for entry in shop.store.entries(ORGANISATION, 0, 9)] == [0, 1]
    wait_for(shop.store.leads)


def _tell(shop: SharedShop, word: str) -> int:
    """A change whose leaf is its own: where it stands."""
    change = shop.change_of()
    told = change.activity._replace(leaf=f'{{"word":"{word}"}}')
    index: int = shop.store.change(msgspec.structs.replace(change, activity=told)).block(30).log_index
    return index


def test_a_log_goes_on_from_the_backup_that_was_put_in_its_place(own: Postgres, shop: SharedShop) -> None:
    assert _tell(shop, "first") == 0
    with own.closed(shop.url):
        backup = own.database(like=shop.url)
    wait_for(lambda: _is_back(shop))
    assert _tell(shop, "lost") == 1
    own.drop(shop.url)
    with pytest.raises(StoreError):
        shop.freshen()
    own.rename(backup, shop.url)
    wait_for(lambda: _is_back(shop))
    other = shop.beside()
    assert (_tell(other, "second"), _tell(shop, "third")) == (1, 2)
    other.store.close()
    tree = Tree()
    for entry in shop.store.entries(ORGANISATION, 0, 9):
        tree.add(leaf_hash(entry.leaf.encode()))
    head = msgspec.to_builtins(head_from(shop.store.latest_head(ORGANISATION)))
    assert read_head(head, KEYRING.public_keys()).root == tree.root()


def test_nothing_is_believed_of_before_the_backup_that_was_put_in_its_place(own: Postgres, shop: SharedShop) -> None:
    before = agent_of()
    shop.freshen()
    with own.closed(shop.url):
        backup = own.database(like=shop.url)
    wait_for(lambda: _is_back(shop))
    raised = [replace(before, trust=trust) for trust in (Trust.AUTONOMOUS, Trust.TRUSTED)]
    shop.change(AgentChanged(before, raised[0]))
    shop.change(AgentChanged(*raised))
    shop.freshen()
    shop.commit(_agent(shop), 1)
    held = shop.reserve(_agent(shop), 7)
    own.drop(shop.url)
    own.rename(backup, shop.url)
    other = shop.beside()
    stopped = replace(before, status=AgentStatus.SUSPENDED)
    # As often as before: a count of changes alone does not tell them apart.
    other.change(AgentChanged(before, stopped))
    other.change(AgentChanged(stopped, replace(stopped, trust=Trust.UNTRUSTED)))
    wait_for(lambda: _is_back(shop))
    shop.freshen()
    assert (_agent(shop).status, _agent(shop).trust) == (AgentStatus.SUSPENDED, Trust.UNTRUSTED)
    assert shop.commit(_agent(shop), 1, "another") is ErrorCode.AGENT_SUSPENDED
    assert shop.spent(_agent(shop)).cost_day == 0
    # The step that was taken is free again, and the one that was held still is.
    assert isinstance(held, Reservation)
    assert isinstance(shop.reserve(_agent(shop), 1), Reservation)
    assert shop.reserve(_agent(shop), 7) is ErrorCode.REPLAY
    other.store.close()


@pytest.mark.parametrize("circles", [1, 2])
def test_what_a_decision_needed_is_written_with_the_attempt_that_succeeds(one: SharedShop, circles: int) -> None:
    heard: list[bool] = []
    one.store.on_distrust = lambda: heard.append(True)

    def degrade(before: Agent, after: Agent, offence: Offence) -> Change:
        # A subject whose key is made while it is decided, and once.
        if not heard:
            heard.append(False)
            one.store.add_subject(Subject("late", ORGANISATION, "name", b"key", 0.0))
        change = one.change_of(AgentChanged(before, after), agent_id=before.agent_id)
        return msgspec.structs.replace(change, activity=change.activity._replace(subject_id="late"))

    with circling(one, circles, after=1):
        with one.stopped():
            first = _decided(one, 1)
            violation = msgspec.structs.replace(_walked(one, 3, mark=Mark.VIOLATION), degrade=degrade)
            tickets = [_decided(one, 2), one.store.settle(violation)]
        assert {type(each.block(30)) for each in (first, *tickets)} == {Settled}
    assert heard == [False]
    assert one.store.subject("late") is not None


def test_a_key_that_the_tables_have_not_got_is_held_in_mind_by_nobody(one: SharedShop) -> None:
    heard: list[bool] = []
    one.store.on_distrust = lambda: heard.append(True)
    with pytest.raises(StoreError, match="foreign key"):
        _decided(one, 1, subject_id="sub_nobody").block(30)
    assert heard == [True]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_job_whose_answer_was_lost_is_there_once_and_told(own: Postgres, when: str) -> None:
    with Wire(str(own.home)) as wire:
        shop = SharedShop(wire.url(named_by(own.database())), HandClock())
        job = Job("job_1", ORGANISATION, "key", "owner", 10, False, 1, 1000.0, 9e9)
        wire.cut_at_commit(when)
        shop.store.add_job(job, [JobItem("job_1", 0, "query", None, None)]).block(30)
        assert wire.cuts == 1
        assert [found.job_id for found in shop.store.open_jobs()] == ["job_1"]
        shop.store.close()


@pytest.mark.parametrize("cut", [True, False], ids=["connections end", "connections stay"])
def test_one_that_is_only_read_from_now_on_is_away_until_it_is_written_to_again(
    own: Postgres, shop: SharedShop, cut: bool
) -> None:
    _decided(shop, 1).block(30)
    walked = _walked(shop, 2)
    with _only_read(own, shop, cut=cut):
        with pytest.raises(StoreError):
            shop.outcome(shop.store.settle(walked))
        assert not shop.store.up()
        with pytest.raises(StoreError, match="read-only"):
            shop.freshen()
        with pytest.raises(Unreachable, match=r"PostgreSQL cannot be reached: .* read-only"):
            shop.beside()
        with pytest.raises(Unreachable, match="read-only"), starting_alone(shop.url):
            pass
    wait_for(lambda: _is_back(shop))
    assert shop.outcome(shop.store.settle(walked)).log_index == 1


@contextmanager
def _only_read(own: Postgres, shop: SharedShop, *, cut: bool) -> Iterator[None]:
    """As when another server has taken over, and this one follows it."""
    name = named_by(shop.url)
    own.say(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    if cut:
        own.say(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    else:
        shop.store._writing._seat.line().execute("SET default_transaction_read_only = on")
    yield
    own.say(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_while_the_database_is_away_everybody_is_refused_at_once_and_then_served_again(
    own: Postgres, shop: SharedShop
) -> None:
    shop.freshen()
    walked = _walked(shop, 1)
    own.stop()
    try:
        with pytest.raises(StoreError, match="cannot be reached"):
            shop.freshen()
        assert shop.store._lines.away
        for ask in (shop.freshen, lambda: shop.store.settle(walked), lambda: shop.store.spent("agent_1", 0.0)):
            with pytest.raises(StoreError, match="away"):
                ask()
    finally:
        own.start()
    wait_for(lambda: _is_back(shop))
    assert shop.outcome(shop.store.settle(walked)).log_index == 0
    assert shop.store.find_agent("agent_1") == agent_of()


def _is_back(shop: SharedShop) -> bool:
    try:
        shop.freshen()
    except StoreError:
        return False
    return True


def test_where_no_further_connection_is_to_be_had_those_that_are_there_go_on() -> None:
    with Postgres(settings={"max_connections": "20"}) as crowded:
        shop = SharedShop(crowded.database(), HandClock())
        shop.register(agent_of())
        shop.freshen()
        _decided(shop, 1).block(30)
        with _crowd(crowded) as take:
            with pytest.raises(StoreError, match=r"PostgreSQL cannot be reached: .* too many clients"):
                shop.store.activities(ActivityQuery("agent_1", 10))
            shop.freshen()
            # Nor for whoever keeps house, who has hung up.
            wait_for(lambda: not _leads_again(shop, take))
            assert _decided(shop, 2).block(30).log_index == 1
            assert shop.store.up()
        wait_for(lambda: _leads_again(shop, lambda: None))
        assert len(shop.store.activities(ActivityQuery("agent_1", 10))) == 2
        shop.store.close()


def _leads_again(shop: SharedShop, meanwhile: Callable[[], None]) -> bool:
    """Whether this process leads once it has hung up and called again; nobody else looks after that any more."""
    household = shop.store._household
    household.close()
    meanwhile()
    household._look()
    leads: bool = shop.store.leads()
    return leads


@contextmanager
def _crowd(own: Postgres) -> Iterator[Callable[[], None]]:
    """Others have taken every connection that was left, and may again."""
    with ExitStack() as stack:

        def take() -> None:
            with suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(own.url()))

        take()
        yield take


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits longer than a moment."""
    short = Patience(0.3, 0.1, 1)
    for module, name in ((shared, "ASKING"), (freshening, "ASKING"), (writing, "WRITING")):
        monkeypatch.setattr(module, name, short)
    monkeypatch.setattr(lines, "_MARGIN", 0.1)
    monkeypatch.setattr(writing, "FIND_OUT_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_hangs_holds_nobody_up_for_long(own: Postgres, shop: SharedShop) -> None:
    _decided(shop, 1).block(30)
    shop.freshen()
    walked = _walked(shop, 2)
    own.freeze()
    try:
        asked, decided = shop.store.freshen(Wanted(agent_id="agent_1")), shop.store.settle(walked)
        for ticket in (asked, decided):
            with pytest.raises(StoreError):
                ticket.block(30)
        with pytest.raises(StoreError, match="away"):
            shop.store.spent("agent_1", 0.0)
    finally:
        own.thaw()
    wait_for(lambda: not shop.store._lines.away)
    shop.freshen()
    index = _decided(shop, 3).block(30).log_index
    assert _leaves(shop) == list(range(index + 1))


@pytest.mark.usefixtures("impatient")
def test_whoever_holds_a_log_for_ever_stops_its_batches_and_no_others(one: SharedShop) -> None:
    one.store.add_organisation("org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")).block(30)
    with psycopg.connect(one.url) as other:
        other.execute("SELECT 1 FROM logs WHERE organisation_id = 'org_1' FOR UPDATE")
        with pytest.raises(StoreError, match="lock timeout"):
            _decided(one, 1).block(30)
        change = one.change_of(ToolChanged("org_2", "t", b"1"), agent_id="", organisation_id="org_2")
        assert one.outcome(one.store.change(change)).log_index == 0
    kept = one.settle(_agent(one), None, Decision.DENIED)
    assert isinstance(kept, Settled)
    assert kept.log_index == 0
