"""`qwed a2a proxy` on the command line: one line at the start, one sentence for each mistake, a clean stop."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.client.card_resolver import parse_agent_card
from a2a.helpers.proto_helpers import get_message_text, new_text_message
from a2a.types import Role, SendMessageRequest
from a2a.utils.signing import create_signature_verifier
from anyio.from_thread import start_blocking_portal
from jwt.api_jwk import PyJWK

from qwed.cli import main
from tests.support.a2a_cards import CardAgent, card_agent
from tests.support.server import Server

PROXY = (sys.executable, "-m", "qwed.cli", "a2a", "proxy")
LISTEN_OPTIONS = ("--listen", "127.0.0.1:0", "--upstream")


@pytest.fixture(scope="module")
def agent() -> Iterator[CardAgent]:
    with card_agent() as opened:
        yield opened


class Proxy:
    """Proxy in its own process; `greeting` is its output until it listens."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.greeting = ""
        for line in process.stderr or ():
            self.greeting += line
            if ": listening on " in line:
                self.url = line.partition("listening on ")[2].split(" ")[0]
                return
        raise AssertionError(f"it did not start: {self.greeting}")

    def end(self) -> str:
        """Stop the proxy and return its remaining output."""
        self.process.send_signal(signal.SIGTERM)
        _, output = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, output
        return output


