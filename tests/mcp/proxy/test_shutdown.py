"""End of a proxy, and refused calls when the server or the control plane is gone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_proxies import OLD, PROXY, UPSTREAM, proxied, session, until, upstream
from tests.support.server import Server


class RawClient:
    """Client of the 2024 protocol that writes JSON-RPC lines itself."""

    def __init__(self, command: list[str], home: Path, **environment: str) -> None:
        home.mkdir(exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**inherited, "HOME": str(home), **environment},
        )
        self._number = 0
        client_info = {"name": "plain", "version": "1"}
        self.initialized = self.ask("initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo=client_info)
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.tell({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if message.get("id") == self._number:
                return message

    def leave(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code


def test_an_old_server_and_an_old_client_are_served_and_what_they_do_not_know_is_refused(tmp_path: Path) -> None:
    client = RawClient([*PROXY, "--", *OLD], tmp_path / "home")
    assert client.initialized["result"]["protocolVersion"] == "2024-11-05"
    assert client.initialized["result"]["serverInfo"]["name"] == "mcp-old"
    assert client.initialized["result"]["capabilities"] == {"tools": {"listChanged": True}}
    listed = client.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["get_time", "check_model", "read_flood"]
    result = client.ask("tools/call", name="get_time", arguments={"zone": "CET"}, _meta={"zone": "DROP"})["result"]
    assert json.loads(result["content"][0]["text"]) == ["get_time", {"zone": "CET"}, None]
    assert set(result["_meta"]) == {"qwed/action_id"}
    smuggled = client.ask("tools/call", name="get_time", arguments={"zone": "CET"}, requestState="DROP")["result"]
    assert "input responses are accepted only for what the server requested" in smuggled["content"][0]["text"]
    answer = client.ask("tools/call", name="check_model", arguments={})["result"]
    assert "Sampling not supported" in answer["content"][0]["text"]
    for method in ("resources/list", "prompts/list", "completion/complete", "logging/setLevel", "made/up"):
        assert "error" in client.ask(method), method
    assert client.leave() == 0


def test_a_server_that_dies_is_told_of_in_every_later_call_and_in_the_exit_code(tmp_path: Path) -> None:
    client = RawClient([*PROXY, "--name", "demo", "--", *upstream(tmp_path)], tmp_path / "home")
    died = client.ask("tools/call", name="read_crash_log", arguments={})["result"]
    assert died["isError"]
    assert "the server behind the proxy is gone" in died["content"][0]["text"]
    later = client.ask("tools/call", name="get_weather", arguments={"city": "Bonn"})["result"]
    assert later["isError"]
    assert "the server behind the proxy is gone (ended by signal 9)" in later["content"][0]["text"]
    assert client.leave() == 1


@pytest.mark.drill
def test_a_server_that_says_more_than_a_message_may_hold_is_heard_no_more(tmp_path: Path) -> None:
    client = RawClient([*PROXY, "--", *OLD], tmp_path / "home")
    for name in ("read_flood", "get_time"):
        result = client.ask("tools/call", name=name, arguments={})["result"]
        assert result["isError"]
        assert "the server behind the proxy is gone" in result["content"][0]["text"]
    assert client.leave() == 1


@pytest.mark.drill
def test_a_proxy_that_is_told_to_end_takes_its_server_with_it(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import os, signal, sys\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"sys.path.insert(0, {str(UPSTREAM.parent)!r})\n"
        "import mcp_old\nmcp_old.main()\nsignal.pause()\n"
    )
    client = RawClient([*PROXY, "--", sys.executable, str(script)], tmp_path / "home")
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(timeout=30) == 0
    assert client.leave() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name the server: either `-- COMMAND...` or --url URL"),
        (["--name", "a__b", "--", "/bin/true"], "--name must be letters, digits"),
        (["--url", "ftp://x"], "--url must begin with http:// or https://"),
        (["--type", "trusted", "--", "/bin/true"], "--type must be one of autonomous, supervised"),
        (["--url", "http://127.0.0.1:9", "--header-env", "Authorization=NOT_SET"], "NOT_SET is not set"),
        pytest.param(
            ["--", "/no/such/server"],
            "`/no/such/server` cannot be started: No such file or directory",
            marks=pytest.mark.drill,
        ),
        pytest.param(["--", "/bin/true"], "`/bin/true` does not answer as an MCP server", marks=pytest.mark.drill),
        pytest.param(
            ["--url", "http://127.0.0.1:9/mcp"],
            "`http://127.0.0.1:9/mcp` does not answer as an MCP server",
            marks=pytest.mark.drill,
        ),
    ],
)
def test_what_cannot_begin_says_why_in_one_sentence(arguments: list[str], expected: str, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([*PROXY, *arguments], env=environment, input=b"", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert expected in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert done.stdout == b""


@pytest.mark.drill
def test_without_the_control_plane_every_call_is_refused(tmp_path: Path) -> None:
    running = Server(tmp_path / "data")
    environment = {"QWED_BASE_URL": running.base_url, "QWED_API_KEY": running.owner_key}
    with proxied(tmp_path, "--wait", "0", environment=environment) as client:
        client.call_passed("get_weather", city="Bonn")
        running.kill()
        assert "DENIED: it could not be verified" in client.call_refused("get_weather", city="Köln")
        assert "get_weather" in client.tools()
    with proxied(tmp_path, "--wait", "0", environment=environment) as client:
        assert "every call is refused" in client.log.read_text()
        assert "DENIED: it could not be verified" in client.call_refused("get_weather", city="Köln")


@pytest.mark.drill
def test_two_proxies_of_one_name_do_not_share_a_gate(tmp_path: Path) -> None:
    with session([*PROXY, "--", *OLD], tmp_path / "home"):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        done = subprocess.run([*PROXY, "--", *OLD], env=environment, input=b"", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert "if another proxy named `mcp-old` runs, give this one another --name" in done.stderr.decode()
    assert until(lambda: "Traceback" not in done.stderr.decode())
