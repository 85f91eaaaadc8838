"""Whatever a database or a role is used to, a server does as everywhere; what it cannot live with, it names."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from qwed.store.migrate import migrations
from qwed.store.postgres.bringing import bring_up
from qwed.store.postgres.health import health_of
from qwed.store.postgres.locks import starting_alone
from qwed.store.postgres.opening import Unreachable, connected
from qwed.store.postgres.schema import migrate
from qwed.store.protocol import ActivityQuery, Settled
from tests.support.clock import HandClock
from tests.support.postgres_server import Databases, Postgres, named_by
from tests.support.stores import CENT, ORGANISATION, SharedShop, agent_of

MOMENT = 1_763_323_090.1234567
"""More digits than fifteen."""


def _used_to(url: str, setting: str, value: str) -> None:
    with psycopg.connect(url, autocommit=True) as outside:
        outside.execute(f"ALTER DATABASE \"{named_by(url)}\" SET {setting} = '{value}'".encode())


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_of_two_who_decide_at_once_nobody_is_sent_away(tables: str, isolation: str) -> None:
    _used_to(tables, "default_transaction_isolation", isolation)
    one = SharedShop(tables, HandClock())
    shops = (one, one.beside())
    one.register(agent_of())

    def decide(number: int) -> int:
        shop = shops[number % 2]
        shop.freshen(conversation=f"c{number}")
        reservation = shop.reserve(shop.store.find_agent("agent_1"), 1, f"c{number}")
        settled = shop.settle(agent_of(), reservation, charge=CENT)  # type: ignore[arg-type]  # none is refused
        assert isinstance(settled, Settled)
        return settled.log_index

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(decide, range(60))) == list(range(60))
    assert one.store.spent("agent_1", one.hands.now).cost_day == 60 * CENT.cost
    for shop in shops:
        shop.store.close()


@pytest.mark.parametrize("digits", ["0", "-9"])
def test_moments_are_read_to_the_last_bit(tables: str, digits: str) -> None:
    _used_to(tables, "extra_float_digits", digits)
    shop = SharedShop(tables, HandClock(MOMENT))
    shop.register(agent_of())
    shop.commit(agent_of(), 1)
    (first,) = shop.store.activities(ActivityQuery("agent_1", 10))
    assert shop.store.activities(ActivityQuery("agent_1", 10, before=first.log_index)) == []
    assert [shop.store.take_token(ORGANISATION, "pair", 2, MOMENT) for _ in range(2)] == [0.0, 0.0]
    shop.store.close()
    with connected(tables) as tool:
        assert tool.execute("SELECT at FROM activities").fetchone() == (MOMENT,)


def test_letters_are_said_as_they_are_whatever_the_address_says(tables: str) -> None:
    url = f"{tables}{'&' if '?' in tables else '?'}client_encoding=LATIN1"
    shop = SharedShop(url, HandClock())
    shop.store.mark("greeting", "你好")
    shop.store.close()
    with connected(url) as tool:
        assert tool.execute("SELECT value FROM meta WHERE name = 'greeting'").fetchone() == ("你好",)


HABITS = {"standard_conforming_strings": "off", "quote_all_identifiers": "on"}


@pytest.mark.parametrize("habit", HABITS)
def test_a_shape_is_found_whatever_strings_and_names_look_like(tables: str, habit: str) -> None:
    _used_to(tables, habit, HABITS[habit])
    assert health_of(tables).altered == []


@pytest.mark.parametrize("habit", HABITS)
def test_bytes_are_kept_as_they_are(tables: str, habit: str) -> None:
    _used_to(tables, habit, HABITS[habit])
    every = bytes(range(256))
    with connected(tables) as tool:
        tool.execute("CREATE TABLE bytes (said BYTEA)")
        with tool.cursor() as cursor, cursor.copy("COPY bytes FROM STDIN") as writing:
            writing.write_row((every,))
        tool.execute("INSERT INTO bytes VALUES (%s)", (every,))
        assert tool.execute("SELECT said FROM bytes").fetchall() == [(every,), (every,)]


def test_a_schema_that_has_the_name_of_the_role_is_not_where_we_look(tables: str) -> None:
    with connected(tables) as tool:
        tool.execute("CREATE SCHEMA postgres")
        assert tool.execute("SELECT current_schema()").fetchone() == ("postgres",)
    assert health_of(tables).altered == []


def test_a_schema_that_has_the_name_of_the_role_is_not_where_a_later_version_goes_on(database: str) -> None:
    with connected(database) as tool:
        migrate(tool, upto=1)
        tool.execute("CREATE SCHEMA postgres")
    assert bring_up(database, 0.0) == (1, migrations("postgres")[-1][0])
    assert health_of(database).altered == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_letter_is_refused_by_name(postgres: Databases, encoding: str) -> None:
    url = postgres.database(encoding=encoding)
    for look in (connected, health_of, lambda there: bring_up(there, 0.0)):
        with pytest.raises(Unreachable, match=f"keeps text as {encoding}: make one with ENCODING 'UTF8'"):
            look(url)
    postgres.drop(url)


def test_of_several_servers_the_one_that_is_written_to_is_found() -> None:
    with Postgres(tcp=True, settings={"default_transaction_read_only": "on"}) as standby, Postgres(tcp=True) as own:
        hosts = f"127.0.0.1:{standby.port},127.0.0.1:{own.port}"
        url = own.url().replace(f"127.0.0.1:{own.port}", hosts)
        with starting_alone(url):
            shop = SharedShop(url, HandClock())
        assert shop.store.first_organisation() == ORGANISATION
        shop.store.close()
        assert health_of(own.url()).filled