@contextmanager
def running_proxy(home: Path, *options: str, **environment: str) -> Iterator[Proxy]:
    """Run a proxy until the block ends."""
    home.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [*PROXY, *options], env=_environment(home) | environment, stderr=subprocess.PIPE, text=True
    )
    try:
        proxy = Proxy(process)
        yield proxy
        if process.poll() is None:
            proxy.end()
    finally:
        process.kill()
        process.communicate()


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
    return {**inherited, "HOME": str(home), "QWED_LOG_LEVEL": "error"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def proxy(agent: CardAgent, home: Path) -> Iterator[Proxy]:
    more = {"QWED_A2A_MAX_PAYLOAD_BYTES": "2048"}
    with running_proxy(home, *LISTEN_OPTIONS, agent.base, "--name", "clerk", "--principal", "ops", **more) as process:
        yield process


def test_it_says_where_it_listens_before_whom_as_whom_and_who_decides(
    proxy: Proxy, agent: CardAgent, home: Path
) -> None:
    *_, line = proxy.greeting.splitlines()
    directory = home / ".qwed" / "a2a" / "clerk"
    client, upstream = (
        json.loads((directory / f"{side}.json").read_text())["agent_id"] for side in ("client", "upstream")
    )
    assert line == (
        f"qwed a2a proxy: listening on {proxy.url} for {agent.base}: clients send as {client}, the agent answers as "
        f"{upstream}, {directory / 'gate'} decides (plain HTTP: put a TLS proxy in front)"
    )
    assert "pinned the card of `clerk` at first sight: sha256 " in proxy.greeting


@pytest.mark.drill
def test_for_a_program_it_says_so_as_json(agent: CardAgent, tmp_path: Path) -> None:
    command = [*PROXY, *LISTEN_OPTIONS, agent.base, "--name", "clerk", "--json"]
    process = subprocess.Popen(
        command, env=_environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    summary = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=30)
    directory = tmp_path / ".qwed" / "a2a" / "clerk"
    sides = {side: json.loads((directory / f"{side}.json").read_text())["agent_id"] for side in ("client", "upstream")}
    assert summary == {
        "url": summary["url"],
        "upstream": agent.base,
        "client": sides["client"],
        "agent": sides["upstream"],
        "decides": str(directory / "gate"),
    }
    assert summary["url"].startswith("http://127.0.0.1:")


def test_the_official_client_finds_the_agent_through_the_proxy_and_believes_its_card(proxy: Proxy) -> None:
    keys = {item["kid"]: PyJWK(item) for item in httpx.get(f"{proxy.url}/.well-known/jwks.json").json()["keys"]}
    assert len(keys) == 2
    verify = create_signature_verifier(lambda kid, _jku: keys[str(kid)], ["ES256"])
    verify(parse_agent_card(httpx.get(f"{proxy.url}/.well-known/agent-card.json").json()))

    async def answered() -> list[str]:
        async with httpx.AsyncClient(verify=False) as http:
            client = await create_client(
                proxy.url, ClientConfig(httpx_client=http, streaming=False), signature_verifier=verify
            )
            request = SendMessageRequest(message=new_text_message("answer hello", role=Role.ROLE_USER))
            return [get_message_text(item.message) async for item in client.send_message(request)]

    with start_blocking_portal() as portal:
        assert portal.call(answered) == ["hello"]


def test_a_body_may_be_as_large_as_payloads_are_set_to_be(proxy: Proxy) -> None:
    def error_for(size: int) -> str:
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a" * size}]}}
        answer = httpx.post(f"{proxy.url}/message:send", json=body, headers={"A2A-Version": "1.0"}, verify=False)
        assert answer.status_code == 413
        return str(answer.json()["error"]["message"])

    assert error_for(4_000) == "no verdict is available: the payload is larger than 2048 bytes"
    assert error_for(70_000) == f"the body has more than {2_048 + 65_536} bytes: send less"


def test_a_port_that_is_taken_is_refused(proxy: Proxy, agent: CardAgent, capsys: pytest.CaptureFixture[str]) -> None:
    taken = proxy.url.removeprefix("http://")
    error = usage_error(capsys, "--listen", taken, "--upstream", agent.base)
    assert error == f"qwed: cannot listen on {taken}: Address already in use; choose another --listen\n"


@pytest.mark.drill
def test_another_proxy_of_the_same_name_is_refused(proxy: Proxy, agent: CardAgent, home: Path) -> None:
    error = start_error(home, *LISTEN_OPTIONS, agent.base, "--name", "clerk")
    assert "if another proxy named `clerk` runs, give this one another --name" in error


def start_error(home: Path, *options: str, **environment: str) -> str:
    """Return the error line of a proxy that cannot start."""
    done = subprocess.run(
        [*PROXY, *options], env=_environment(home) | environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    assert line.startswith("qwed: "), done.stderr
    assert "Traceback" not in done.stderr
    return line


@pytest.mark.drill
def test_no_agent_there_and_a_wrong_key_are_one_sentence_each(server: Server, home: Path) -> None:
    wrong = {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": "qwed_live_" + "x" * 32}
    assert "no agent could be registered at http" in start_error(home, *LISTEN_OPTIONS, "http://127.0.0.1:1", **wrong)
    error = start_error(home, *LISTEN_OPTIONS, "http://127.0.0.1:1")
    assert "the card of http://127.0.0.1:1 cannot be used: " in error
    assert error.endswith("; is the agent running there?")


def usage_error(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["a2a", "proxy", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


UPSTREAM_OPTIONS = ("--upstream", "http://127.0.0.1:1")
MISTAKES = [
    ((), "missing option `--upstream`"),
    (("--upstream", "agent"), "--upstream must look like https://"),
    (("--upstream", "http://user:pass@h/"), "without a user, query or fragment"),
    (("--upstream", "http://h/?a=1"), "without a user, query or fragment"),
    (("--upstream", "http://h:99999/"), "--upstream must look like https://"),
    ((*UPSTREAM_OPTIONS, "--public-url", "ftp://h"), "--public-url must look like https://"),
    ((*UPSTREAM_OPTIONS, "--name", "a_b"), "--name must be letters, digits"),
    ((*UPSTREAM_OPTIONS, "--listen", "9000"), "--listen must be an address and a port"),
    ((*UPSTREAM_OPTIONS, "--listen", "127.0.0.1:99999"), "--listen must be an address and a port"),
    ((*UPSTREAM_OPTIONS, "--listen", "0.0.0.0:0"), "0.0.0.0 can be reached from other machines"),
    ((*UPSTREAM_OPTIONS, "--listen", "0.0.0.0:0", "--allow-remote"), "set --public-url to the address of the proxy"),
    ((*UPSTREAM_OPTIONS, "--type", "trusted"), "--type must be one of autonomous, supervised"),
    ((*UPSTREAM_OPTIONS, "--header-env", "Authorization"), "--header-env must be a header and a variable"),
    ((*UPSTREAM_OPTIONS, "--header-env", "Authorization=NOT_THERE"), "NOT_THERE is not set"),
    ((*UPSTREAM_OPTIONS, "--header-env", "A B=HOME"), "--header-env must name a header"),
    ((*UPSTREAM_OPTIONS, "--header-env", "A=TWO_LINES"), "must be printable ASCII, in one line"),
    (("--upstream", "http://agents.example.com", "--header-env", "A=HOME"), "would send a secret unencrypted"),
    ((*UPSTREAM_OPTIONS, "--recheck", "-1"), "`--recheck`"),
    ((*UPSTREAM_OPTIONS, "--timeout", "0"), "`--timeout`"),
]


@pytest.mark.parametrize(
    ("options", "message"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_each_mistake_is_one_sentence(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWO_LINES", "a\nb")
    error = usage_error(capsys, *options)
    assert error.count("\n") == 1
    assert message in error


def test_it_ends_when_it_is_told_however_long_a_client_stays(proxy: Proxy) -> None:
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        assert proxy.end() == ""
