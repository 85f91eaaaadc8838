"""Month partitions are created ahead, and a default partition takes the rows without one."""

import threading
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from qwed.store.postgres.partitions import create_month_partitions

Connection = psycopg.Connection[Any]
NOVEMBER, DECEMBER, JANUARY, FEBRUARY = (
    datetime(year, month, 1, tzinfo=UTC).timestamp() for year, month in [(2026, 11), (2026, 12), (2027, 1), (2027, 2)]
)
_INSERT = (
    "INSERT INTO activities (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload) "
    "SELECT 'org_1', size, 'act_' || size, 'agent_1', %s, 'APPROVED', '{}', '' FROM logs"
)
_WHERE = "SELECT tableoid::regclass::text FROM activities WHERE activity_id = %s"


@pytest.fixture
def log(connection: Connection) -> Connection:
    """Connection to a database with one organisation and an empty log."""
    connection.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_1', 'first', 0)")
    return connection


def _add(connection: Connection, at: float) -> str:
    """Insert a row with this time and return its partition."""
    connection.execute(_INSERT, (at,))
    row = connection.execute("SELECT tableoid::regclass::text FROM activities ORDER BY log_index DESC LIMIT 1")
    return str((row.fetchone() or ("none",))[0])


def _rows(connection: Connection) -> list[Any]:
    return connection.execute("SELECT * FROM activities ORDER BY log_index").fetchall()


def test_this_month_and_the_next_two_are_made_once(log: Connection) -> None:
    assert create_month_partitions(log, NOVEMBER + 5.5) == 3
    assert create_month_partitions(log, NOVEMBER + 5.5) == 0
    assert create_month_partitions(log, DECEMBER) == 1
    partitions = log.execute(
        "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1"
    ).fetchall()
    assert [row[0] for row in partitions] == [
        "activities_2026_11",
        "activities_2026_12",
        "activities_2027_01",
        "activities_2027_02",
        "activities_other",
    ]


def test_a_month_begins_and_ends_where_the_calendar_says(log: Connection) -> None:
    create_month_partitions(log, NOVEMBER)
    assert [_add(log, at) for at in (NOVEMBER, DECEMBER - 0.001, DECEMBER, FEBRUARY - 0.001, FEBRUARY)] == [
        "activities_2026_11",
        "activities_2026_11",
        "activities_2026_12",
        "activities_2027_01",
        "activities_other",
    ]


@pytest.mark.parametrize("at", [-1e18, -1.0, 0.0, 4e9, 1e11, 1e18, 1e300], ids=str)
def test_no_clock_makes_an_insert_fail(log: Connection, at: float) -> None:
    create_month_partitions(log, NOVEMBER)
    assert _add(log, at) == "activities_other"


@pytest.mark.parametrize("now", [-1.0, 1e12, 1e300, float("inf"), float("nan")], ids=str)
def test_a_clock_that_is_far_off_makes_no_months(log: Connection, now: float) -> None:
    assert create_month_partitions(log, now) == 0


def test_what_came_before_its_month_was_made_moves_there(log: Connection) -> None:
    for at in (NOVEMBER, DECEMBER + 1, JANUARY, 4e9, DECEMBER + 2):
        assert _add(log, at) == "activities_other"
    before = _rows(log)
    assert log.execute("SELECT make_month(%s)", (DECEMBER + 7,)).fetchone() == (True,)
    assert _rows(log) == before
    partitions = log.execute("SELECT tableoid::regclass::text FROM activities ORDER BY log_index").fetchall()
    assert [row[0] for row in partitions] == [
        "activities_other",
        "activities_2026_12",
        "activities_other",
        "activities_other",
        "activities_2026_12",
    ]
    assert log.execute("SELECT size FROM logs").fetchone() == (5,), "a leaf that moves is no new leaf"


@pytest.mark.parametrize(
    "column", ["sequence", "organisation_id, log_index", "activity_id", "attestation_id"], ids=str.upper
)
def test_every_month_says_what_is_unique_in_it(log: Connection, column: str) -> None:
    create_month_partitions(log, NOVEMBER)
    indexes = log.execute(
        "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'activities%%' AND indexdef LIKE 'CREATE UNIQUE %%' "
        "AND indexdef LIKE %s",
        (f"%({column})%",),
    )
    assert indexes.fetchone() == (4,)


def test_somebody_who_reads_for_long_is_not_waited_for(log: Connection, tables: str) -> None:
    """Later readers would wait behind us, and the current partitions exist already."""
    with psycopg.connect(tables) as reader:
        reader.execute("SELECT count(*) FROM activities")
        assert create_month_partitions(log, NOVEMBER) == 0
        assert _add(log, NOVEMBER) == "activities_other"
        reader.rollback()
    assert create_month_partitions(log, NOVEMBER) == 3


def test_two_who_make_the_same_month_make_it_once(tables: str) -> None:
    created: list[int] = []

    def make() -> None:
        with psycopg.connect(tables, autocommit=True) as connection:
            created.append(create_month_partitions(connection, NOVEMBER))

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(created), sum(created)) == (3, 3)


def test_who_may_not_make_tables_may_be_allowed_to_make_months(log: Connection, tables: str) -> None:
    log.execute("CREATE ROLE qwed_months LOGIN")
    with psycopg.connect(tables, user="qwed_months", autocommit=True) as plain:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            create_month_partitions(plain, NOVEMBER)
        log.execute("GRANT EXECUTE ON FUNCTION make_month(DOUBLE PRECISION) TO qwed_months")
        assert create_month_partitions(plain, NOVEMBER) == 3
    log.execute("DROP OWNED BY qwed_months")
    log.execute("DROP ROLE qwed_months")


def test_a_page_of_one_agent_looks_into_no_month_it_does_not_ask_for(log: Connection) -> None:
    create_month_partitions(log, NOVEMBER)
    plan = log.execute(
        "EXPLAIN SELECT * FROM activities WHERE agent_id = 'agent_1' AND at >= %s AND at < %s "
        "ORDER BY at DESC, sequence DESC LIMIT 10",
        (DECEMBER, JANUARY),
    ).fetchall()
    text = "\n".join(row[0] for row in plan)
    assert "activities_2026_12" in text
    assert "activities_2026_11" not in text
