"""`qwed doctor`: each check reports its state and advice, and no secret is printed."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import httpx
import pytest

import qwed
from qwed.cli import main
from qwed.settings import CLIENT_VARIABLES, Settings, variable_of
from qwed_sdk.transport import is_loopback_url
from tests.conftest import Register
from tests.support.server import Server


class Ran(NamedTuple):
    """Result of the command: exit code, output and checks."""

    code: int
    out: str
    checks: list[dict[str, str]]

    def of(self, name: str) -> list[tuple[str, str, str]]:
        """Return state, message and advice of every check with this name."""
        return [(check["state"], check["message"], check["advice"]) for check in self.checks if check["name"] == name]

    @property
    def broken(self) -> list[str]:
        """Return the names of failed checks."""
        return [check["name"] for check in self.checks if check["state"] == "broken"]


Run = Callable[..., Ran]
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command with a home of its own and only the given variables."""
    for name in [*CLIENT_VARIABLES, *map(variable_of, Settings.__dataclass_fields__)]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def call(*arguments: object, **variables: str) -> Ran:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        code = main(["doctor", *map(str, arguments), "--json"])
        out = capsys.readouterr().out
        report = json.loads(out)
        assert report["well"] is (code == 0)
        return Ran(code, out, report["checks"])

    return call


# A healthy machine


def test_where_everything_is_in_place_nothing_is_broken(server: Server, run: Run) -> None:
    ran = run("--url", server.base_url, "--data-dir", server.data_dir)
    assert (ran.code, ran.broken) == (0, [])
    assert ran.of("data directory") == [("fine", f"{server.data_dir}, in use by a running server", "")]
    assert ran.of("secrets") == [("fine", "owner.key, signing.key, vault.key: readable only by you", "")]
    assert ran.of("key") == [("fine", "accepted: the role is owner", "")]
    assert ran.of("clock") == [("fine", "the same as the server's", "")]
    (state, message, _advice), *others = ran.of("server")
    assert (state, others) == ("fine", [])
    assert re.fullmatch(rf"{server.base_url}: qwed {qwed.__version__}, answers in \d+\.\d ms", message)


def test_the_parts_of_a_server_that_is_ready_are_named(server: Server, api: httpx.Client, run: Run) -> None:
    # An engine that has answered has started.
    assert api.post("/verify/logic", json={"query": "(GT x 1)"}).json()["status"] == "VERIFIED"
    ran = run("--url", server.base_url)
    assert ran.of("readiness") == [("fine", "store ready, engines ready, rate_limiter memory, witness none", "")]


def test_looking_changes_nothing(server: Server, api: httpx.Client, run: Run) -> None:
    key = api.post("/keys", json={"name": "looking", "role": "approver"}).json()["key"]
    before = api.get("/audit/head").json()["size"]
    assert run("--url", server.base_url, QWED_API_KEY=key).code == 0
    assert api.get("/audit/head").json()["size"] == before


def test_no_secret_is_printed(server: Server, register: Register, run: Run) -> None:
    agent = register()
    ran = run(
        "--url",
        server.base_url,
        "--data-dir",
        server.data_dir,
        QWED_API_KEY=server.owner_key,
        QWED_AGENT_ID=agent["agent_id"],
        QWED_AGENT_TOKEN=agent["agent_token"],
        QWED_LLM_API_KEY="sk-of-somebody",
        QWED_LLM_BASE_URL="https://user:hidden@host/v1?key=hidden",
        QWED_TOKEN="hidden",
    )
    for secret in (server.owner_key, agent["agent_token"], "sk-of-somebody", "hidden"):
        assert secret not in ran.out
    assert ran.of("settings")[0][:2] == ("broken", "QWED_LLM_BASE_URL has an invalid value")


def test_every_check_is_one_line_for_people(
    server: Server, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = run("--url", server.base_url, "--data-dir", server.data_dir).checks
    assert main(["doctor", "--url", server.base_url, "--data-dir", str(server.data_dir)]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    marks = {"fine": "✓", "warning": "!", "broken": "✗"}
    assert [line.split()[0] for line in lines] == [marks[check["state"]] for check in checks]
    assert last.startswith("nothing is broken")


def test_it_needs_nothing_but_the_light_install() -> None:
    """Make every library of the extras impossible to import."""
    heavy = (
        "starlette",
        "uvicorn",
        "sqlglot",
        "sympy",
        "z3",
        "duckdb",
        "PIL",
        "lark",
        "pint",
        "rapidfuzz",
        "reportlab",
    )
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({heavy!r})); "
        f"from qwed.cli import main; sys.exit(main(['doctor', '--url', {NOWHERE!r}, '--json']))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert {check["name"] for check in json.loads(ran.stdout)["checks"]} >= {
        "python",
        "workers",
        "startup hooks",
        "server",
    }


