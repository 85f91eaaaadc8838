"""The snapshot reader sees one moment, writes nothing, and reports what it cannot read."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import qwed
from qwed.gate import Gate
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrate, migrations
from qwed.store.snapshot_reader import DatabaseReadError, SqliteTables, open_reader
from tests.support.agent_names import unique_name
from tests.unit.store.record_database import lay_out


def agent_of(gate: Gate) -> str:
    return str(gate.register_agent(name=unique_name("read"), principal_id="ops").agent_id)


def test_a_reader_sees_one_moment_however_long_it_takes(tmp_path: Path) -> None:
    with qwed.open(tmp_path) as gate:
        agent_of(gate)
        with open_reader(tmp_path) as reader:
            log_id = gate.organisation_id
            rows = reader.activities(log_id)
            first = next(rows)
            for _ in range(5):
                agent_of(gate)
            assert [first, *rows] == [*reader.activities(log_id)]
            assert (reader.size(log_id), len([*reader.heads(log_id)]), len(reader.agents(log_id))) == (1, 1, 1)
        with open_reader(tmp_path) as reader:
            assert reader.size(log_id) == 6


def test_a_reader_without_a_server_leaves_the_directory_as_it_was(tmp_path: Path) -> None:
    with qwed.open(tmp_path) as gate:
        agent_of(gate)
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    with open_reader(tmp_path) as reader:
        assert reader.logs() == reader.organisations() == [gate.organisation_id]
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before


def deleting(directory: Path) -> None:
    with open_reader(directory) as reader:
        tables = reader.tables
        assert isinstance(tables, SqliteTables)
        tables.connection.execute("DELETE FROM activities")


def test_a_reader_cannot_write_beside_a_server_or_without_one(tmp_path: Path) -> None:
    with qwed.open(tmp_path), pytest.raises(sqlite3.OperationalError, match="readonly"):
        deleting(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        deleting(tmp_path)


def looking_while_a_server_starts(directory: Path) -> None:
    with open_reader(directory) as reader:
        reader.organisations()
        with qwed.open(directory) as gate:
            agent_of(gate)


def test_a_server_that_starts_while_a_still_directory_is_read_makes_the_reading_void(tmp_path: Path) -> None:
    with qwed.open(tmp_path) as gate:
        agent_of(gate)
    with pytest.raises(DatabaseReadError, match="was changed while it was read: run it again"):
        looking_while_a_server_starts(tmp_path)


def test_every_log_is_found_whoever_it_belongs_to(tmp_path: Path) -> None:
    with qwed.open(tmp_path) as gate:
        agent_of(gate)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("INSERT INTO heads VALUES ('org_stray', 1, 'x')")
    with open_reader(tmp_path) as reader:
        assert set(reader.logs()) - set(reader.organisations()) == {"org_stray"}


@pytest.mark.parametrize("version", [number for number, _script in migrations()])
def test_a_database_brought_up_from_any_version_is_as_it_would_be_made_now(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        migrate(connection, upto=version)
        migrate(connection)
    with open_reader(tmp_path) as reader:
        assert reader.schema_drift() == []


def test_what_was_added_to_the_schema_or_taken_from_it_is_seen(tmp_path: Path) -> None:
    with qwed.open(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("DROP INDEX activities_by_agent")
        connection.execute("CREATE TRIGGER quiet AFTER INSERT ON keys BEGIN DELETE FROM keys; END")
        connection.execute("ANALYZE")
    with open_reader(tmp_path) as reader:
        assert reader.schema_drift() == ["index `activities_by_agent`", "trigger `quiet`"]


def test_a_file_of_an_earlier_version_has_no_rows_of_later_tables(tmp_path: Path) -> None:
    lay_out(tmp_path / "data", 8)
    with open_reader(tmp_path / "data") as reader:
        for organisation_id in reader.organisations():
            assert not [*reader.policy_sets(organisation_id), *reader.usage_series(organisation_id)]
            assert not [*reader.usage_holds(organisation_id)]
