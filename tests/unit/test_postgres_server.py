"""The PostgreSQL that tests run on: shared, fresh for each, fit for faults, and never left behind."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres_binaries import installation, within_reach
from tests.support.postgres_server import Databases, Postgres, database_name, state_of

_USES = """
import sys
from pathlib import Path
from tests.support.postgres_server import shared
used = shared(Path(sys.argv[1]))
print(used.home, (used.home / "data" / "postmaster.pid").read_text().splitlines()[0], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Postgres]:
    """Server that no other test uses."""
    with Postgres(tcp=True) as running:
        yield running


def asked(url: str, question: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def told(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_database_is_fresh_and_a_copy_is_like_its_original(postgres: Databases) -> None:
    first, second = postgres.database(), postgres.database()
    told(first, "CREATE TABLE kept AS SELECT 7 AS number")
    assert asked(second, "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'") == 0
    copy = postgres.database(like=first)
    assert asked(copy, "SELECT number FROM kept") == 7
    assert len({first, second, copy}) == 3


def test_a_database_that_is_in_use_can_be_dropped(postgres: Databases) -> None:
    url = postgres.database()
    with psycopg.connect(url):
        postgres.drop(url)
        assert asked(postgres.url(), f"SELECT count(*) FROM pg_database WHERE datname = '{database_name(url)}'") == 0


def test_nothing_is_written_without_being_forced_to_the_disk_unless_a_test_says_so(postgres: Databases) -> None:
    assert asked(postgres.url(), "SHOW fsync") == "on"
    with Postgres(durable=False) as careless:
        assert asked(careless.url(), "SHOW fsync") == "off"


def test_what_was_committed_is_there_after_an_immediate_restart(own: Postgres) -> None:
    url = own.database()
    told(url, "CREATE TABLE kept AS SELECT 7 AS number")
    before = own.pid
    with psycopg.connect(url) as lost:
        own.restart_immediate()
        with pytest.raises(psycopg.OperationalError):
            lost.execute("SELECT 1")
    assert own.pid != before
    assert asked(url, "SELECT number FROM kept") == 7


def test_what_is_stopped_refuses_and_what_is_started_again_answers(own: Postgres) -> None:
    url = own.database()
    own.stop()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    own.start()
    assert asked(url, "SELECT 1") == 1


def test_what_is_frozen_keeps_its_connections_and_says_nothing_until_it_thaws(own: Postgres) -> None:
    with closing(psycopg.connect(own.url())) as connection:
        own.freeze()
        connection.pgconn.send_query(b"SELECT 1")
        connection.pgconn.flush()
        assert state_of(own.pid) == state_of(connection.info.backend_pid) == "T"
        assert not readable(connection, 0)
        own.thaw()
        assert readable(connection, 60)


def readable(connection: psycopg.Connection[tuple[object, ...]], seconds: float) -> bool:
    return bool(select.select([connection], [], [], seconds)[0])


def test_two_processes_share_a_server_which_ends_with_the_last_of_them_even_if_it_is_killed(tmp_path: Path) -> None:
    with using(tmp_path) as one, using(tmp_path) as other:
        home, pid = said_by(one)
        assert said_by(other) == (home, pid)
        server = os.pidfd_open(int(pid))
        one.kill()
        one.wait()
        assert not ended(server, 0)
        assert asked(Databases(Path(home)).url(), "SELECT 1") == 1
        other.kill()
    assert ended(server, 60)
    os.close(server)
    with using(tmp_path) as later:
        assert said_by(later)[0] != home


def using(place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _USES, str(place)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said_by(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    home, pid = process.stdout.readline().split()
    return home, pid


def ended(process: int, seconds: float) -> bool:
    return bool(select.select([process], [], [], seconds)[0])


def test_the_server_ends_with_its_keeper() -> None:
    with Postgres() as kept:
        server = os.pidfd_open(kept.pid)
        kept.kill_keeper()
        assert ended(server, 60)
        os.close(server)


def test_programs_behind_a_closed_door_are_brought_within_reach_of_who_runs_them(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "postgres").touch(0o755)
    closed.chmod(0o700)
    found = within_reach(closed, tmp_path)
    assert (found / "bin" / "postgres").exists()
    assert (found == closed) == (os.geteuid() != 0)
    assert (installation() / "bin" / "initdb").exists()
