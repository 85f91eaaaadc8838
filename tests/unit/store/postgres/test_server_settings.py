"""Settings of the database or the role do not change a server's behaviour; unusable ones are refused by name."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from qwed.domain.write_set import Committed, Reservation
from qwed.store.migrate import migrations
from qwed.store.postgres.connect import DatabaseUnreachableError, open_connection
from qwed.store.postgres.health import health_of
from qwed.store.postgres.locks import exclusive_startup
from qwed.store.postgres.migrate import migrate_database
from qwed.store.postgres.schema import migrate
from qwed.store.protocol import ActivityQuery
from tests.support.manual_clock import ManualClock
from tests.support.postgres_server import Databases, Postgres, database_name
from tests.support.stores import CENT, ORGANISATION, PostgresStoreFixture, agent_of

MOMENT = 1_763_323_090.1234567
"""Time with more than fifteen digits."""


def _used_to(url: str, setting: str, value: str) -> None:
    with psycopg.connect(url, autocommit=True) as outside:
        outside.execute(f"ALTER DATABASE \"{database_name(url)}\" SET {setting} = '{value}'".encode())


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_of_two_who_decide_at_once_nobody_is_sent_away(tables: str, isolation: str) -> None:
    _used_to(tables, "default_transaction_isolation", isolation)
    one = PostgresStoreFixture(tables, ManualClock())
    shops = (one, one.open_second())
    one.register(agent_of())

    def decide(number: int) -> int:
        store_fixture = shops[number % 2]
        reservation = store_fixture.reserve(agent_of(), 1, f"c{number}", CENT)
        assert isinstance(reservation, Reservation)
        receipt = store_fixture.settle(agent_of(), reservation, charge=CENT)
        assert isinstance(receipt, Committed)
        return receipt.log_index

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(decide, range(60))) == list(range(60))
    assert one.store.usage_counters("agent_1", one.manual_clock.now).cost_day == 60 * CENT.cost
    for store_fixture in shops:
        store_fixture.store.close()


@pytest.mark.parametrize("digits", ["0", "-9"])
def test_moments_are_read_to_the_last_bit(tables: str, digits: str) -> None:
    _used_to(tables, "extra_float_digits", digits)
    store_fixture = PostgresStoreFixture(tables, ManualClock(MOMENT))
    store_fixture.register(agent_of())
    store_fixture.commit(agent_of(), 1)
    (first,) = store_fixture.store.activities(ActivityQuery("agent_1", 10))
    assert store_fixture.store.activities(ActivityQuery("agent_1", 10, before=first.log_index)) == []
    assert [store_fixture.store.take_token(ORGANISATION, "pair", 2, MOMENT) for _ in range(2)] == [0.0, 0.0]
    store_fixture.store.close()
    with open_connection(tables) as tool:
        assert tool.execute("SELECT at FROM activities").fetchone() == (MOMENT,)


def test_letters_are_said_as_they_are_whatever_the_address_says(tables: str) -> None:
    url = f"{tables}{'&' if '?' in tables else '?'}client_encoding=LATIN1"
    store_fixture = PostgresStoreFixture(url, ManualClock())
    store_fixture.store.set_once("greeting", "你好")
    store_fixture.store.close()
    with open_connection(url) as tool:
        assert tool.execute("SELECT value FROM meta WHERE name = 'greeting'").fetchone() == ("你好",)


HABITS = {"standard_conforming_strings": "off", "quote_all_identifiers": "on"}


@pytest.mark.parametrize("habit", HABITS)
def test_a_shape_is_found_whatever_strings_and_names_look_like(tables: str, habit: str) -> None:
    _used_to(tables, habit, HABITS[habit])
    assert health_of(tables).schema_drift == []


@pytest.mark.parametrize("habit", HABITS)
def test_bytes_are_kept_as_they_are(tables: str, habit: str) -> None:
    _used_to(tables, habit, HABITS[habit])
    every = bytes(range(256))
    with open_connection(tables) as tool:
        tool.execute("CREATE TABLE bytes (said BYTEA)")
        with tool.cursor() as cursor, cursor.copy("COPY bytes FROM STDIN") as writing:
            writing.write_row((every,))
        tool.execute("INSERT INTO bytes VALUES (%s)", (every,))
        assert tool.execute("SELECT said FROM bytes").fetchall() == [(every,), (every,)]


def test_a_schema_that_has_the_name_of_the_role_is_not_where_we_look(tables: str) -> None:
    with open_connection(tables) as tool:
        tool.execute("CREATE SCHEMA postgres")
        assert tool.execute("SELECT current_schema()").fetchone() == ("postgres",)
    assert health_of(tables).schema_drift == []


def test_a_schema_that_has_the_name_of_the_role_is_not_where_a_later_version_goes_on(database: str) -> None:
    with open_connection(database) as tool:
        migrate(tool, upto=1)
        tool.execute("CREATE SCHEMA postgres")
    assert migrate_database(database, 0.0) == (1, migrations("postgres")[-1][0])
    assert health_of(database).schema_drift == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_letter_is_refused_by_name(postgres: Databases, encoding: str) -> None:
    url = postgres.database(encoding=encoding)
    for look in (open_connection, health_of, lambda there: migrate_database(there, 0.0)):
        with pytest.raises(DatabaseUnreachableError, match=f"keeps text as {encoding}: make one with ENCODING 'UTF8'"):
            look(url)
    postgres.drop(url)


def test_of_several_servers_the_one_that_is_written_to_is_found() -> None:
    with Postgres(tcp=True, settings={"default_transaction_read_only": "on"}) as standby, Postgres(tcp=True) as own:
        hosts = f"127.0.0.1:{standby.port},127.0.0.1:{own.port}"
        url = own.url().replace(f"127.0.0.1:{own.port}", hosts)
        with exclusive_startup(url):
            store_fixture = PostgresStoreFixture(url, ManualClock())
        assert store_fixture.store.first_organisation() == ORGANISATION
        store_fixture.store.close()
        assert health_of(own.url()).has_data
