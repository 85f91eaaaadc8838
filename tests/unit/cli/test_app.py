"""All commands: help, JSON output, exit codes and quiet termination."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import qwed
from qwed.cli import main
from qwed.cli.app import iter_commands
from tests.unit.cli.history import History, create_history

Capture = pytest.CaptureFixture[str]
QWED = (sys.executable, "-m", "qwed.cli")
COMMANDS = [path for path, _command in iter_commands()]
GROUPS = sorted({path.rsplit(" ", 1)[0] for path in COMMANDS if path.count(" ") > 1})
HEAVY = {"cryptography", "httpx", "msgspec", "pydantic", "qwed_sdk", "rich", "starlette", "sympy", "uvicorn", "z3"}
"""Libraries that are too slow to import for `--help`."""

each_command = pytest.mark.parametrize("path", COMMANDS)


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_DATA_DIR", "QWED_BASE_URL", "QWED_API_KEY", "QWED_SIGNING_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


def run(capsys: Capture, *arguments: object) -> Ran:
    code = main([str(argument) for argument in arguments])
    return Ran(code, *capsys.readouterr())


@pytest.mark.parametrize("home", ["", "somewhere"])
@pytest.mark.parametrize(
    "command",
    ["keys list", "agents list", "audit verify", "cache stats", "cache clear --yes", "doctor"],
)
def test_without_a_home_nothing_is_looked_for_or_left_elsewhere(
    command: str, home: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home)
    ran = run(capsys, *command.split())
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])
    assert ran.err.startswith("qwed: HOME must be the whole path of a directory: ~/.qwed/")


@pytest.mark.parametrize("command", ["serve", "keys list", "agents list", "audit verify", "doctor"])
def test_an_empty_name_of_a_data_directory_is_not_this_directory(
    command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QWED_DATA_DIR", "")
    ran = run(capsys, *command.split())
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])
    assert ran.err == "qwed: QWED_DATA_DIR: `` cannot be used: the path is empty: unset the variable or name a path\n"


# Every command


@each_command
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_its_help(path: str, option: str, capsys: Capture) -> None:
    ran = run(capsys, *path.split()[1:], option)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: {path} ")


@each_command
def test_every_command_refuses_an_option_it_does_not_know(path: str, capfd: Capture) -> None:
    ran = run(capfd, *path.split()[1:], "--no-such-option")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("qwed: ")
    assert "--no-such-option" in ran.err
    assert f"`{path} --help`" in ran.err
    assert ran.err.count("\n") == 1


def test_every_command_prints_json_when_asked() -> None:
    named = {path: {name for param in command.params for name in param.opts} for path, command in iter_commands()}
    assert [path for path, names in named.items() if "--json" not in names and path != "qwed"] == []


def test_every_option_and_argument_says_what_it_is_for() -> None:
    silent = [(path, param.name) for path, command in iter_commands() for param in command.params if not param.help]
    assert silent == []


@pytest.mark.parametrize("path", ["qwed", *GROUPS])
def test_a_group_without_a_command_shows_its_commands_and_is_no_success(path: str, capsys: Capture) -> None:
    ran = run(capsys, *path.split()[1:])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Usage: {path} ")
    assert "Commands:" in ran.err


def test_help_waits_for_no_heavy_library() -> None:
    program = (
        "import sys; from qwed.cli import main; main(['--help']); print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.splitlines()[-1].split()) == set()


# JSON


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A history that no test changes."""
    return create_history(tmp_path_factory.mktemp("history"))


@pytest.fixture
def data(history: History, tmp_path: Path) -> Path:
    """A data directory that a test may change."""
    return history.copy(tmp_path).data


def one_value(ran: Ran) -> Any:
    """Return the single JSON value that was printed."""
    assert ran.err == ""
    assert ran.out.count("\n") == 1
    assert ran.out.isascii()
    return json.loads(ran.out)


def test_keys_as_json(data: Path, capsys: Capture) -> None:
    listed = one_value(run(capsys, "keys", "list", "--data-dir", data, "--json"))
    assert listed["issuer"].startswith("did:qwed:node:")
    assert [key["state"] for key in listed["keys"]] == ["signs", *["retired"] * (len(listed["keys"]) - 1)]
    rotated = one_value(run(capsys, "keys", "rotate", "--data-dir", data, "--json"))
    assert rotated["issuer"] == listed["issuer"]
    assert [key["kid"] for key in rotated["keys"]][1:] == [key["kid"] for key in listed["keys"]]


def test_the_log_as_json(history: History, tmp_path: Path, capsys: Capture) -> None:
    where = ("--data-dir", history.data)
    report = one_value(run(capsys, "audit", "verify", *where, "--json"))
    assert (report["valid"], report["count"], report["findings"]) == (True, 0, [])
    whose = (*where, "--organisation", history.first)
    head = one_value(run(capsys, "audit", "head", *whose, "--json"))
    assert head == one_value(run(capsys, "audit", "head", *whose))
    file = tmp_path / "log.jsonl"
    written = one_value(run(capsys, "audit", "export", *whose, "--output", file, "--json"))
    lines = file.read_text().splitlines()
    assert written == {"output": str(file), "organisation": history.first, "lines": len(lines), "unreadable": 0}


