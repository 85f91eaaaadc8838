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
from qwed.store.copying import CopyRefused, address_of, copy, open_source, open_target
from qwed.store.copying.plan import Table, chunks, tables
from qwed.store.copying.postgres import _require_empty
from qwed.store.copying.sqlite import UNFINISHED
from qwed.store.migrate import migrations
from qwed.store.place import FILE_NAME
from qwed.store.postgres.locks import try_to_lead
from qwed.store.postgres.opening import connected
from qwed.store.postgres.schema import migrate, version_of
from tests.support.postgres_server import Databases
from tests.support.terminals import Terminal
from tests.unit.cli.full_house import full_house
from tests.unit.cli.history import History, hand, tamper

QWED = (sys.executable, "-m", "qwed.cli")


class Ran(NamedTuple):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Looked at, and never changed."""
    return full_house(tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="module")
def copied(house: History, postgres: Databases) -> str:
    """The same in PostgreSQL. Looked at, and never changed."""
    url = postgres.database()
    assert main(["copy", "--from", f"sqlite:///{house.data}", "--to", url]) == 0
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
    """Every row of every table, read without us."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place / FILE_NAME)) as file:
            return {table.name: _sorted(file.execute(_everything(table))) for table in tables()}
    with psycopg.connect(place) as connection:
        return {table.name: _sorted(connection.execute(_everything(table).encode())) for table in tables()}


def _everything(table: Table) -> str:
    return f"SELECT {table.named} FROM {table.name}"


