"""Processes that are born with their imports behind them differ in nothing else from those that start anew."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fork_server import ForkedProcess, can_be_forked, fork_process
from tests.support.server import SERVE

ECHO = """
import json, os, sys, threading
print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), __name__, sys.stdout.isatty()]), flush=True)
print("told", file=sys.stderr)
threading.Thread(target=lambda: print("a last word")).start()
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "echoing.py").write_text(ECHO)
    (tmp_path / "waiting.py").write_text("print('here', flush=True)\nimport time\ntime.sleep(600)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(module: str, *arguments: str, **environment: str) -> ForkedProcess:
    with Path("errors").open("a") as errors:
        return fork_process([sys.executable, "-m", module, *arguments], environment, errors)


def said_by(process: ForkedProcess) -> str:
    assert process.stdout is not None
    with process.stdout as stdout:
        return stdout.read()


@pytest.mark.parametrize("code", [0, 3])
def test_it_has_its_own_arguments_environment_directory_streams_and_end(place: Path, code: int) -> None:
    given = {"ONLY": "this", "LC_ALL": "C.UTF-8"}
    process = begun("echoing", str(code), "--more", **given)
    command = [sys.executable, "-m", "echoing", str(code), "--more"]
    other = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert said_by(process) == other.stdout
    assert (process.wait(60), process.poll()) == (code, code) == (other.returncode, code)
    assert Path("errors").read_text() == other.stderr == "told\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_it_would_any_other(place: Path, number: signal.Signals) -> None:
    process = begun("waiting")
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    process.send_signal(number)
    assert process.wait(60) == -number
    process.kill()
    process.stdout.close()


def test_it_is_no_child_that_keeps_the_streams_of_others_open(place: Path) -> None:
    first, second = begun("waiting"), begun("waiting")
    assert first.pid != second.pid != os.getpid()
    first.kill()
    assert said_by(first) in ("", "here\n")
    second.kill()
    assert said_by(second) in ("", "here\n")


@pytest.mark.parametrize(
    ("command", "environment", "can"),
    [
        (SERVE, {}, True),
        (SERVE, {"QWED_MAX_STEPS": "3"}, True),
        (SERVE, {"PYTHONPATH": "elsewhere"}, False),
        (SERVE, {"PYTHONSTARTUP": "elsewhere.py"}, False),
        ((sys.executable, "-c", "pass"), {}, False),
        ((sys.executable, "-I", "-m", "qwed.cli"), {}, False),
        (("elsewhere/python", "-m", "qwed.cli"), {}, False),
    ],
)
def test_what_an_interpreter_reads_at_its_start_needs_one_that_starts(
    command: tuple[str, ...], environment: dict[str, str], can: bool
) -> None:
    assert can_be_forked(command, environment) is can
