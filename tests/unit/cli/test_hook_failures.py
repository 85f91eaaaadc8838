"""`qwed hook`: whatever goes wrong, the tool does not run. Agents take every end but exit code 2 for a yes."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.impostor import Behave, drips, hangs_up, impostor, keeps_silent, says, sends
from tests.unit.cli.hooking import COMMAND, Hook, claude, environment, run

LIST = claude("Bash", {"command": "ls"})
APPROVED = {"decision": "APPROVED", "action_id": "act_1"}
AGENT = {"QWED_AGENT_ID": "agent_1", "QWED_AGENT_TOKEN": "qwed_agent_x"}
ERROR = {"error": {"code": "QWED-SYS-002", "message": "down", "details": {}}}

IMPOSTORS: dict[str, Behave] = {
    "an error of its own": says(500, ERROR),
    "a yes with an error": says(500, APPROVED),
    "a yes that is forbidden": says(403, APPROVED),
    "a yes elsewhere": says(302, APPROVED, location="http://127.0.0.1:9/"),
    "a yes without an action": says(200, {"decision": "APPROVED"}),
    "a yes of another kind": says(200, {"decision": "YES", "action_id": "act_1"}),
    "a yes that is true": says(200, {"decision": True, "action_id": "act_1"}),
    "a yes in a list": says(200, [APPROVED]),
    "a yes as a text": says(200, "APPROVED"),
    "a yes in html": says(200, raw=b"<html>APPROVED</html>"),
    "a yes to something else": says(200, {**APPROVED, "corrected": {"type": "shell_command", "query": "ls -a"}}),
    "nothing": says(200, raw=b""),
    "nothing to say": says(204, raw=b""),
    "null": says(200, None),
    "an object without a decision": says(200, {}),
    "an error that is no object": says(200, {"decision": "DENIED", "error": "no"}),
    "rubbish": sends(b"\x00\xff\x00\xffAPPROVED"),
    "half a yes": sends(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"decision": "APPROVED", "action_id"'),
    "too much to do": says(429, {**ERROR, "decision": "DENIED"}, retry_after="60"),
    "an unknown agent": says(404, {"decision": "DENIED", "error": {"code": "QWED-AGENT-001", "message": "who?"}}),
    "deep rubbish": says(200, raw=b"[" * 100_000),
    "an empty hand": hangs_up,
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_only_a_yes_of_the_protocol_is_a_yes(name: str, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    with impostor(IMPOSTORS[name]) as standing:
        monkeypatch.setenv("QWED_BASE_URL", standing.url)
        said = hook(LIST)
    assert said.code == 2
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert len(standing.heard) >= 1


def test_an_impostor_that_speaks_the_protocol_would_be_believed(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    with impostor(says(200, APPROVED)) as standing:
        monkeypatch.setenv("QWED_BASE_URL", standing.url)
        assert hook(LIST).code == 0
    sent = json.loads(standing.heard[0].body)
    assert sent["action"] == {"type": "shell_command", "query": "cd /home/dev/app\nls"}
    assert sent["context"] == {"conversation_id": LIST["session_id"], "step_number": 1}


def test_nobody_there_is_a_no_and_the_step_is_not_used(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:9")
    said = hook(LIST)
    assert (said.code, "could not be asked" in said.err) == (2, True)
    assert hook.step == 0


@pytest.mark.parametrize("behave", [hangs_up, says(500, ERROR)], ids=["no answer", "an error"])
def test_a_step_of_which_nobody_knows_is_left_out(hook: Hook, monkeypatch: pytest.MonkeyPatch, behave: Behave) -> None:
    with impostor(behave) as standing:
        monkeypatch.setenv("QWED_BASE_URL", standing.url)
        assert [hook(LIST).code, hook(LIST).code] == [2, 2]
    assert hook.step == 2


def test_a_wrong_token_is_a_no(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("qwed_agent_wrong", "wr\u00f6ng", "a\nb"):
        monkeypatch.setenv("QWED_AGENT_TOKEN", token)
        said = hook(LIST)
        assert (said.code, token in said.err) == (2, False)


# Our own surprises


@pytest.mark.parametrize(
    "surprise",
    [
        RuntimeError("secret"),
        KeyboardInterrupt(),
        SystemExit(0),
        SystemExit(None),
        SystemExit("secret"),
        GeneratorExit(),
        MemoryError(),
        RecursionError(),
        OSError(28, "secret"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "secret"),
        BaseExceptionGroup("secret", [KeyboardInterrupt()]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("place", ["forms.read_call", "actions.action_of", "asking.decide", "steps.directory"])
def test_a_surprise_is_a_no(hook: Hook, monkeypatch: pytest.MonkeyPatch, place: str, surprise: BaseException) -> None:
    def fails(*_args: Any, **_named: Any) -> Any:
        raise surprise

    monkeypatch.setattr(f"qwed_sdk.hook.{place}", fails)
    said = hook(LIST)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("qwed: ")


@pytest.mark.parametrize("module", ["qwed_sdk.hook.forms", "qwed_sdk.hook.call", "qwed_sdk.client", "qwed_sdk.errors"])
def test_a_part_that_is_missing_is_a_no(hook: Hook, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert hook(LIST).code == 2


def test_a_library_that_is_broken_is_a_no(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise RuntimeError('broken')\n")
    said = run(LIST, env=environment(tmp_path, PYTHONPATH=str(tmp_path), **AGENT))
    assert (said.code, "RuntimeError" in said.err) == (2, True)


# What is kept of a session


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        "[]",
        '{"steps": {}}',
        '{"steps": {"a": -1}, "calls": {}, "waiting": {}}',
        '{"steps": {"a": true}, "calls": {}, "waiting": {}}',
        '{"steps": {"a": "1"}, "calls": {}, "waiting": {}}',
        '{"steps": {"a": 1}, "calls": [], "waiting": {}}',
        '{"steps": {"a": 1}, "calls": {"a": 1}, "waiting": {}}',
        "[" * 100_000,
        " " * 300_000,
    ],
    ids=lambda content: content[:30],
)
def test_a_count_that_cannot_be_read_is_a_no(hook: Hook, content: str) -> None:
    assert hook(LIST).code == 0
    hook.files[0].write_text(content)
    said = hook(LIST)
    assert said.code == 2
    assert f"{hook.files[0]} is broken: delete it" in said.err


def test_a_count_that_leads_elsewhere_is_a_no(hook: Hook) -> None:
    assert hook(LIST).code == 0
    (file,) = hook.files
    elsewhere = file.rename(hook.home / "elsewhere.json")
    file.symlink_to(elsewhere)
    assert hook(LIST).code == 2


@pytest.mark.parametrize("home", ["/dev/null", "", "somewhere", "/proc/1/none"])
def test_a_home_that_is_none_is_a_no(hook: Hook, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    said = hook(LIST)
    assert (said.code, said.err.count("\n")) == (2, 1)


def test_a_full_disk_is_a_no(hook: Hook) -> None:
    env = environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    full = ("/bin/sh", "-c", 'ulimit -f 0; exec "$0" "$@"')
    assert run(LIST, env=env, command=(*full, *COMMAND)).code == 2


# Whatever would end the process itself


@pytest.mark.parametrize("behave", [keeps_silent, drips], ids=["silent", "dripping"])
def test_a_server_that_takes_its_time_is_a_no(tmp_path: Path, behave: Behave) -> None:
    with impostor(behave) as standing:
        said = run(LIST, "--timeout", "1", env=environment(tmp_path, QWED_BASE_URL=standing.url, **AGENT))
    assert (said.code, said.err.count("\n")) == (2, 1)


def test_an_input_that_never_ends_is_a_no(tmp_path: Path) -> None:
    waiting, line = os.pipe()
    try:
        done = subprocess.run(
            [*COMMAND, "--timeout", "0.3"], stdin=waiting, env=environment(tmp_path), capture_output=True, timeout=60
        )
    finally:
        os.close(waiting)
        os.close(line)
    assert done.returncode == 2
    assert done.stderr == b"qwed: no decision within 0.3 seconds, so the answer is no\n"


def test_a_session_that_another_process_holds_is_a_no_in_the_end(hook: Hook) -> None:
    assert hook(LIST).code == 0
    env = environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    with hook.files[0].with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = run(LIST, "--timeout", "1", env=env)
    assert (said.code, "no decision within 1 seconds" in said.err) == (2, True)


def heard_by(standing: Any) -> None:
    """Come back when the hook has asked."""
    moment = threading.Event()
    while not standing.heard:
        moment.wait(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_hook_that_is_stopped_says_no(tmp_path: Path, number: signal.Signals) -> None:
    with impostor(keeps_silent) as standing:
        env = environment(tmp_path, QWED_BASE_URL=standing.url, **AGENT)
        with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(json.dumps(LIST))
            process.stdin.close()
            heard_by(standing)
            process.send_signal(number)
            told = process.stderr.read()
    assert (process.returncode, told) == (2, f"qwed: stopped by {number.name}\n")
    kept = json.loads(next((tmp_path / ".qwed" / "hook").glob("*.json")).read_text())
    assert list(kept["steps"].values()) == [1]


CLOSED = {"standard input": "<&-", "standard output": ">&-", "standard error": "2>&-", "all": "<&- >&- 2>&-"}


@pytest.mark.parametrize("name", CLOSED)
def test_a_hook_that_nobody_listens_to_says_no_all_the_same(tmp_path: Path, name: str) -> None:
    closing = ("/bin/sh", "-c", f'exec "$0" "$@" {CLOSED[name]}')
    said = run("{", env=environment(tmp_path, **AGENT), command=(*closing, *COMMAND))
    assert said.code == 2


def test_a_terminal_is_told_what_to_do(tmp_path: Path) -> None:
    master, terminal = os.openpty()
    try:
        done = subprocess.run(COMMAND, stdin=terminal, env=environment(tmp_path), capture_output=True, timeout=60)
    finally:
        os.close(master)
        os.close(terminal)
    assert (done.returncode, b"pipe one tool call to standard input" in done.stderr) == (2, True)


def test_a_hook_that_cannot_be_loaded_is_a_no() -> None:
    program = "import sys; sys.modules['qwed.cli.hook'] = None; from qwed.cli import main; sys.exit(main(['hook']))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("qwed: the hook cannot be loaded, so the answer is no")
