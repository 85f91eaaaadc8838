"""`qwed hook`: no failure lets the tool run. Agents take every exit code but 2 for permission."""

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

from tests.support.fake_server import (
    Behave,
    close_connection,
    drip_body,
    fake_server,
    never_respond,
    respond_with,
    send_bytes,
)
from tests.unit.cli.hook_runner import COMMAND, HookRunner, claude_event, hook_environment, run_process

LIST = claude_event("Bash", {"command": "ls"})
APPROVED = {"decision": "APPROVED", "action_id": "act_1"}
AGENT = {"QWED_AGENT_ID": "agent_1", "QWED_AGENT_TOKEN": "qwed_agent_x"}
ERROR = {"error": {"code": "QWED-SYS-002", "message": "down", "details": {}}}

BAD_SERVERS: dict[str, Behave] = {
    "an error of its own": respond_with(500, ERROR),
    "a yes with an error": respond_with(500, APPROVED),
    "a yes that is forbidden": respond_with(403, APPROVED),
    "a yes elsewhere": respond_with(302, APPROVED, location="http://127.0.0.1:9/"),
    "a yes without an action": respond_with(200, {"decision": "APPROVED"}),
    "a yes of another kind": respond_with(200, {"decision": "YES", "action_id": "act_1"}),
    "a yes that is true": respond_with(200, {"decision": True, "action_id": "act_1"}),
    "a yes in a list": respond_with(200, [APPROVED]),
    "a yes as a text": respond_with(200, "APPROVED"),
    "a yes in html": respond_with(200, raw=b"<html>APPROVED</html>"),
    "a yes to something else": respond_with(
        200, {**APPROVED, "corrected": {"type": "shell_command", "query": "ls -a"}}
    ),
    "nothing": respond_with(200, raw=b""),
    "nothing to say": respond_with(204, raw=b""),
    "null": respond_with(200, None),
    "an object without a decision": respond_with(200, {}),
    "an error that is no object": respond_with(200, {"decision": "DENIED", "error": "no"}),
    "rubbish": send_bytes(b"\x00\xff\x00\xffAPPROVED"),
    "half a yes": send_bytes(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"decision": "APPROVED", "action_id"'),
    "too much to do": respond_with(429, {**ERROR, "decision": "DENIED"}, retry_after="60"),
    "an unknown agent": respond_with(
        404, {"decision": "DENIED", "error": {"code": "QWED-AGENT-001", "message": "who?"}}
    ),
    "deep rubbish": respond_with(200, raw=b"[" * 100_000),
    "an empty hand": close_connection,
}


@pytest.mark.parametrize("name", BAD_SERVERS)
def test_only_a_yes_of_the_protocol_is_a_yes(name: str, hook: HookRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(BAD_SERVERS[name]) as server:
        monkeypatch.setenv("QWED_BASE_URL", server.url)
        output = hook(LIST)
    assert output.code == 2
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert len(server.heard) >= 1


def test_an_impostor_that_speaks_the_protocol_would_be_believed(
    hook: HookRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_server(respond_with(200, APPROVED)) as server:
        monkeypatch.setenv("QWED_BASE_URL", server.url)
        assert hook(LIST).code == 0
    sent = json.loads(server.heard[0].body)
    assert sent["action"] == {"type": "shell_command", "query": "cd /home/dev/app || exit\nls"}
    assert sent["context"] == {"conversation_id": LIST["session_id"], "step_number": 1}


def test_nobody_there_is_a_no_and_the_step_is_not_used(hook: HookRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:9")
    output = hook(LIST)
    assert (output.code, "request to http" in output.err) == (2, True)
    assert hook.step == 0


@pytest.mark.parametrize("behave", [close_connection, respond_with(500, ERROR)], ids=["no answer", "an error"])
def test_a_step_of_which_nobody_knows_is_left_out(
    hook: HookRunner, monkeypatch: pytest.MonkeyPatch, behave: Behave
) -> None:
    with fake_server(behave) as server:
        monkeypatch.setenv("QWED_BASE_URL", server.url)
        assert [hook(LIST).code, hook(LIST).code] == [2, 2]
    assert hook.step == 2


def test_a_wrong_token_is_a_no(hook: HookRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("qwed_agent_wrong", "wr\u00f6ng", "a\nb"):
        monkeypatch.setenv("QWED_AGENT_TOKEN", token)
        output = hook(LIST)
        assert (output.code, token in output.err) == (2, False)


# Errors in our own code


@pytest.mark.parametrize(
    "error",
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
@pytest.mark.parametrize(
    "target", ["input_formats.read_call", "actions.action_of", "decide.decide", "decide.locked_session"]
)
def test_a_surprise_is_a_no(
    hook: HookRunner, monkeypatch: pytest.MonkeyPatch, target: str, error: BaseException
) -> None:
    def fails(*_args: Any, **_named: Any) -> Any:
        raise error

    monkeypatch.setattr(f"qwed_sdk.hook.{target}", fails)
    output = hook(LIST)
    assert (output.code, output.out, output.err.count("\n")) == (2, "", 1)
    assert output.err.startswith("qwed: ")


@pytest.mark.parametrize(
    "module", ["qwed_sdk.hook.input_formats", "qwed_sdk.hook.decide", "qwed_sdk.hook.output", "qwed_sdk.errors"]
)
def test_a_part_that_is_missing_is_a_no(hook: HookRunner, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert hook(LIST).code == 2


def test_a_library_that_is_broken_is_a_no(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise RuntimeError('broken')\n")
    remote = AGENT | {"QWED_BASE_URL": "https://qwed.invalid"}
    output = run_process(LIST, env=hook_environment(tmp_path, PYTHONPATH=str(tmp_path), **remote))
    assert (output.code, "RuntimeError" in output.err) == (2, True)


# Stored sessions


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
def test_a_count_that_cannot_be_read_is_a_no(hook: HookRunner, content: str) -> None:
    assert hook(LIST).code == 0
    hook.files[0].write_text(content)
    output = hook(LIST)
    assert output.code == 2
    assert f"{hook.files[0]} is damaged: delete it" in output.err


def test_a_count_that_leads_elsewhere_is_a_no(hook: HookRunner) -> None:
    assert hook(LIST).code == 0
    (file,) = hook.files
    elsewhere = file.rename(hook.home / "elsewhere.json")
    file.symlink_to(elsewhere)
    assert hook(LIST).code == 2


@pytest.mark.parametrize("home", ["/dev/null", "", "somewhere", "/proc/1/none"])
def test_a_home_that_is_none_is_a_no(hook: HookRunner, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    output = hook(LIST)
    assert (output.code, output.err.count("\n")) == (2, 1)


def test_a_full_disk_is_a_no(hook: HookRunner) -> None:
    env = hook_environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    full = ("/bin/sh", "-c", 'ulimit -f 0; exec "$0" "$@"')
    assert run_process(LIST, env=env, command=(*full, *COMMAND)).code == 2


# Timeouts, signals and closed descriptors


@pytest.mark.parametrize("behave", [never_respond, drip_body], ids=["silent", "dripping"])
def test_a_server_that_takes_its_time_is_a_no(tmp_path: Path, behave: Behave) -> None:
    with fake_server(behave) as server:
        output = run_process(LIST, "--timeout", "1", env=hook_environment(tmp_path, QWED_BASE_URL=server.url, **AGENT))
    assert (output.code, output.err.count("\n")) == (2, 1)


def test_an_input_that_never_ends_is_a_no(tmp_path: Path) -> None:
    waiting, line = os.pipe()
    try:
        done = subprocess.run(
            [*COMMAND, "--timeout", "0.3"],
            stdin=waiting,
            env=hook_environment(tmp_path),
            capture_output=True,
            timeout=60,
        )
    finally:
        os.close(waiting)
        os.close(line)
    assert done.returncode == 2
    assert done.stderr == b"qwed: no decision within 0.3 seconds, so the tool call is denied\n"


def test_a_session_that_another_process_holds_is_a_no_in_the_end(hook: HookRunner) -> None:
    assert hook(LIST).code == 0
    env = hook_environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    with hook.files[0].with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = run_process(LIST, "--timeout", "1", env=env)
    assert (output.code, "no decision within 1 seconds" in output.err) == (2, True)


def wait_for_request(server: Any) -> None:
    """Return when the hook has sent its request."""
    moment = threading.Event()
    while not server.heard:
        moment.wait(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_hook_that_is_stopped_says_no(tmp_path: Path, number: signal.Signals) -> None:
    with fake_server(never_respond) as server:
        env = hook_environment(tmp_path, QWED_BASE_URL=server.url, **AGENT)
        with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(json.dumps(LIST))
            process.stdin.close()
            wait_for_request(server)
            process.send_signal(number)
            message = process.stderr.read()
    assert (process.returncode, message) == (2, f"qwed: stopped by {number.name}\n")
    stored = json.loads(next((tmp_path / ".qwed" / "hook").glob("*.json")).read_text())
    assert list(stored["steps"].values()) == [1]


CLOSED = {"standard input": "<&-", "standard output": ">&-", "standard error": "2>&-", "all": "<&- >&- 2>&-"}


@pytest.mark.parametrize("name", CLOSED)
def test_a_hook_that_nobody_listens_to_says_no_all_the_same(tmp_path: Path, name: str) -> None:
    closing = ("/bin/sh", "-c", f'exec "$0" "$@" {CLOSED[name]}')
    output = run_process("{", env=hook_environment(tmp_path, **AGENT), command=(*closing, *COMMAND))
    assert output.code == 2


def test_a_terminal_is_told_what_to_do(tmp_path: Path) -> None:
    master, terminal = os.openpty()
    try:
        done = subprocess.run(COMMAND, stdin=terminal, env=hook_environment(tmp_path), capture_output=True, timeout=60)
    finally:
        os.close(master)
        os.close(terminal)
    assert (done.returncode, b"pipe one tool call to standard input" in done.stderr) == (2, True)


def test_a_hook_that_cannot_be_loaded_is_a_no() -> None:
    program = "import sys; sys.modules['qwed.cli.hook'] = None; from qwed.cli import main; sys.exit(main(['hook']))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("qwed: the hook cannot be loaded, so the tool call is denied")
