"""Ruling 4.19 and DESIGN 6: the first start, a start after an interrupted one, and starts that must be refused."""

import functools
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.gate import Gate
from qwed.kernel.authentication import find_key
from qwed.kernel.bootstrap import OWNER_KEY_FILE, close_services, open_services
from qwed.ledger.keyring import JWKS_FILE, KEY_FILE
from qwed.ledger.subject_encryption import VaultError
from qwed.model.clock import Clock
from qwed.settings import Settings
from qwed.store.data_directory import FILE_NAME, DataDirectoryInUseError
from qwed.store.migrate import migrate, migrations
from qwed.store.postgres.connect import open_connection
from qwed.store.postgres.schema import migrate as migrate_postgres
from qwed.store.protocol import StoreError
from tests.faults.crashing_server import AFTER_COMMIT, BEFORE_COMMIT
from tests.support.agent_names import unique_name
from tests.support.server import SERVE, Server

LAUNCHER = Path(__file__).with_name("crashing_server.py")
SUM = {"type": "calculate", "query": "2+2"}
PLACE = {"conversation_id": "c", "step_number": 1}


def _require_serving(directory: Path) -> None:
    """Require that the key in the file is the owner's, and that decisions are made."""
    with qwed.open(directory) as gate:
        key = find_key((directory / OWNER_KEY_FILE).read_text().strip(), gate.services.store)
        assert key is not None
        assert (key.role, key.organisation_id) == ("owner", gate.organisation_id)
        agent_id = gate.register_agent(name=unique_name(), principal_id="p")["agent_id"]
        assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"


def test_the_first_start_makes_keys_that_only_their_owner_reads(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    _require_serving(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    for name in (OWNER_KEY_FILE, KEY_FILE, JWKS_FILE, FILE_NAME):
        assert (directory / name).stat().st_mode & 0o777 == 0o600


def test_a_later_start_keeps_the_organisation_the_owner_and_the_signing_key(tmp_path: Path) -> None:
    with qwed.open(tmp_path / "data") as gate:
        first = (gate.organisation_id, gate.services.signer.keyring.current.kid)
        assert gate.owner_key is not None
    with qwed.open(tmp_path / "data") as gate:
        assert (gate.organisation_id, gate.services.signer.keyring.current.kid) == first
        assert gate.owner_key is None
    _require_serving(tmp_path / "data")


@pytest.mark.parametrize("place", [BEFORE_COMMIT, AFTER_COMMIT])
def test_a_first_start_cut_short_leaves_a_house_that_its_owner_can_enter(tmp_path: Path, place: str) -> None:
    command = [sys.executable, str(LAUNCHER), "--place", place, "--times", "1", "--from-start"]
    ended = subprocess.run([*command, "--data-dir", str(tmp_path / "data")], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    _require_serving(tmp_path / "data")


def test_a_key_file_without_an_organisation_is_written_anew(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / OWNER_KEY_FILE).write_text("qwed_live_of_a_start_that_was_cut_short\n")
    (directory / f"{KEY_FILE}.new").write_text("half a")
    _require_serving(directory)


def test_a_second_process_on_one_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with qwed.open(directory):
        command = [*SERVE, "--data-dir", str(directory)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=_bare())
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1] == (
        f"qwed: {directory} is in use by another qwed process; stop it, choose another --data-dir, "
        "or use PostgreSQL to share one store between processes"
    )
    _require_serving(directory)


def test_a_second_gate_in_the_same_process_is_refused_too_and_harms_nothing(tmp_path: Path) -> None:
    with qwed.open(tmp_path / "data") as gate:
        with pytest.raises(DataDirectoryInUseError, match="in use by another qwed process"):
            qwed.open(tmp_path / "data")
        agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
        assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"


def test_a_killed_server_gives_its_directory_back_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    assert server.kill() == -signal.SIGKILL
    _require_serving(tmp_path / "data")


def test_a_port_that_cannot_be_is_refused_with_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qwed.cli", "serve", "--port", "70000", "--data-dir", str(tmp_path / "data")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=_bare())
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith("qwed: cannot listen on 127.0.0.1:70000: ")


def _bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("QWED_", "PYTHON"))}


