"""`qwed serve`: start, refusals and stop."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import SERVE, Server
from tests.support.terminal import Terminal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_stopped_right_after_its_greeting_stops_with_0(tmp_path: Path, number: signal.Signals) -> None:
    server = Server(tmp_path / "data", anew=True)
    server.process.send_signal(number)
    assert server.wait() == 0


@pytest.mark.parametrize("arguments", [("--workers", "2"), ()])
def test_more_than_one_worker_on_sqlite_is_refused_with_the_way_out(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    environment = {"PATH": "/usr/bin:/bin", "QWED_WORKERS": "3"}
    command = [*SERVE, *arguments, "--data-dir", tmp_path / "data"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    sentence = "the embedded store supports one process: use PostgreSQL for more than one worker"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"qwed: {sentence}\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "0"), "QWED_WORKERS: `0` cannot be used: must be a whole number from 1 to 1024"),
        (("--database", "mysql://me:hunter2@host/qwed"), "QWED_DATABASE_URL: what it names cannot be used: "),
    ],
)
def test_what_cannot_be_meant_is_refused_and_no_password_repeated(
    tmp_path: Path, arguments: tuple[str, str], message: str
) -> None:
    ran = subprocess.run([*SERVE, *arguments, "--data-dir", tmp_path / "data"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"qwed: {message}")
    assert "hunter2" not in ran.stderr


def test_a_port_in_use_is_said_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "qwed.cli", "serve", "--port", str(taken.getsockname()[1])]
        ran = subprocess.run([*command, "--data-dir", tmp_path / "data"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "choose another --host or --port" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_data_directory_and_its_secrets_are_readable_by_the_owner_alone(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", anew=True)
    assert server.stop() == 0
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "data").iterdir()}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}, modes
    assert {"owner.key", "signing.key", "signing.jwks", "qwed.db", "lock"} <= set(modes)


def test_the_key_is_not_printed_where_nobody_watches(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", anew=True)
    rest = server.process.stdout
    server.process.send_signal(signal.SIGTERM)
    assert rest is not None
    printed = server.greeting + rest.read()
    server.wait()
    assert server.owner_key not in printed
    assert server.owner_key not in server.log.read_text()


def test_without_a_home_the_data_goes_nowhere(tmp_path: Path) -> None:
    ran = subprocess.run(SERVE, capture_output=True, text=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": ""})
    assert (ran.returncode, list(tmp_path.iterdir())) == (2, [])
    assert ran.stderr == "qwed: HOME must be the whole path of a directory: ~/.qwed/data lies there\n"


def test_a_bad_setting_stops_the_start_and_is_named(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*SERVE, "--data-dir", tmp_path / "data"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "QWED_MAX_STEPS": "many"},
    )
    assert ran.returncode == 2
    assert "QWED_MAX_STEPS" in ran.stderr


def test_at_a_terminal_the_key_is_shown_at_the_first_start_and_at_no_other(tmp_path: Path) -> None:
    for first in (True, False):
        with Terminal(
            ["serve", "--port", "0", "--data-dir", str(tmp_path / "data")], {"PATH": "/usr/bin:/bin"}
        ) as seen:
            seen.until("register an agent and verify an action")
            seen.process.send_signal(signal.SIGTERM)
            assert seen.end() == 0
        key = (tmp_path / "data" / "owner.key").read_text().strip()
        assert (key in seen.seen) is first
        assert ("first start" in seen.seen) is first