def _sorted(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def _is_empty(url: str) -> bool:
    with connected(url) as connection:
        migrate(connection)
    return not any(rows for name, rows in _rows(url).items() if name != "meta")


# What arrives


def test_every_table_of_the_schema_is_copied(house: History, copied: str) -> None:
    there, here = _rows(copied), _rows(house.data)
    assert all(here.values())
    assert there == here


def test_the_tables_are_those_that_the_migrations_make(house: History) -> None:
    with hand(house.data) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {table.name for table in tables()} == names


def test_the_log_is_verified_on_both_sides(house: History, copied: str, run: Run) -> None:
    asked = ("audit", "verify", "--data-dir", house.data, "--head", house.heads)
    before, after = run(*asked), run(*asked, "--database", copied)
    assert (before.code, after.code) == (0, 0)
    assert before.out == after.out


def test_an_export_and_a_head_are_the_same_from_both_sides(house: History, copied: str, run: Run) -> None:
    for verb in (("export", "--payloads"), ("head",)):
        asked = ("audit", *verb, "--data-dir", house.data, "--organisation", house.first)
        if verb[0] == "export":
            files = [house.data.parent / name for name in ("here", "there")]
            assert (
                run(*asked, "--output", files[0]).code
                == run(*asked, "--output", files[1], "--database", copied).code
                == 0
            )
            assert files[0].read_bytes() == files[1].read_bytes()
        else:
            assert run(*asked).out == run(*asked, "--database", copied).out


def test_the_variable_names_the_database_as_well(
    house: History, copied: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_DATABASE_URL", copied)
    with hand(house.data) as connection:
        size = connection.execute("SELECT count(*) FROM activities").fetchone()[0]
    told = json.loads(run("audit", "verify", "--data-dir", house.data, "--json").out)
    assert (told["valid"], sum(log["size"] for log in told["logs"])) == (True, size)


def test_and_back_again_it_is_what_it_was(house: History, copied: str, run: Run, tmp_path: Path) -> None:
    ran = run("copy", "--from", copied, "--to", _sqlite(tmp_path / "back"), "--data-dir", house.data)
    assert (ran.code, _rows(tmp_path / "back")) == (0, _rows(house.data))
    assert f"the keys stay in {house.data}: copy signing.key, signing.jwks, vault.key and owner.key to" in ran.out
    for name in ("signing.key", "signing.jwks", "vault.key", "owner.key"):
        shutil.copy(house.data / name, tmp_path / "back")
    assert run("audit", "verify", "--data-dir", tmp_path / "back", "--head", house.heads).code == 0
    with qwed.open(tmp_path / "back") as gate:
        agent = gate.register_agent(name="goes on", principal_id="ops", type="trusted").agent_id
        place = {"conversation_id": "later", "step_number": 1}
        assert gate.verify_action(agent, {"type": "calculate", "query": "1 = 1"}, place).decision == "APPROVED"
    assert run("audit", "verify", "--data-dir", tmp_path / "back", "--head", house.heads).code == 0


def test_from_postgresql_to_postgresql(house: History, copied: str, database: str, run: Run) -> None:
    assert run("copy", "--from", copied, "--to", database, "--data-dir", house.data).code == 0
    assert _rows(database) == _rows(copied)


@pytest.mark.parametrize("habit", ["standard_conforming_strings = off", "quote_all_identifiers = on"])
def test_into_a_database_with_habits_of_its_own(house: History, database: str, run: Run, habit: str) -> None:
    with connected(database) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET {habit}'.encode())
    assert run("copy", "--from", _sqlite(house.data), "--to", database).code == 0
    assert _rows(database) == _rows(house.data)
    assert run("audit", "verify", "--data-dir", house.data, "--database", database).out.endswith("nothing is wrong\n")


def test_numbers_and_logs_go_on_after_what_was_copied(copied: str, house: History) -> None:
    with connected(copied, autocommit=False) as connection:
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
    with connected(copied) as connection:
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM activities").fetchall()
        strays = connection.execute("SELECT count(*) FROM activities_other").fetchone()
    assert all(row[0].startswith("activities_20") for row in found)
    assert strays == (0,)


@pytest.mark.parametrize("decisions", [0, 1, 3])
def test_a_house_with_next_to_nothing_in_it(tmp_path: Path, database: str, run: Run, decisions: int) -> None:
    with qwed.open(tmp_path / "data") as gate:
        if decisions:
            agent = gate.register_agent(name="few", principal_id="ops", type="trusted").agent_id
        for step in range(1, decisions + 1):
            place = {"conversation_id": "c", "step_number": step}
            gate.verify_action(agent, {"type": "calculate", "query": f"{step} = {step}"}, place)
    ran = run("copy", "--from", _sqlite(tmp_path / "data"), "--to", database, "--json")
    told = json.loads(ran.out)
    assert (ran.code, told["rows"]["activities"]) == (0, decisions + bool(decisions))
    assert _rows(database) == _rows(tmp_path / "data")
    assert run("audit", "verify", "--data-dir", tmp_path / "data", "--database", database).code == 0


def test_rows_that_are_large_are_taken_one_by_one() -> None:
    large = [(number, "x" * (5 << 20)) for number in range(3)]
    assert [len(found) for found in chunks(iter(large))] == [2, 1]
    assert [len(found) for found in chunks(iter([(number,) for number in range(4_001)]))] == [2_000, 2_000, 1]


# What is said


def test_what_was_done_is_told_without_a_password(house: History, database: str, run: Run) -> None:
    secret = database.replace("postgres@", "postgres:hunter2@")
    ran = run("copy", "--from", _sqlite(house.data), "--to", secret)
    assert ran.code == 0
    assert "hunter2" not in ran.out + ran.err
    assert f"the keys stay in {house.data}: start the server with that data directory, and QWED_DATABASE_URL" in ran.out
    assert f"take {house.data / 'qwed.db'} away before: started without that address, a server would go on" in ran.out
    assert ran.out.count(": verified") == 2
    with hand(house.data) as connection:
        count = connection.execute("SELECT count(*) FROM activities").fetchone()[0]
    assert f"copying activities: {count} of {count} rows\n" in ran.err
    assert f"comparing activities: {count} of {count} rows\n" in ran.err


def test_at_a_terminal_there_is_a_bar(house: History, database: str) -> None:
    with Terminal(["copy", "--from", _sqlite(house.data), "--to", database], os.environ) as person:
        assert person.end() == 0
    assert "━" in person.seen
    assert "comparing activities: " not in person.seen


# What is refused


def _refused(ran: Ran, sentence: str) -> None:
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith("qwed: ")
    assert sentence in ran.err


def test_a_target_that_is_not_empty(house: History, copied: str, run: Run, tmp_path: Path) -> None:
    before = _rows(copied)
    ran = run("copy", "--from", _sqlite(house.data), "--to", copied)
    _refused(ran, "the target is not empty, its table `organisations` has rows: name an empty database")
    assert _rows(copied) == before
    shutil.copytree(house.data, tmp_path / "data")
    ran = run("copy", "--from", copied, "--to", _sqlite(tmp_path / "data"), "--data-dir", house.data)
    _refused(ran, f"there is a database in {tmp_path / 'data'} already: choose a directory without one")


@pytest.mark.parametrize("version", [number for number, _script in migrations("postgres")])
def test_a_target_that_is_not_empty_stays_at_its_version(house: History, database: str, run: Run, version: int) -> None:
    with connected(database) as connection:
        migrate(connection, upto=version)
        connection.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_9', '', 0)")
        _refused(run("copy", "--from", _sqlite(house.data), "--to", database), "its table `organisations` has rows")
        assert version_of(connection) == version
        connection.execute("DELETE FROM logs; DELETE FROM organisations")
    assert run("copy", "--from", _sqlite(house.data), "--to", database).code == 0
    assert _rows(database) == _rows(house.data)


def test_a_target_with_tables_of_somebody_else(house: History, database: str, run: Run) -> None:
    with connected(database) as connection:
        connection.execute("CREATE TABLE organisations (name TEXT); INSERT INTO organisations VALUES ('theirs')")
        ran = run("copy", "--from", _sqlite(house.data), "--to", database)
        _refused(ran, "the database in PostgreSQL holds a table `organisations` that is not ours: name one of its own")
        assert version_of(connection) == 0


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_directory_with_what_another_database_left(
    house: History, copied: str, run: Run, tmp_path: Path, end: str
) -> None:
    """It would be replayed into the new file by whoever opens that first."""
    new = tmp_path / "new"
    new.mkdir()
    left = new / f"{FILE_NAME}{end}"
    left.write_bytes(b"whatever was not yet in the file")
    asked = ("copy", "--from", copied, "--to", _sqlite(new), "--data-dir", house.data)
    _refused(run(*asked), f"{left} is of another qwed.db, and would be read into the copy: put it beside that one")
    assert sorted(os.listdir(new)) == ["lock", left.name]
    left.rename(tmp_path / left.name)
    assert (run(*asked).code, _rows(new)) == (0, _rows(house.data))


def test_one_row_in_any_table_is_not_empty(copied: str) -> None:
    names = [table.name for table in tables() if table.name != "meta"]
    with connected(copied) as connection:
        connection.execute("SET session_replication_role = replica")  # nothing is asked about what is left
        for name in names:
            with connection.transaction(force_rollback=True):
                for other in set(names) - {name}:
                    connection.execute(f"DELETE FROM {other}".encode())
                with pytest.raises(CopyRefused, match=f"its table `{name}` has rows"):
                    _require_empty(connection)


def test_a_source_that_a_server_writes_to(house: History, database: str, run: Run, tmp_path: Path) -> None:
    shutil.copytree(house.data, tmp_path / "data")
    with qwed.open(tmp_path / "data"):
        ran = run("copy", "--from", _sqlite(tmp_path / "data"), "--to", database)
    _refused(ran, f"a server runs on {tmp_path / 'data'}: stop it, and copy then")
    assert _is_empty(database)


def test_a_database_that_a_server_runs_on(house: History, copied: str, database: str, run: Run, tmp_path: Path) -> None:
    said = "a server runs on that database in PostgreSQL: stop it, and copy then"
    with connected(copied) as server:
        assert try_to_lead(server)
        _refused(run("copy", "--from", copied, "--to", _sqlite(tmp_path / "back"), "--data-dir", house.data), said)
    with connected(database) as server:
        assert try_to_lead(server)
        _refused(run("copy", "--from", _sqlite(house.data), "--to", database), said)


def test_a_database_that_somebody_else_writes_to(house: History, copied: str, database: str, run: Run) -> None:
    said = "somebody else uses that database in PostgreSQL: stop every server on it first"
    with connected(copied, autocommit=False) as other:
        other.execute("UPDATE usage SET day = day")
        _refused(run("copy", "--from", copied, "--to", database, "--data-dir", house.data), said)
        other.rollback()
    with connected(database) as other:
        migrate(other)
        with other.transaction(force_rollback=True):
            other.execute("INSERT INTO meta VALUES ('x', 'y')")
            _refused(run("copy", "--from", copied, "--to", database, "--data-dir", house.data), said)


def test_nobody_writes_to_either_side_meanwhile(house: History, copied: str, database: str) -> None:
    other = connected(copied)
    other.execute("SET lock_timeout = '100ms'")

    def judge(_reader: Any) -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("UPDATE usage SET day = day")
        with connected(database) as late:
            late.execute("SET lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                late.execute("INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_9', '', 0)")

    with open_source(address_of(copied)) as source, open_target(address_of(database)) as target:
        copy(source, target, judge, lambda _what, _done, _total: None)
    other.close()


SLIPS = {
    "no address": ("nonsense", "an address is sqlite:///DIRECTORY"),
    "no path": ("sqlite:///", "an address is sqlite:///DIRECTORY"),
    "another database": ("mysql://user:hunter2@host/qwed", "an address is sqlite:///DIRECTORY"),
    "brackets": ("postgresql://[hunter2/qwed", "an address is sqlite:///DIRECTORY"),
    "an option that there is not": (
        "postgresql://u:hunter2@/qwed?nonsense=1",
        "the address of the database is none: write it as postgresql://user@host/qwed",
    ),
    "an @ in a password": (
        "postgresql://u:a@hunter2@127.0.0.1:9/qwed",
        "the address of the database is none: write it as postgresql://user@host/qwed, and in a password %40 for an @",
    ),
    "nobody there": ("postgresql://u:hunter2@127.0.0.1:9/qwed", "PostgreSQL cannot be reached: "),
    "no such directory": ("sqlite:////nowhere/at/all", "there is no database in /nowhere/at/all"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_of_the_pen_is_answered_in_one_sentence(house: History, run: Run, tmp_path: Path, slip: str) -> None:
    address, sentence = SLIPS[slip]
    ran = run("copy", "--from", address, "--to", _sqlite(tmp_path / "new"), "--data-dir", house.data)
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
def test_what_a_start_has_to_finish_first(house: History, database: str, run: Run, tmp_path: Path, old: str) -> None:
    statement, sentence = OLD[old]
    data = house.copy(tmp_path).data
    with hand(data) as connection:
        connection.execute(statement)
    _refused(run("copy", "--from", _sqlite(data), "--to", database), sentence)
    assert _is_empty(database)


def test_a_source_of_another_version_in_postgresql(house: History, database: str, run: Run, tmp_path: Path) -> None:
    ran = run("copy", "--from", database, "--to", _sqlite(tmp_path / "new"), "--data-dir", house.data)
    newest = migrations("postgres")[-1][0]
    _refused(ran, f"the source is at version 0, and this qwed wants {newest}: run `qwed migrate`")


UNKEEPABLE = {
    "a NUL": ("UPDATE agents SET name = 'a' || char(0) || 'b'", "a row of the table `agents` cannot be written"),
    "no text": ("UPDATE tools SET name = CAST(x'ff' AS TEXT)", "the database cannot be read"),
    "a subject that is gone": (
        "UPDATE memories SET subject_id = 'sub_x'",
        "a row of the table `memories` cannot be written",
    ),
}


@pytest.mark.parametrize("what", UNKEEPABLE)
def test_what_postgresql_cannot_hold_is_told(
    house: History, database: str, run: Run, tmp_path: Path, what: str
) -> None:
    statement, sentence = UNKEEPABLE[what]
    data = house.copy(tmp_path).data
    tamper(data, statement)
    _refused(run("copy", "--from", _sqlite(data), "--to", database), sentence)
    assert _is_empty(database)


def test_a_log_that_does_not_verify_is_not_copied(house: History, database: str, run: Run, tmp_path: Path) -> None:
    data = house.copy(tmp_path).data
    tamper(data, "UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') WHERE decision = 'DENIED'")
    ran = run("copy", "--from", _sqlite(data), "--to", database)
    assert ran.code == 1
    assert "its leaf_hash is not" in ran.out
    assert "what was copied does not verify, and was not kept: run `qwed audit verify` on the source" in ran.err
    assert _is_empty(database)


def test_without_its_keys_nothing_can_be_verified(house: History, database: str, run: Run, tmp_path: Path) -> None:
    data = house.copy(tmp_path).data
    (data / "signing.jwks").unlink()
    _refused(run("copy", "--from", _sqlite(data), "--to", database), "signing.jwks is missing")


# Cut short


class _Cut(Exception):
    """Whatever ends a copy."""


def _cut_at(what: str) -> Callable[[str, int, int], None]:
    def progress(told: str, _done: int, _total: int) -> None:
        if told == what:
            raise _Cut

    return progress


STAGES = ("copying organisations", "copying activities", "copying webhooks", "comparing activities", "judging")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_copy_that_fails_on_the_way_leaves_nothing(
    house: History, database: str, tmp_path: Path, kind: str, stage: str
) -> None:
    end = address_of(database if kind == "postgresql" else _sqlite(tmp_path / "new"))

    def judge(_reader: Any) -> None:
        raise _Cut

    with (
        pytest.raises(_Cut),
        open_source(address_of(_sqlite(house.data))) as source,
        open_target(end) as target,
    ):
        copy(source, target, judge, _cut_at(stage))
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
    house: History, copied: str, database: str, run: Run, tmp_path: Path, kind: str, line: str
) -> None:
    new = tmp_path / "new"
    begin, end = (_sqlite(house.data), database) if kind == "postgresql" else (copied, _sqlite(new))
    given = ("copy", "--from", begin, "--to", end, "--data-dir", str(house.data))
    with subprocess.Popen([*QWED, *given], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        assert any(said.startswith(line) for said in process.stderr)
        process.send_signal(signal.SIGKILL)
    finished = (new / FILE_NAME).exists() if kind == "sqlite" else not _is_empty(database)
    if finished:
        _refused(run(*given), "not empty" if kind == "postgresql" else "there is a database in")
    else:
        assert run(*given).code == 0
    assert not (new / UNFINISHED).exists()
    assert _rows(database if kind == "postgresql" else new) == _rows(house.data)