# What is installed


def test_a_missing_extra_is_a_warning_that_names_the_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = metadata.version

    def version(name: str) -> str:
        if name in ("uvicorn", "z3-solver", "eyecite", "holidays"):
            raise metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(metadata, "version", version)
    ran = run()
    assert ran.of("extra server") == [
        ("warning", "not installed: uvicorn", "run `pip install 'qwed[server]'` to run `qwed serve`")
    ]
    assert ran.of("extra engines") == [
        ("warning", "not installed: z3-solver", "run `pip install 'qwed[engines]'` to verify without a server")
    ]
    # `citations` contains all of `legal`; a package that both lack is reported once.
    assert ran.of("extra citations") == [
        ("warning", "not installed: eyecite", "run `pip install 'qwed[citations]'` to find citations in running text")
    ]
    assert [message for _state, message, _advice in ran.of("extra legal")] == ["not installed: holidays"]


def test_a_startup_hook_that_nobody_knows_is_broken(run: Run, tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text("print('here I am')\n")
    ran = run(PYTHONSTARTUP=str(hook))
    (state, message, advice), *others = ran.of("startup hooks")
    assert (ran.code, state, others) == (1, "broken", [])
    assert str(hook) in message
    accepted = advice.rpartition("=")[2]
    assert run(PYTHONSTARTUP=str(hook), QWED_STARTUP_HOOKS_ALLOW=accepted).of("startup hooks")[0][0] == "fine"


# Environment variables


def test_a_variable_that_sets_nothing_is_a_warning_with_what_was_meant_perhaps(run: Run) -> None:
    ran = run(QWED_API_KEI="x", QWED_SOMETHING_ELSE="x")
    assert ran.of("settings") == [
        ("warning", "QWED_API_KEI is not a known setting", "did you mean QWED_API_KEY?"),
        ("warning", "QWED_SOMETHING_ELSE is not a known setting", "unset it: docs/settings.md lists all settings"),
    ]
    assert ran.code == 0


@pytest.mark.parametrize(("name", "value"), [("QWED_PORT", "eight"), ("QWED_OTEL_ENDPOINT", "http://host:99999")])
def test_a_value_that_cannot_be_used_is_broken(run: Run, name: str, value: str) -> None:
    ran = run(**{name: value})
    assert (ran.code, ran.of("settings")[0][0]) == (1, "broken")
    assert ran.of("settings")[0][1].startswith(f"{name}: `{value}` cannot be used")


def test_credentials_that_were_mixed_up_are_warned_of(run: Run) -> None:
    ran = run(QWED_API_KEY="qwed_agent_123", QWED_AGENT_TOKEN="qwed_live_123")
    assert [message for _state, message, _advice in ran.of("variables")] == [
        "set: QWED_AGENT_TOKEN, QWED_API_KEY",
        "QWED_API_KEY does not begin with `qwed_live_`",
        "QWED_AGENT_TOKEN does not begin with `qwed_agent_`",
        "QWED_AGENT_TOKEN is set, but QWED_AGENT_ID is not",
    ]


# The data directory


@pytest.fixture
def data(server: Server, tmp_path: Path) -> Path:
    """Data directory of a stopped server, with the usual names and modes."""
    directory = tmp_path / "data"
    directory.mkdir(mode=0o700)
    for name in ("owner.key", "signing.key", "signing.jwks", "vault.key", "qwed.db", "lock"):
        shutil.copy2(server.data_dir / name, directory / name)
    return directory


def test_a_directory_at_rest(data: Path, run: Run) -> None:
    assert run("--data-dir", data).of("data directory") == [("fine", f"{data}, no server runs on it", "")]


def test_keys_whose_database_is_gone_are_broken(data: Path, run: Run) -> None:
    (data / "qwed.db").unlink()
    ran = run("--data-dir", data)
    assert ran.of("data directory") == [
        (
            "broken",
            f"{data} has keys, but its database is missing",
            "restore it from a backup, or set QWED_DATABASE_URL to the PostgreSQL it was copied to",
        )
    ]
    assert ran.code == 1


def test_a_directory_that_is_not_there_is_made_by_a_server(tmp_path: Path, run: Run) -> None:
    ran = run(QWED_DATA_DIR=str(tmp_path / "not" / "yet"))
    assert ran.of("data directory")[0][:2] == (
        "fine",
        f"{tmp_path}/not/yet does not exist yet: the first `qwed serve` creates it",
    )
    assert ran.of("disk space")[0][0] == "fine"
    assert ran.code == 0


@pytest.mark.parametrize("name", ["owner.key", "signing.key", "vault.key"])
def test_a_secret_that_others_can_read_is_broken(data: Path, run: Run, name: str) -> None:
    (data / name).chmod(0o640)
    ran = run("--data-dir", data)
    assert ran.of("secrets") == [
        ("broken", f"{data / name} is accessible to other users (mode 640)", f"run `chmod 600 {data / name}`")
    ]
    assert ran.code == 1


@pytest.mark.parametrize("name", ["signing.key", "vault.key"])
def test_a_key_that_is_missing_beside_a_database_is_broken(data: Path, run: Run, name: str) -> None:
    (data / name).unlink()
    ran = run("--data-dir", data)
    assert (ran.code, ran.of("secrets")[0][:2]) == (1, ("broken", f"{data / name} is missing"))


def test_an_owners_key_that_was_moved_away_and_a_signing_key_kept_elsewhere_are_fine(data: Path, run: Run) -> None:
    (data / "owner.key").unlink()
    (data / "signing.key").rename(data.parent / "elsewhere.key")
    ran = run("--data-dir", data, QWED_SIGNING_KEY_FILE=str(data.parent / "elsewhere.key"))
    assert ran.of("secrets") == [("fine", "vault.key: readable only by you", "")]


def test_a_directory_that_is_open_to_others_is_a_warning(data: Path, run: Run) -> None:
    data.chmod(0o755)
    ran = run("--data-dir", data)
    assert ran.of("data directory") == [
        ("warning", f"{data} is accessible to other users (mode 755)", f"run `chmod 700 {data}`"),
    ]


def test_a_file_is_no_directory(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("")
    ran = run("--data-dir", tmp_path / "file")
    assert (ran.code, ran.of("data directory")[0][:2]) == (1, ("broken", f"{tmp_path / 'file'} is not a directory"))


def test_a_link_that_leads_nowhere_is_broken(data: Path, run: Run) -> None:
    (data / "vault.key").unlink()
    (data / "vault.key").symlink_to(data / "gone")
    assert run("--data-dir", data).broken == ["secrets"]


def test_looking_at_a_directory_writes_nothing(data: Path, run: Run) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in data.iterdir()}
    run("--data-dir", data)
    assert {file.name: file.stat().st_mtime_ns for file in data.iterdir()} == before


# The server and our credentials


def test_without_a_server_the_usual_address_is_a_warning_and_a_named_one_is_broken(run: Run) -> None:
    named = run("--url", NOWHERE)
    assert (named.code, named.broken) == (1, ["server"])
    assert run(QWED_BASE_URL=NOWHERE).broken == ["server"]


@pytest.mark.parametrize("role", ["owner", "approver", "member", "metrics"])
def test_the_role_of_a_key_is_told(server: Server, api: httpx.Client, run: Run, role: str) -> None:
    key = api.post("/keys", json={"name": "doctor", "role": role}).json()["key"]
    ran = run("--url", server.base_url, QWED_API_KEY=key)
    assert ran.of("key") == [("fine", f"accepted: the role is {role}", "")]


def test_a_key_that_was_revoked_is_broken(server: Server, api: httpx.Client, run: Run) -> None:
    created = api.post("/keys", json={"name": "gone", "role": "member"}).json()
    api.delete(f"/keys/{created['id']}")
    ran = run("--url", server.base_url, QWED_API_KEY=created["key"])
    assert (ran.code, ran.of("key")[0][:2]) == (1, ("broken", "not accepted (QWED-AUTH-002)"))


def test_without_a_key_one_is_asked_for(server: Server, run: Run) -> None:
    assert run("--url", server.base_url).of("key")[0][:2] == ("warning", "no API key is set")


@pytest.mark.parametrize("key", ["qwed_live_ä", "qwed_live_a\nb", "x" * 100_000], ids=["no ascii", "two lines", "long"])
def test_a_key_that_no_header_can_hold_is_broken_and_no_surprise(server: Server, run: Run, key: str) -> None:
    ran = run("--url", server.base_url, QWED_API_KEY=key)
    assert ran.code == 1
    assert key not in ran.out


def test_an_agent_is_told_by_name_and_a_stopped_one_is_a_warning(
    server: Server, api: httpx.Client, register: Register, run: Run
) -> None:
    agent = register(name="asker")
    asks = {"QWED_AGENT_ID": agent["agent_id"], "QWED_AGENT_TOKEN": agent["agent_token"]}
    assert run("--url", server.base_url, **asks).of("agent") == [("fine", "asker: active, trust level 1", "")]
    api.post(f"/agents/{agent['agent_id']}/suspend", json={"reason": "look first"})
    assert run("--url", server.base_url, **asks).of("agent")[0][:2] == ("warning", "asker: suspended, trust level 1")


def test_a_token_of_another_agent_is_broken(server: Server, register: Register, run: Run) -> None:
    asks = {"QWED_AGENT_ID": register()["agent_id"], "QWED_AGENT_TOKEN": register()["agent_token"]}
    ran = run("--url", server.base_url, **asks)
    assert (ran.code, ran.of("agent")[0][:2]) == (1, ("broken", "the token is not accepted (QWED-AGENT-002)"))


# Other servers


class CannedReply(NamedTuple):
    """Reply of a fake server to one path."""

    status: int = 200
    body: bytes = b"{}"
    date: float = 0.0
    """Seconds our clock is ahead of theirs."""


HEALTH = CannedReply(body=b'{"status": "ok"}')
OPENAPI = CannedReply(body=json.dumps({"info": {"version": qwed.__version__}}).encode())
READY = CannedReply(body=b'{"ready": true, "parts": {"store": "ready"}}')
HONEST = {"/health": HEALTH, "/openapi.json": OPENAPI, "/ready": READY}


@contextmanager
def answering(paths: dict[str, CannedReply]) -> Iterator[str]:
    """Run a server with canned replies."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = paths.get(self.path, CannedReply(404))
            self.send_response_only(reply.status)
            self.send_header("Date", formatdate(time() - reply.date, usegmt=True))
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            # The client may close the connection early.
            try:
                self.wfile.write(reply.body)
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the standard library
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()
            thread.join()


def test_a_web_page_is_no_server_of_ours(run: Run) -> None:
    with answering({"/health": CannedReply(body=b"<html>welcome</html>")}) as url:
        ran = run("--url", url)
    assert (ran.code, ran.broken) == (1, ["server"])
    assert ran.of("server")[0][1].endswith("the reply is not a JSON object: this is not a qwed server")


@pytest.mark.parametrize(
    "body",
    [b"[]", b"null", b"1", b'{"status": ["ok"]}', b"[" * 100_000, b"\xff", b"", b" " * (9 << 20)],
    ids=["list", "null", "number", "another status", "deep", "no utf-8", "nothing", "endless"],
)
def test_whatever_answers_is_told_and_believed_in_nothing(run: Run, body: bytes) -> None:
    with answering(HONEST | {"/health": CannedReply(body=body)}) as url:
        assert run("--url", url).broken == ["server"]


@pytest.mark.parametrize("path", ["/openapi.json", "/ready"])
@pytest.mark.parametrize("body", [b'{"info": 1, "parts": 2}', b'{"info": {}, "parts": {"a": []}}', b"{}"])
def test_members_of_another_kind_are_no_surprise(run: Run, path: str, body: bytes) -> None:
    with answering(HONEST | {path: CannedReply(body=body)}) as url:
        assert run("--url", url).code == 0


def test_what_a_server_says_of_itself_cannot_write_on_the_terminal(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = CannedReply(body=json.dumps({"info": {"version": "\x1b[2J[bold]" + "x" * 9_999}}).encode())
    with answering(HONEST | {"/openapi.json": evil}) as url:
        run("--url", url)
        main(["doctor", "--url", url])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 1_000


@pytest.mark.parametrize(
    ("ahead", "state", "message"),
    [
        (0, "fine", "the same as the server's"),
        (60, "warning", "59 s ahead of the server|60 s ahead of the server"),
        (-60, "warning", "59 s behind the server|60 s behind the server"),
        (3600, "broken", r"\d+ s ahead of the server"),
    ],
)
def test_a_clock_that_is_wrong_is_told(run: Run, ahead: int, state: str, message: str) -> None:
    with answering(HONEST | {"/health": HEALTH._replace(date=ahead)}) as url:
        ran = run("--url", url)
    assert ran.of("clock")[0][0] == state
    assert re.fullmatch(message, ran.of("clock")[0][1])


def test_a_server_of_another_version_is_a_warning(run: Run) -> None:
    with answering(HONEST | {"/openapi.json": CannedReply(body=b'{"info": {"version": "99.0"}}')}) as url:
        (state, message, advice) = run("--url", url).of("server")[0]
    assert (state, "qwed 99.0" in message) == ("warning", True)
    assert advice == f"this command is version {qwed.__version__}: install the same version on both sides"


@pytest.mark.parametrize(
    ("parts", "state", "advice"),
    [
        ({"engines": "starting", "witness": "off"}, "warning", "wait: the engines are starting"),
        ({"engines": "ready", "witness": "contradicted"}, "broken", "the log contradicts a published head"),
        ({"engines": "starting", "rate_limiter": "redis does not answer"}, "broken", "no answer from redis: "),
        (
            {"store": "postgresql does not answer", "engines": "ready", "rate_limiter": "redis does not answer"},
            "broken",
            "no answer from postgresql and redis: ",
        ),
        ({"store": "ready", "engines": "ready"}, "warning", "check the log of the server"),
    ],
)
def test_a_server_that_is_not_ready_says_which_part_is_not(
    run: Run, parts: dict[str, str], state: str, advice: str
) -> None:
    ready = CannedReply(503, json.dumps({"ready": False, "parts": parts}).encode())
    with answering(HONEST | {"/ready": ready}) as url:
        ran = run("--url", url)
    [(actual_state, message, actual_advice)] = ran.of("readiness")
    assert (actual_state, message) == (state, ", ".join(f"{name} {value}" for name, value in parts.items()))
    assert actual_advice.startswith(advice)


DOWN = CannedReply(503, b'{"error": {"code": "QWED-SYS-002", "message": "the rate limiter does not answer"}}')
LIMITED = CannedReply(429, b'{"error": {"code": "QWED-SYS-001"}}')
NO_VERDICT = "it may still be valid: check again when the server is ready"


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        ({"/keys": DOWN, "/agents/a": DOWN}, "QWED-SYS-002"),
        ({"/keys": LIMITED, "/agents/a": LIMITED}, "QWED-SYS-001"),
        ({"/keys": CannedReply(403), "/keys/self": DOWN, "/agents/a": DOWN}, "QWED-SYS-002"),
        ({"/keys": CannedReply(502), "/agents/a": CannedReply(502)}, "status 502"),
    ],
)
def test_a_server_that_cannot_look_has_no_verdict_on_who_asks(
    run: Run, paths: dict[str, CannedReply], code: str
) -> None:
    asks = {"QWED_API_KEY": "qwed_live_x", "QWED_AGENT_ID": "a", "QWED_AGENT_TOKEN": "qwed_agent_x"}
    with answering(HONEST | paths) as url:
        ran = run("--url", url, **asks)
    expected = ("warning", f"the server could not check it ({code})", NO_VERDICT)
    assert (ran.of("key"), ran.of("agent")) == ([expected], [expected])


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("https://[::1]:8000/", True),
        ("http://127.0.0.1.example.com", False),
        ("http://localhost@example.com", False),
        ("http://10.0.0.1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_the_key_in_the_usual_directory_is_shown_to_this_machine_alone(url: str, here: bool) -> None:
    assert is_loopback_url(url) is here


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "127.0.0.1:8000", "http://", "http://[::1", "http://a b/", "x" * 9_999]
)
def test_an_address_that_is_none_is_broken_and_no_surprise(run: Run, url: str) -> None:
    assert run("--url", url).broken == ["server"]
