"""`qwed copy`: every row of every table arrives and every log verifies, or the target is as it was."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import qwed
from qwed.cli import main
from qwed.store.copy import CopyError, address_of, copy, open_source, open_target
from qwed.store.copy.plan import TableSchema, chunks, tables
from qwed.store.copy.postgres import require_empty
from qwed.store.copy.sqlite import UNFINISHED
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrations
from qwed.store.postgres.connect import open_connection
from qwed.store.postgres.locks import try_acquire_leadership
from qwed.store.postgres.schema import migrate, version_of
from tests.support.postgres_server import Databases
from tests.support.terminal import Terminal
from tests.support.wait_until import wait_for_condition
from tests.unit.cli.full_organisation import create_full_history
from tests.unit.cli.history import History, open_database, tamper

QWED = (sys.executable, "-m", "qwed.cli")
_OTHER_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A history that no test changes."""
    return create_full_history(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def copied(source: History, postgres: Databases) -> str:
    """URL of a PostgreSQL copy of the source that no test changes."""
    url = postgres.database()
    assert main(["copy", "--from", f"sqlite:///{source.data}", "--to", url]) == 0
    return url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("QWED_DATA_DIR", "QWED_BASE_URL", "QWED_API_KEY", "QWED_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Ran:
        return Ran(main([*map(str, arguments)]), *capsys.readouterr())

    return call


def _sqlite(data: Path) -> str:
    return f"sqlite:///{data}"


def _rows(place: Path | str) -> dict[str, list[Any]]:
    """Return every row of every table, read without qwed."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place / FILE_NAME)) as file:
            return {table.name: _sorted(file.execute(_everything(table))) for table in tables()}
    with psycopg.connect(place) as connection:
        return {table.name: _sorted(connection.execute(_everything(table).encode())) for table in tables()}


def _everything(table: TableSchema) -> str:
    return f"SELECT {table.column_list} FROM {table.name}"


def _sorted(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def _is_unused(url: str) -> bool:
    with open_connection(url) as connection:
        row = connection.execute(_OTHER_SESSIONS).fetchone()
    return row == (0,)


def _is_empty(url: str) -> bool:
    with open_connection(url) as connection:
        migrate(connection)
    return not any(rows for name, rows in _rows(url).items() if name != "meta")


# Copied data


def test_every_table_of_the_schema_is_copied(source: History, copied: str) -> None:
    there, here = _rows(copied), _rows(source.data)
    assert all(here.values())
    assert there == here


def test_the_tables_are_those_that_the_migrations_make(source: History) -> None:
    with open_database(source.data) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {table.name for table in tables()} == names


def test_the_log_is_verified_on_both_sides(source: History, copied: str, run: Run) -> None:
    command = ("audit", "verify", "--data-dir", source.data, "--head", source.heads)
    before, after = run(*command), run(*command, "--database", copied)
    assert (before.code, after.code) == (0, 0)
    assert before.out == after.out


def test_an_export_and_a_head_are_the_same_from_both_sides(source: History, copied: str, run: Run) -> None:
    for verb in (("export", "--payloads"), ("head",)):
        command = ("audit", *verb, "--data-dir", source.data, "--organisation", source.first)
        if verb[0] == "export":
            files = [source.data.parent / name for name in ("here", "there")]
            assert (
                run(*command, "--output", files[0]).code
                == run(*command, "--output", files[1], "--database", copied).code
                == 0
            )
            assert files[0].read_bytes() == files[1].read_bytes()
        else:
            assert run(*command).out == run(*command, "--database", copied).out


def test_the_variable_names_the_database_as_well(
    source: History, copied: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_DATABASE_URL", copied)
    with open_database(source.data) as connection:
        size = connection.execute("SELECT count(*) FROM activities").fetchone()[0]
    report = json.loads(run("audit", "verify", "--data-dir", source.data, "--json").out)
    assert (report["valid"], sum(log["size"] for log in report["logs"])) == (True, size)


def test_and_back_again_it_is_what_it_was(source: History, copied: str, run: Run, tmp_path: Path) -> None:
    ran = run("copy", "--from", copied, "--to", _sqlite(tmp_path / "back"), "--data-dir", source.data)
    assert (ran.code, _rows(tmp_path / "back")) == (0, _rows(source.data))
    assert f"the keys stay in {source.data}: copy signing.key, signing.jwks, vault.key and owner.key to" in ran.out
    for name in ("signing.key", "signing.jwks", "vault.key", "owner.key"):
        shutil.copy(source.data / name, tmp_path / "back")
    assert run("audit", "verify", "--data-dir", tmp_path / "back", "--head", source.heads).code == 0
    with qwed.open(tmp_path / "back") as gate:
        agent = gate.register_agent(name="goes on", principal_id="ops", type="trusted").agent_id
        place = {"conversation_id": "later", "step_number": 1}
        assert gate.verify_action(agent, {"type": "calculate", "query": "1 = 1"}, place).decision == "APPROVED"
    assert run("audit", "verify", "--data-dir", tmp_path / "back", "--head", source.heads).code == 0


def test_from_postgresql_to_postgresql(source: History, copied: str, database: str, run: Run) -> None:
    assert run("copy", "--from", copied, "--to", database, "--data-dir", source.data).code == 0
    assert _rows(database) == _rows(copied)


@pytest.mark.parametrize("habit", ["standard_conforming_strings = off", "quote_all_identifiers = on"])
def test_into_a_database_with_habits_of_its_own(source: History, database: str, run: Run, habit: str) -> None:
    with open_connection(database) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET {habit}'.encode())
    assert run("copy", "--from", _sqlite(source.data), "--to", database).code == 0
    assert _rows(database) == _rows(source.data)
    assert run("audit", "verify", "--data-dir", source.data, "--database", database).out.endswith("nothing is wrong\n")


def test_numbers_and_logs_go_on_after_what_was_copied(copied: str, source: History) -> None:
    with open_connection(copied, autocommit=False) as connection:
        logs = dict(connection.execute("SELECT organisation_id, size FROM logs").fetchall())
        assert logs == dict(
            connection.execute("SELECT organisation_id, count(*) FROM activities GROUP BY 1").fetchall()
        )
        connection.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_9', '', 0)")
        newest = connection.execute("SELECT organisation_id FROM organisations ORDER BY rowid DESC LIMIT 1").fetchone()
        assert newest == ("org_9",)
        number = connection.execute("SELECT nextval('activities_sequence') > max(sequence) FROM activities").fetchone()
        assert number == (True,)
        connection.rollback()


def test_activities_lie_in_the_months_they_are_of(copied: str) -> None:
    with open_connection(copied) as connection:
        partitions = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM activities").fetchall()
        strays = connection.execute("SELECT count(*) FROM activities_other").fetchone()
    assert all(row[0].startswith("activities_20") for row in partitions)
    assert strays == (0,)


@pytest.mark.parametrize("decisions", [0, 1, 3])
def test_a_directory_with_next_to_nothing_in_it(tmp_path: Path, database: str, run: Run, decisions: int) -> None:
    with qwed.open(tmp_path / "data") as gate:
        if decisions:
            agent = gate.register_agent(name="few", principal_id="ops", type="trusted").agent_id
        for step in range(1, decisions + 1):
            place = {"conversation_id": "c", "step_number": step}
            gate.verify_action(agent, {"type": "calculate", "query": f"{step} = {step}"}, place)
    ran = run("copy", "--from", _sqlite(tmp_path / "data"), "--to", database, "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["rows"]["activities"]) == (0, decisions + bool(decisions))
    assert _rows(database) == _rows(tmp_path / "data")
    assert run("audit", "verify", "--data-dir", tmp_path / "data", "--database", database).code == 0


def test_rows_that_are_large_are_taken_one_by_one() -> None:
    large = [(number, "x" * (5 << 20)) for number in range(3)]
    assert [len(chunk) for chunk in chunks(iter(large))] == [2, 1]
    assert [len(chunk) for chunk in chunks(iter([(number,) for number in range(4_001)]))] == [2_000, 2_000, 1]


# Output


def test_what_was_done_is_told_without_a_password(source: History, database: str, run: Run) -> None:
    secret = database.replace("postgres@", "postgres:hunter2@")
    ran = run("copy", "--from", _sqlite(source.data), "--to", secret)
    assert ran.code == 0
    assert "hunter2" not in ran.out + ran.err
    assert f"the keys stay in {source.data}: start the server with that data directory and QWED_DATABASE_URL" in ran.out
    assert f"take {source.data / 'qwed.db'} away before: started without that address, a server would go on" in ran.out
    assert ran.out.count(": verified") == 2
    with open_database(source.data) as connection:
        count = connection.execute("SELECT count(*) FROM activities").fetchone()[0]
    assert f"copying activities: {count} of {count} rows\n" in ran.err
    assert f"comparing activities: {count} of {count} rows\n" in ran.err


def test_at_a_terminal_there_is_a_bar(source: History, database: str) -> None:
    with Terminal(["copy", "--from", _sqlite(source.data), "--to", database], os.environ) as person:
        assert person.end() == 0
    assert "━" in person.seen
    assert "comparing activities: " not in person.seen


# Refusals


def _refused(ran: Ran, sentence: str) -> None:
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith("qwed: ")
    assert sentence in ran.err


def test_a_target_that_is_not_empty(source: History, copied: str, run: Run, tmp_path: Path) -> None:
    before = _rows(copied)
    ran = run("copy", "--from", _sqlite(source.data), "--to", copied)
    _refused(ran, "the target is not empty, its table `organisations` has rows: name an empty database")
    assert _rows(copied) == before
    shutil.copytree(source.data, tmp_path / "data")
    ran = run("copy", "--from", copied, "--to", _sqlite(tmp_path / "data"), "--data-dir", source.data)
    _refused(ran, f"there is a database in {tmp_path / 'data'} already: choose a directory without one")


@pytest.mark.parametrize("version", [number for number, _script in migrations("postgres")])
def test_a_target_that_is_not_empty_stays_at_its_version(
    source: History, database: str, run: Run, version: int
) -> None:
    with open_connection(database) as connection:
        migrate(connection, upto=version)
        connection.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_9', '', 0)")
        _refused(run("copy", "--from", _sqlite(source.data), "--to", database), "its table `organisations` has rows")
        assert version_of(connection) == version
        connection.execute("DELETE FROM logs; DELETE FROM organisations")
    assert run("copy", "--from", _sqlite(source.data), "--to", database).code == 0
    assert _rows(database) == _rows(source.data)


def test_a_target_with_tables_of_somebody_else(source: History, database: str, run: Run) -> None:
    with open_connection(database) as connection:
        connection.execute("CREATE TABLE organisations (name TEXT); INSERT INTO organisations VALUES ('theirs')")
        ran = run("copy", "--from", _sqlite(source.data), "--to", database)
        _refused(
            ran,
            "the database in PostgreSQL has a table `organisations` that qwed did not create: "
            "use a database of its own",
        )
        assert version_of(connection) == 0


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_directory_with_what_another_database_left(
    source: History, copied: str, run: Run, tmp_path: Path, end: str
) -> None:
    """SQLite would replay the leftover file into the new database."""
    new = tmp_path / "new"
    new.mkdir()
    left = new / f"{FILE_NAME}{end}"
    left.write_bytes(b"whatever was not yet in the file")
    command = ("copy", "--from", copied, "--to", _sqlite(new), "--data-dir", source.data)
    _refused(run(*command), f"{left} is of another qwed.db, and would be read into the copy: move it to that one")
    assert sorted(os.listdir(new)) == ["lock", left.name]
    left.rename(tmp_path / left.name)
    assert (run(*command).code, _rows(new)) == (0, _rows(source.data))


def test_one_row_in_any_table_is_not_empty(copied: str) -> None:
    names = [table.name for table in tables() if table.name != "meta"]
    with open_connection(copied) as connection:
        connection.execute("SET session_replication_role = replica")  # no question about the remaining rows
        for name in names:
            with connection.transaction(force_rollback=True):
                for other in set(names) - {name}:
                    connection.execute(f"DELETE FROM {other}".encode())
                with pytest.raises(CopyError, match=f"its table `{name}` has rows"):
                    require_empty(connection)


def test_a_source_that_a_server_writes_to(source: History, database: str, run: Run, tmp_path: Path) -> None:
    shutil.copytree(source.data, tmp_path / "data")
    with qwed.open(tmp_path / "data"):
        ran = run("copy", "--from", _sqlite(tmp_path / "data"), "--to", database)
    _refused(ran, f"a server runs on {tmp_path / 'data'}: stop it, and copy then")
    assert _is_empty(database)


def test_a_database_that_a_server_runs_on(
    source: History, copied: str, database: str, run: Run, tmp_path: Path
) -> None:
    message = "a server runs on that database in PostgreSQL: stop it, and copy then"
    with open_connection(copied) as server:
        assert try_acquire_leadership(server)
        _refused(run("copy", "--from", copied, "--to", _sqlite(tmp_path / "back"), "--data-dir", source.data), message)
    with open_connection(database) as server:
        assert try_acquire_leadership(server)
        _refused(run("copy", "--from", _sqlite(source.data), "--to", database), message)


def test_a_database_that_somebody_else_writes_to(source: History, copied: str, database: str, run: Run) -> None:
    message = "that database in PostgreSQL is in use: stop every server on it first"
    with open_connection(copied, autocommit=False) as other:
        other.execute("UPDATE usage SET day = day")
        _refused(run("copy", "--from", copied, "--to", database, "--data-dir", source.data), message)
        other.rollback()
    with open_connection(database) as other:
        migrate(other)
        with other.transaction(force_rollback=True):
            other.execute("INSERT INTO meta VALUES ('x', 'y')")
            _refused(run("copy", "--from", copied, "--to", database, "--data-dir", source.data), message)


def test_nobody_writes_to_either_side_meanwhile(source: History, copied: str, database: str) -> None:
    other = open_connection(copied)
    other.execute("SET lock_timeout = '100ms'")

    def judge(_reader: Any) -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("UPDATE usage SET day = day")
        with open_connection(database) as late:
            late.execute("SET lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                late.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_9', '', 0)")

    with open_source(address_of(copied)) as opened, open_target(address_of(database)) as target:
        copy(opened, target, judge, lambda _what, _done, _total: None)
    other.close()


SLIPS = {
    "no address": ("nonsense", "an address is sqlite:///DIRECTORY"),
    "no path": ("sqlite:///", "an address is sqlite:///DIRECTORY"),
    "another database": ("mysql://user:hunter2@host/qwed", "an address is sqlite:///DIRECTORY"),
    "brackets": ("postgresql://[hunter2/qwed", "an address is sqlite:///DIRECTORY"),
    "an option that there is not": (
        "postgresql://u:hunter2@/qwed?nonsense=1",
        "the database URL is invalid: write it as postgresql://user@host/qwed",
    ),
    "an @ in a password": (
        "postgresql://u:a@hunter2@127.0.0.1:9/qwed",
        "the database URL is invalid: write it as postgresql://user@host/qwed, and in a password %40 for an @",
    ),
    "nobody there": ("postgresql://u:hunter2@127.0.0.1:9/qwed", "PostgreSQL cannot be reached: "),
    "no such directory": ("sqlite:////nowhere/at/all", "there is no database in /nowhere/at/all"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_of_the_pen_is_answered_in_one_sentence(source: History, run: Run, tmp_path: Path, slip: str) -> None:
    address, sentence = SLIPS[slip]
    ran = run("copy", "--from", address, "--to", _sqlite(tmp_path / "new"), "--data-dir", source.data)
    _refused(ran, sentence)
    assert "hunter2" not in ran.err
    assert not (tmp_path / "new" / FILE_NAME).exists()


OLD = {
    "an older version": (
        f"PRAGMA user_version = {migrations()[-1][0] - 1}",
        "older than this qwed: start `qwed serve`",
    ),
    "a newer version": (f"PRAGMA user_version = {migrations()[-1][0] + 1}", "newer than this qwed"),
    "leaves without a tree": ("INSERT INTO meta VALUES ('log_behind', '1')", "was not started since it was brought up"),
    "plain conversations": ("DELETE FROM meta", "was not started since it was brought up"),
}


@pytest.mark.parametrize("old", OLD)
def test_what_a_start_has_to_finish_first(source: History, database: str, run: Run, tmp_path: Path, old: str) -> None:
    statement, sentence = OLD[old]
    data = source.copy(tmp_path).data
    with open_database(data) as connection:
        connection.execute(statement)
    _refused(run("copy", "--from", _sqlite(data), "--to", database), sentence)
    assert _is_empty(database)


def test_a_source_of_another_version_in_postgresql(source: History, database: str, run: Run, tmp_path: Path) -> None:
    ran = run("copy", "--from", database, "--to", _sqlite(tmp_path / "new"), "--data-dir", source.data)
    newest = migrations("postgres")[-1][0]
    _refused(ran, f"the source is at version 0, and this qwed wants {newest}: run `qwed migrate`")


UNKEEPABLE = {
    "a NUL": ("UPDATE agents SET name = 'a' || char(0) || 'b'", "a row of the table `agents` cannot be written"),
    "no text": ("UPDATE tools SET name = CAST(x'ff' AS TEXT)", "the database cannot be read"),
    "a subject that is gone": (
        "UPDATE idempotency_keys SET subject_id = 'sub_x'",
        "a row of the table `idempotency_keys` cannot be written",
    ),
}


@pytest.mark.parametrize("what", UNKEEPABLE)
def test_what_postgresql_cannot_hold_is_told(
    source: History, database: str, run: Run, tmp_path: Path, what: str
) -> None:
    statement, sentence = UNKEEPABLE[what]
    data = source.copy(tmp_path).data
    tamper(data, statement)
    _refused(run("copy", "--from", _sqlite(data), "--to", database), sentence)
    assert _is_empty(database)


def test_a_log_that_does_not_verify_is_not_copied(source: History, database: str, run: Run, tmp_path: Path) -> None:
    data = source.copy(tmp_path).data
    tamper(data, "UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') WHERE decision = 'DENIED'")
    ran = run("copy", "--from", _sqlite(data), "--to", database)
    assert ran.code == 1
    assert "its leaf_hash is not" in ran.out
    assert "the copy does not verify and was discarded: run `qwed audit verify` on the source" in ran.err
    assert _is_empty(database)


def test_without_its_keys_nothing_can_be_verified(source: History, database: str, run: Run, tmp_path: Path) -> None:
    data = source.copy(tmp_path).data
    (data / "signing.jwks").unlink()
    _refused(run("copy", "--from", _sqlite(data), "--to", database), "signing.jwks is missing")


# Interrupted copies


class _AbortError(Exception):
    """Error that ends a copy."""


def _abort_at(what: str) -> Callable[[str, int, int], None]:
    def progress(table: str, _done: int, _total: int) -> None:
        if table == what:
            raise _AbortError

    return progress


STAGES = ("copying organisations", "copying activities", "copying webhooks", "comparing activities", "judging")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_copy_that_fails_on_the_way_leaves_nothing(
    source: History, database: str, tmp_path: Path, kind: str, stage: str
) -> None:
    end = address_of(database if kind == "postgresql" else _sqlite(tmp_path / "new"))

    def judge(_reader: Any) -> None:
        raise _AbortError

    with (
        pytest.raises(_AbortError),
        open_source(address_of(_sqlite(source.data))) as opened,
        open_target(end) as target,
    ):
        copy(opened, target, judge, _abort_at(stage))
    if kind == "postgresql":
        assert _is_empty(database)
    else:
        assert sorted(os.listdir(tmp_path / "new")) == ["lock"]


LINES = [f"{doing} {table.name}" for doing in ("copying", "comparing") for table in tables()]
USUAL = ("copying heads", "comparing webhooks")


@pytest.mark.parametrize(
    "line", [*USUAL, *(pytest.param(line, marks=pytest.mark.drill) for line in LINES if line not in USUAL)]
)
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_copy_that_is_killed_can_be_made_again_or_is_finished(
    source: History, copied: str, database: str, run: Run, tmp_path: Path, kind: str, line: str
) -> None:
    new = tmp_path / "new"
    begin, end = (_sqlite(source.data), database) if kind == "postgresql" else (copied, _sqlite(new))
    command = ("copy", "--from", begin, "--to", end, "--data-dir", str(source.data))
    with subprocess.Popen([*QWED, *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        assert any(printed.startswith(line) for printed in process.stderr)
        process.send_signal(signal.SIGKILL)
    # PostgreSQL ends the session of a killed process a moment later, and frees its locks only then.
    wait_for_condition(lambda: _is_unused(database if kind == "postgresql" else copied))
    finished = (new / FILE_NAME).exists() if kind == "sqlite" else not _is_empty(database)
    if finished:
        _refused(run(*command), "not empty" if kind == "postgresql" else "there is a database in")
    else:
        assert run(*command).code == 0
    assert not (new / UNFINISHED).exists()
    assert _rows(database if kind == "postgresql" else new) == _rows(source.data)
