"""A server that starts brings the database to its version, but not under older ones that run on it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest

from qwed.store.migrate import migrations
from qwed.store.postgres import bringing, schema
from qwed.store.postgres.bringing import InUse, bring_up
from qwed.store.postgres.locks import SERVERS, try_to_lead
from qwed.store.postgres.opening import Unreachable, connected
from qwed.store.postgres.schema import migrate, version_of
from qwed.store.protocol import Settled
from tests.support.clock import HandClock
from tests.support.stores import SharedShop, agent_of

NEWEST = migrations("postgres")[-1][0]
LATER = NEWEST + 1
SENTENCE = "older servers run on this database in PostgreSQL: stop all of them, then start this one"


@contextmanager
def _later_version(monkeypatch: pytest.MonkeyPatch, script: str = "CREATE TABLE of_later (n INT)") -> Iterator[None]:
    """Whoever starts now is of a version with one migration more."""
    later = [*migrations("postgres"), (LATER, script)]
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda _kind: later)
        patch.setattr(bringing, "migrations", lambda _kind: later)
        yield


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for those that will not end."""
    monkeypatch.setattr(bringing, "_TRIES", 3)
    monkeypatch.setattr(bringing, "_PAUSE", 0.2)


def _version(url: str) -> int:
    with connected(url) as connection:
        return version_of(connection)


@pytest.mark.usefixtures("hasty")
def test_a_later_server_does_not_start_beside_an_older_one(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    older = SharedShop(tables, HandClock())
    older.register(agent_of())
    with _later_version(monkeypatch), pytest.raises(Unreachable, match=SENTENCE):
        older.beside()
    assert _version(tables) == NEWEST
    assert isinstance(older.commit(agent_of(), 1), Settled)
    older.store.close()


@pytest.mark.usefixtures("hasty")
def test_nor_beside_one_that_does_not_lead(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader was stopped, and nobody has taken its place yet."""
    leading = SharedShop(tables, HandClock())
    other = leading.beside()
    monkeypatch.setattr("qwed.store.postgres.household.try_to_lead", lambda _line: False)
    leading.store.close()
    with _later_version(monkeypatch):
        with pytest.raises(Unreachable, match=SENTENCE):
            leading.beside()
        with pytest.raises(InUse, match="stop it, and migrate then"):
            bring_up(tables, 0.0)
    assert _version(tables) == NEWEST
    other.store.close()


@pytest.mark.usefixtures("hasty")
def test_nor_beside_one_of_before_servers_told_that_they_run(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(tables) as older, _later_version(monkeypatch):
        assert try_to_lead(older)
        with pytest.raises(Unreachable, match=SENTENCE):
            SharedShop(tables, HandClock())


def test_one_that_ends_meanwhile_is_waited_for_and_the_next_one_leads(
    tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = SharedShop(tables, HandClock())
    refused = threading.Event()

    def pause(_seconds: float) -> None:
        if not refused.is_set():
            refused.set()
            older.store.close()

    with _later_version(monkeypatch):
        monkeypatch.setattr(bringing, "time", SimpleNamespace(sleep=pause))
        monkeypatch.setattr(bringing, "_TRIES", 100_000)
        later = older.beside()
    assert refused.is_set()
    assert (_version(tables), later.store.leads()) == (LATER, True)
    later.store.close()


@pytest.mark.parametrize("begin", [0, 1, NEWEST])
def test_of_several_that_start_at_once_one_brings_it_up(
    database: str, monkeypatch: pytest.MonkeyPatch, begin: int
) -> None:
    """The others wait until it is done, which takes a while."""
    if begin:
        with connected(database) as connection:
            migrate(connection, upto=begin)
    hands = HandClock()
    script = "SELECT pg_sleep(1); CREATE TABLE of_later (n INT)"
    with _later_version(monkeypatch, script), ThreadPoolExecutor(4) as threads:
        shops = list(threads.map(lambda _: SharedShop(database, hands, founds=False), range(4)))
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM schema_versions").fetchone() == (LATER, LATER)
    assert sum(shop.store.leads() for shop in shops) <= 1
    for shop in shops:
        shop.store.close()


def test_whoever_was_refused_or_has_brought_it_up_holds_nothing(database: str) -> None:
    with connected(database) as connection:
        migrate(connection, upto=1)
    with connected(database) as connection, connected(database) as other:
        bringing.bring_up_to_start(connection)
        assert try_to_lead(other)
        alone = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        assert other.execute(alone, (SERVERS,)).fetchone() == (True,)
