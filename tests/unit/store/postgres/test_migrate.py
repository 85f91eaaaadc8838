"""A server that starts migrates the database, but not while older servers run on it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest

from qwed.domain.write_set import Committed
from qwed.store.migrate import migrations
from qwed.store.postgres import migrate as migrate_module
from qwed.store.postgres import schema
from qwed.store.postgres.connect import DatabaseUnreachableError, open_connection
from qwed.store.postgres.locks import SERVERS, try_acquire_leadership
from qwed.store.postgres.migrate import DatabaseInUseError, migrate_database
from qwed.store.postgres.schema import migrate, version_of
from tests.support.manual_clock import ManualClock
from tests.support.stores import PostgresStoreFixture, agent_of

NEWEST = migrations("postgres")[-1][0]
LATER = NEWEST + 1
SENTENCE = "older servers run on this database in PostgreSQL: stop all of them, then start this one"


@contextmanager
def _later_version(monkeypatch: pytest.MonkeyPatch, script: str = "CREATE TABLE of_later (n INT)") -> Iterator[None]:
    """Add a migration, as a later version would."""
    later = [*migrations("postgres"), (LATER, script)]
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda _kind: later)
        patch.setattr(migrate_module, "migrations", lambda _kind: later)
        yield


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits for other servers."""
    monkeypatch.setattr(migrate_module, "_TRIES", 3)
    monkeypatch.setattr(migrate_module, "_PAUSE", 0.2)


def _version(url: str) -> int:
    with open_connection(url) as connection:
        return version_of(connection)


@pytest.mark.usefixtures("hasty")
def test_a_later_server_does_not_start_beside_an_older_one(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    older = PostgresStoreFixture(tables, ManualClock())
    older.register(agent_of())
    with _later_version(monkeypatch), pytest.raises(DatabaseUnreachableError, match=SENTENCE):
        older.open_second()
    assert _version(tables) == NEWEST
    assert isinstance(older.commit(agent_of(), 1), Committed)
    older.store.close()


@pytest.mark.usefixtures("hasty")
def test_nor_beside_one_that_does_not_lead(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader has stopped, and no other server has taken over yet."""
    leading = PostgresStoreFixture(tables, ManualClock())
    other = leading.open_second()
    monkeypatch.setattr("qwed.store.postgres.leader_election.try_acquire_leadership", lambda _line: False)
    leading.store.close()
    with _later_version(monkeypatch):
        with pytest.raises(DatabaseUnreachableError, match=SENTENCE):
            leading.open_second()
        with pytest.raises(DatabaseInUseError, match="stop it, and migrate then"):
            migrate_database(tables, 0.0)
    assert _version(tables) == NEWEST
    other.store.close()


@pytest.mark.usefixtures("hasty")
def test_nor_beside_one_of_before_servers_told_that_they_run(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_connection(tables) as older, _later_version(monkeypatch):
        assert try_acquire_leadership(older)
        with pytest.raises(DatabaseUnreachableError, match=SENTENCE):
            PostgresStoreFixture(tables, ManualClock())


def test_one_that_ends_meanwhile_is_waited_for_and_the_next_one_leads(
    tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = PostgresStoreFixture(tables, ManualClock())
    refused = threading.Event()

    def pause(_seconds: float) -> None:
        if not refused.is_set():
            refused.set()
            older.store.close()

    with _later_version(monkeypatch):
        monkeypatch.setattr(migrate_module, "time", SimpleNamespace(sleep=pause))
        monkeypatch.setattr(migrate_module, "_TRIES", 100_000)
        later = older.open_second()
    assert refused.is_set()
    assert (_version(tables), later.store.is_leader()) == (LATER, True)
    later.store.close()


@pytest.mark.parametrize("begin", [0, 1, NEWEST])
def test_of_several_that_start_at_once_one_brings_it_up(
    database: str, monkeypatch: pytest.MonkeyPatch, begin: int
) -> None:
    """The others wait until it is done."""
    if begin:
        with open_connection(database) as connection:
            migrate(connection, upto=begin)
    manual_clock = ManualClock()
    script = "SELECT pg_sleep(1); CREATE TABLE of_later (n INT)"
    with _later_version(monkeypatch, script), ThreadPoolExecutor(4) as threads:
        shops = list(threads.map(lambda _: PostgresStoreFixture(database, manual_clock, founds=False), range(4)))
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM schema_versions").fetchone() == (LATER, LATER)
    assert sum(store_fixture.store.is_leader() for store_fixture in shops) <= 1
    for store_fixture in shops:
        store_fixture.store.close()


def test_whoever_was_refused_or_has_brought_it_up_holds_nothing(database: str) -> None:
    with open_connection(database) as connection:
        migrate(connection, upto=1)
    with open_connection(database) as connection, open_connection(database) as other:
        migrate_module.migrate_on_start(connection)
        assert try_acquire_leadership(other)
        alone = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        assert other.execute(alone, (SERVERS,)).fetchone() == (True,)
