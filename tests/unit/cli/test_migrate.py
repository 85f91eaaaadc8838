"""`qwed migrate`: a database of any version is migrated to the newest."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import qwed
from qwed.cli import main
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrations
from qwed.store.postgres.connect import open_connection
from qwed.store.postgres.locks import try_acquire_leadership
from qwed.store.postgres.schema import version_of
from tests.unit.store.record_database import lay_out

NEWEST, NEWEST_THERE = migrations()[-1][0], migrations("postgres")[-1][0]


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("QWED_DATA_DIR", "QWED_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Ran:
        return Ran(main(["migrate", *map(str, arguments)]), *capsys.readouterr())

    return call


def _version(data: Path) -> int:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


# A data directory


@pytest.mark.parametrize("version", [number for number, _script in migrations()[:-1]])
def test_every_earlier_version_is_brought_up_and_verifies(tmp_path: Path, run: Run, version: int) -> None:
    data = tmp_path / "data"
    lay_out(data, version)
    ran = run("--data-dir", data)
    assert ran == (0, f"the database was migrated from version {version} to version {NEWEST}\n", "")
    assert _version(data) == NEWEST
    with qwed.open(data) as gate:
        assert gate.services.store.log_size(gate.organisation_id) > 0
    assert run("--data-dir", data).out == f"the database is at version {NEWEST}, the newest: nothing to do\n"


def test_beside_a_server_there_is_only_something_to_say(tmp_path: Path, run: Run) -> None:
    with qwed.open(tmp_path / "data"):
        ran = run("--data-dir", tmp_path / "data", "--json")
    assert (ran.code, json.loads(ran.out)) == (0, {"database": "sqlite", "from": NEWEST, "to": NEWEST})


def test_a_directory_that_somebody_holds_is_left_as_it_is(tmp_path: Path, run: Run) -> None:
    data = tmp_path / "data"
    lay_out(data, NEWEST - 1)
    (tmp_path / "other").mkdir()
    with qwed.open(tmp_path / "other"):
        (data / "lock").hardlink_to(tmp_path / "other" / "lock")
        ran = run("--data-dir", data)
    assert (ran.code, ran.out, _version(data)) == (2, "", NEWEST - 1)
    assert "is in use by another qwed process" in ran.err


def test_a_newer_directory_is_refused(tmp_path: Path, run: Run) -> None:
    data = tmp_path / "data"
    lay_out(data, NEWEST - 1)
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    ran = run("--data-dir", data)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"qwed: the database is at version {NEWEST + 1}, newer than this qwed ({NEWEST}): upgrade qwed\n"


def test_where_there_is_no_database_none_is_made(tmp_path: Path, run: Run) -> None:
    ran = run("--data-dir", tmp_path / "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no database in" in ran.err
    assert not (tmp_path / "nowhere").exists()


def test_what_is_no_database_is_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"nothing of the kind" * 100)
    ran = run("--data-dir", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "could not be migrated: file is not a database" in ran.err


# PostgreSQL


def test_an_empty_database_is_brought_up(database: str, run: Run) -> None:
    ran = run("--database", database)
    assert ran == (0, f"the database was migrated from version 0 to version {NEWEST_THERE}\n", "")
    with open_connection(database) as connection:
        assert version_of(connection) == NEWEST_THERE
        months = connection.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'activities'::regclass")
        assert months.fetchone() == (4,), "this month, the next two, and one for all others"
    result = json.loads(run("--database", database, "--json").out)
    assert result == {"database": "postgresql", "from": NEWEST_THERE, "to": NEWEST_THERE}


def test_the_variable_names_the_database_as_well(
    database: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QWED_DATABASE_URL", database)
    assert json.loads(run("--json", "--data-dir", tmp_path).out)["database"] == "postgresql"


def test_a_database_that_a_server_runs_on_is_left_as_it_is(database: str, run: Run) -> None:
    with open_connection(database) as server:
        assert try_acquire_leadership(server)
        ran = run("--database", database)
        assert (ran.code, ran.out, version_of(server)) == (2, "", 0)
    assert ran.err == "qwed: a server runs on that database in PostgreSQL: stop it, and migrate then\n"


def test_a_newer_database_is_refused(database: str, run: Run) -> None:
    run("--database", database)
    with open_connection(database) as connection:
        connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (NEWEST_THERE + 1,))
    ran = run("--database", database)
    assert (ran.code, ran.out) == (2, "")
    assert f"at version {NEWEST_THERE + 1}, newer than this qwed ({NEWEST_THERE}): upgrade qwed" in ran.err


def test_who_may_not_change_tables_is_told(database: str, run: Run) -> None:
    with open_connection(database) as connection:
        connection.execute("DROP ROLE IF EXISTS qwed_guest")
        connection.execute("CREATE ROLE qwed_guest LOGIN")
    ran = run("--database", database.replace("postgres@", "qwed_guest@"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"qwed: the database is at version 0, and this qwed wants {NEWEST_THERE}: run `qwed migrate` as the role that "
        "owns its tables, and grant what came with it (permission denied for schema public)\n"
    )
    with open_connection(database) as connection:
        connection.execute("DROP ROLE qwed_guest")


SLIPS = (
    "nonsense",
    "mysql://u:hunter2@host/qwed",
    "postgresql://u:hunter2@127.0.0.1:9/qwed",
    "postgresql://u:a@hunter2@127.0.0.1:9/qwed",
    "postgresql://u:hunter2/a@127.0.0.1:9/qwed",
)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_of_the_pen_is_answered_in_one_sentence(run: Run, slip: str) -> None:
    ran = run("--database", slip)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "hunter2" not in ran.err