def test_a_database_newer_than_this_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    newer = migrations()[-1][0] + 1
    _set_version(directory, newer)
    with pytest.raises(RuntimeError, match=f"version {newer}, newer than this qwed .*: upgrade qwed") as raised:
        open_services(Settings(data_dir=directory))
    assert _open_files(directory) == [], raised
    # The directory was released: the right version opens it in the same process.
    _set_version(directory, newer - 1)
    _require_serving(directory)


def test_what_is_no_database_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"file is not a database" * 100)
    with pytest.raises(StoreError, match="could not be opened") as raised:
        open_services(Settings(data_dir=tmp_path))
    assert _open_files(tmp_path) == [], raised


def _open_files(directory: Path) -> list[str]:
    files = [os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()]
    return [file for file in files if file.startswith(f"{directory}/")]


def test_a_start_whose_store_cannot_be_made_gives_the_directory_back(tmp_path: Path) -> None:
    def no_time() -> float:
        raise OSError(5, "i/o error")

    with pytest.raises(OSError, match="i/o error"):
        open_services(Settings(data_dir=tmp_path / "data"), clock=Clock(monotonic=no_time))
    _require_serving(tmp_path / "data")


def test_the_command_refuses_a_newer_database_with_a_sentence(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    _set_version(directory, 9999)
    command = [*SERVE, "--data-dir", str(directory)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=_bare())
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith("qwed: the database is at version 9999, newer than this qwed")


def _set_version(directory: Path, version: int) -> None:
    connection = sqlite3.connect(directory / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize("version", [0, *(number for number, _script in migrations())])
def test_a_database_of_every_earlier_version_is_brought_up_and_serves(tmp_path: Path, version: int) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    connection = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    if version:
        assert migrate(connection, upto=version) == version
    connection.close()
    _require_serving(directory)
    connection = sqlite3.connect(directory / FILE_NAME)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == migrations()[-1][0]
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


def test_a_migration_that_fails_leaves_the_version_it_found(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
    connection.execute("CREATE TABLE agents (in_the_way INTEGER)")
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(connection)
    connection.close()
    connection = sqlite3.connect(tmp_path / "db")
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 0
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    assert names == [("agents",)]
    connection.close()


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("lose", [Path.unlink, _empty], ids=["gone", "empty"])
def test_keys_without_their_database_begin_no_other_one(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    content = (directory / FILE_NAME).read_bytes()
    lose(directory / FILE_NAME)
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    command = [*SERVE, "--data-dir", str(directory)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=_bare())
    assert (refused.returncode, refused.stderr) == (
        2,
        f"qwed: {directory} has keys, but their database is missing: restore {directory / FILE_NAME} from a "
        "backup, or set QWED_DATABASE_URL to the PostgreSQL that it was copied to; to start over, use an empty "
        "`--data-dir`\n",
    )
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before
    (directory / FILE_NAME).write_bytes(content)
    with qwed.open(directory) as gate:
        assert find_key(before[OWNER_KEY_FILE].decode().strip(), gate.services.store) is not None


@pytest.mark.parametrize("tables", [False, True], ids=["no tables", "tables"])
def test_keys_beside_an_empty_postgresql_begin_no_other_house(tmp_path: Path, database: str, tables: bool) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    if tables:
        with open_connection(database) as connection:
            migrate_postgres(connection)
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    message = (
        "the database is empty, but .* has the keys of another one: .* fill it with `qwed copy`; to start over, use an"
    )
    with pytest.raises(VaultError, match=message):
        open_services(Settings(data_dir=directory, database_url=database))
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before
    # Nothing was created there either: the data can still be copied into it.
    copied = subprocess.run(
        [sys.executable, "-m", "qwed.cli", "copy", "--from", f"sqlite:///{directory}", "--to", database],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=_bare(),
    )
    assert copied.returncode == 0, copied.stderr
    close_services(open_services(Settings(data_dir=directory, database_url=database)).services)


@pytest.mark.parametrize("left", ["the vault's key alone", "every key"])
def test_a_first_start_on_postgresql_that_was_cut_short_begins_again(tmp_path: Path, database: str, left: str) -> None:
    """The next start continues from what the first one wrote before it created its keys."""
    settings = Settings(data_dir=tmp_path / "data", database_url=database)
    close_services(open_services(settings).services)
    with open_connection(database) as connection:
        connection.execute("DELETE FROM keys")
        connection.execute("DELETE FROM organisations")
        if left == "the vault's key alone":
            connection.execute("DELETE FROM meta WHERE name = 'vault'")
            (settings.directory / OWNER_KEY_FILE).unlink()
    opened = open_services(settings)
    close_services(opened.services)
    assert opened.owner_key == (settings.directory / OWNER_KEY_FILE).read_text().strip()


def test_a_signing_key_that_others_can_read_stops_the_start_and_gives_the_directory_back(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    (directory / KEY_FILE).chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        open_services(Settings(data_dir=directory))
    (directory / KEY_FILE).chmod(0o600)
    _require_serving(directory)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (KEY_FILE, b"half a", "does not hold a P-256 private key in PEM, without a password"),
        (JWKS_FILE, b"{}", "was changed or damaged"),
        (KEY_FILE, None, "is missing, and this node has signed with it"),
    ],
    ids=["key", "jwks", "lost"],
)
def test_keys_that_cannot_be_used_stop_the_start_with_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    if content is None:
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(content)
    ran = subprocess.run(
        [*SERVE, "--data-dir", str(directory)], capture_output=True, text=True, timeout=60, env=_bare()
    )
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(f"qwed: {directory / name} {said}")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("name", [KEY_FILE, JWKS_FILE, "vault.key"])
def test_a_pipe_in_the_place_of_a_key_is_not_waited_for(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    (directory / name).unlink()
    os.mkfifo(directory / name, 0o600)
    with pytest.raises((OSError, ValueError, RuntimeError), match=f"{name} is not a regular file"):
        open_services(Settings(data_dir=directory))


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    gate = Gate(open_services(Settings(data_dir=tmp_path / "data")))
    close_services(gate.services)
    close_services(gate.services)
    _require_serving(tmp_path / "data")


@pytest.mark.parametrize(
    ("command", "content", "said"),
    [
        ("serve", b"not one page of a database" * 400, "file is not a database"),
        ("keys rotate", None, "unable to open database file"),
    ],
)
def test_a_database_that_cannot_be_opened_stops_the_start_with_one_sentence(
    tmp_path: Path, command: str, content: bytes | None, said: str
) -> None:
    directory = tmp_path / "data"
    _require_serving(directory)
    (directory / FILE_NAME).unlink()
    (directory / FILE_NAME).mkdir() if content is None else (directory / FILE_NAME).write_bytes(content)
    ran = _ran(command, directory)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(f"qwed: the database in {directory} could not be opened: {said}; ")
    assert "Traceback" not in ran.stderr


def _ran(command: str, directory: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "qwed.cli", *command.split(), "--data-dir", str(directory)]
    words += ["--port", "0"] if command == "serve" else []
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=_bare(), **options)


@pytest.mark.parametrize("size", [100, 150_000])
def test_a_disk_without_room_stops_the_first_start_with_one_sentence(tmp_path: Path, size: int) -> None:
    directory = tmp_path / "data"
    ran = _ran("serve", directory, preexec_fn=functools.partial(_limit_files, size))
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("qwed: ")
    _require_serving(directory)


def _limit_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