def test_an_export_to_standard_output_is_json_lines_and_nothing_else(history: History, capsys: Capture) -> None:
    ran = run(capsys, "audit", "export", "--data-dir", history.data, "--organisation", history.first, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "qwed: --json needs --output: standard output already holds the log\n"


def test_an_erasure_as_json(data: Path, capsys: Capture) -> None:
    erase = ("audit", "erase", "--yes", "--json", "--data-dir", data, "--subject")
    assert one_value(run(capsys, *erase, "somebody who never was")) == {"erased": False}


def test_where_a_server_listens_as_json(tmp_path: Path) -> None:
    command = [*QWED, "serve", "--port", "0", "--data-dir", str(tmp_path / "data"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())
        server.send_signal(signal.SIGTERM)
        assert server.stdout.read() == ""
    assert server.returncode == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address.pop("url"))
    assert address == {"data_dir": str(tmp_path / "data"), "owner_key_file": str(tmp_path / "data" / "owner.key")}


# Called wrongly


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("adit", "no such command `adit`: did you mean `audit`? (see `qwed --help`)"),
        ("audit verfy", "no such command `verfy`: did you mean `verify`? (see `qwed audit --help`)"),
        ("frobnicate", "no such command `frobnicate` (see `qwed --help`)"),
        ("serve --prt 1", "no such option `--prt`: did you mean --port? (see `qwed serve --help`)"),
        ("serve --port many", "`--port` does not take `many`: it should be a valid integer (see `qwed serve --help`)"),
        ("serve now", "too many arguments: `now` (see `qwed serve --help`)"),
        ("serve --port", "option `--port` requires an argument (see `qwed serve --help`)"),
        ("serve --workers 2", "the embedded store supports one process: use PostgreSQL for more than one worker"),
        ("serve --workers 0", "QWED_WORKERS: `0` cannot be used: must be a whole number from 1 to 1024"),
        (
            "serve --database mysql://me:hunter2@db/qwed",
            "QWED_DATABASE_URL: what it names cannot be used: `mysql` addresses are not supported: "
            "use PostgreSQL, such as postgresql://user@host/qwed, or leave it unset for SQLite in the data directory",
        ),
        (
            "serve --database postgresql://me:hunter2@db",
            "QWED_DATABASE_URL: what it names cannot be used: must name a database, such as "
            "postgresql://user@host/qwed",
        ),
        (
            "serve --redis http://me:hunter2@host",
            "QWED_REDIS_URL: what it names cannot be used: must be an address such as "
            "redis://host:6379/0, rediss://host or unix:///path",
        ),
        ("serve --host=", "the host is empty: leave out --host and QWED_HOST for 127.0.0.1, or give an address"),
        (
            "serve --data-dir=",
            "invalid value for `--data-dir`: the directory name is empty (see `qwed serve --help`)",
        ),
        ("audit erase", "missing option `--subject` (see `qwed audit erase --help`)"),
        ("attestation verify", "missing argument `TOKEN|FILE|-` (see `qwed attestation verify --help`)"),
        ("attestation verify a.b.c --jwks f --url u", "give either --jwks or --url, not both"),
        ("audit verify --data-dir d --export f", "give either --data-dir or --export, not both"),
        ("audit verify --json=yes", "option `--json` does not take a value (see `qwed audit verify --help`)"),
        (
            "--show-completion csh",
            "`--show-completion` does not take `csh`: `csh` is not one of `bash`, `zsh`, `fish` (see `qwed --help`)",
        ),
    ],
)
def test_a_wrong_call_is_told_in_one_sentence(typed: str, message: str, capsys: Capture) -> None:
    assert run(capsys, *typed.split()) == (2, "", f"qwed: {message}\n")


def test_the_version_is_told(capsys: Capture) -> None:
    assert run(capsys, "--version") == (0, f"qwed {qwed.__version__}\n", "")


# How it ends


def test_a_command_that_is_stopped_ends_quietly_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*QWED, "attestation", "verify", str(pipe), "--jwks", str(pipe)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Opening blocks until the command opens the pipe, which then has nothing to read.
    with pipe.open("wb"):
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 130


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--show-completion", "bash"], ["audit", "verify"]])
def test_a_reader_who_is_gone_is_no_error_of_ours(arguments: list[str], history: History) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        environment = os.environ | {"QWED_DATA_DIR": str(history.data)}
        ran = subprocess.run([*QWED, *arguments], stdout=writing, stderr=subprocess.PIPE, env=environment)
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_a_full_disk_is_told_and_is_no_success() -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([*QWED, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (2, "qwed: No space left on device\n")


def test_a_command_without_a_standard_output_still_has_its_exit_code(history: History) -> None:
    command = f'"{sys.executable}" -m qwed.cli audit verify --data-dir "{history.data}" >&-'
    ran = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "redirected", "code"),
    [
        ("audit export --data-dir DATA", ">&-", 2),
        ("report agent_x --url http://127.0.0.1:9", ">&-", 2),
        ("audit verify --data-dir DATA", "2>&-", 0),
        ("approvals list --url http://127.0.0.1:9", "2>/dev/full", 2),
        ("--nonsense", "2>/dev/full", 2),
    ],
)
def test_a_stream_that_nobody_reads_changes_no_exit_code(
    command: str, redirected: str, code: int, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_k")
    shell = f'"{sys.executable}" -m qwed.cli {command} {redirected}'.replace("DATA", str(history.data))
    ran = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr


def test_nothing_that_is_opened_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    output = tmp_path / "output"
    program = f"""
import os
from qwed.cli import main
assert main(["--version"]) == 0
number = os.open({str(output)!r}, os.O_RDWR | os.O_CREAT)
lost = 0
for stream in (1, 2):
    try:
        os.write(stream, b"astray")
    except OSError:
        lost += 1
os.write(number, f"{{number > 2}} {{lost}}".encode())
"""
    shell = ["/bin/sh", "-c", '"$0" -c "$1" <&- >&- 2>&-', sys.executable, program]
    assert subprocess.run(shell, check=False).returncode == 0
    assert output.read_text() == "True 2"
