"""MCP over streamable HTTP: API keys, jobs per key, and refused origins (seed 004)."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed_mcp.sessions import MAX_PER_CALLER
from tests.support.child_processes import wait_for_children, wait_until_dead
from tests.support.mcp_sessions import TRUSTED, HttpServer, text
from tests.support.server import Server

ACCEPT = {"Accept": "application/json, text/event-stream"}
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def http(server: Server) -> Iterator[HttpServer]:
    """Server whose keys are those of a qwed server."""
    running = HttpServer(**TRUSTED, QWED_BASE_URL=server.base_url)
    yield running
    wrote = running.stop()
    assert running.process.returncode == 0
    assert "qwed_live_" not in wrote


@pytest.fixture(scope="module")
def keys(api: httpx.Client) -> tuple[str, str]:
    new_keys = [api.post("/keys", json={"name": name, "role": "member"}).json()["key"] for name in ("one", "two")]
    return new_keys[0], new_keys[1]


def opened(http: HttpServer, **headers: str) -> httpx.Response:
    return http.post(json=OPENING, headers=ACCEPT | headers)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_job_belongs_to_the_key_that_placed_it(http: HttpServer, keys: tuple[str, str], mode: str) -> None:
    with http.session(keys[0], mode) as one, http.session(keys[1], mode) as two:
        assert text(one.run("print(1)")) == "STDOUT:\n1\n\nExecution completed successfully."
        job_id = one.submit("print('All checks passed')")
        assert text(one.wait_ended(job_id)).startswith("Status: success")
        assert text(two.status(job_id)) == f"Error: Job ID '{job_id}' not found or expired."
        with http.session(keys[0], mode) as again:
            assert text(again.status(job_id)).startswith("Status: success")
        refused = two.call("verify_math", {})
        assert refused.is_error
        assert text(refused).startswith("BLOCKED: Unknown MCP tool 'verify_math' is blocked by default.")
        large = two.run("print('\\u00e9' * 500_000)")
        assert len(text(large)) > 500_000


def test_a_key_is_needed_and_either_header_takes_it(http: HttpServer, keys: tuple[str, str]) -> None:
    assert opened(http, **{"X-API-Key": keys[0]}).status_code == 200
    assert opened(http, Authorization=f"Bearer {keys[0]}").status_code == 200
    assert opened(http, Authorization=f"bearer {keys[0]}", **{"X-API-Key": keys[0]}).status_code == 200


STRANGERS: list[tuple[dict[str, str], int, str]] = [
    ({}, 401, "QWED-AUTH-001"),
    ({"X-API-Key": ""}, 401, "QWED-AUTH-001"),
    ({"Authorization": "Basic eDp5"}, 401, "QWED-AUTH-001"),
    ({"X-API-Key": "qwed_live_one", "Authorization": "Bearer qwed_live_two"}, 401, "QWED-AUTH-001"),
    ({"X-API-Key": "k" * 10_000}, 401, "QWED-AUTH-001"),
    ({"X-API-Key": "nothing"}, 401, "QWED-AUTH-002"),
    ({"X-API-Key": f"qwed_live_{'a' * 40}"}, 401, "QWED-AUTH-002"),
    ({"Authorization": f"Bearer qwed_agent_{'a' * 40}"}, 401, "QWED-AUTH-002"),
    ({"Host": "evil.example"}, 421, "QWED-REQ-001"),
    ({"Host": "127.0.0.1"}, 421, "QWED-REQ-001"),
    ({"Host": "127.0.0.1.evil.example:80"}, 421, "QWED-REQ-001"),
    ({"Origin": "null"}, 403, "QWED-REQ-001"),
    ({"Origin": "http://evil.example"}, 403, "QWED-REQ-001"),
    ({"Origin": "http://127.0.0.1:1"}, 403, "QWED-REQ-001"),
]


@pytest.mark.parametrize(("headers", "status", "code"), STRANGERS, ids=range(len(STRANGERS)))
def test_a_stranger_is_told_nothing(
    http: HttpServer, keys: tuple[str, str], headers: dict[str, str], status: int, code: str
) -> None:
    from_elsewhere = {"X-API-Key": keys[0]} if status != 401 else {}
    answer = opened(http, **from_elsewhere, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_page_of_this_very_server_and_a_program_without_origin_are_let_in(
    http: HttpServer, keys: tuple[str, str]
) -> None:
    own = http.url.removesuffix("/mcp")
    assert opened(http, Origin=own, **{"X-API-Key": keys[0]}).status_code == 200
    local = own.replace("127.0.0.1", "localhost")
    assert opened(http, Host=local.removeprefix("http://"), **{"X-API-Key": keys[0]}).status_code == 200


def test_no_other_path_and_no_large_body_is_taken(http: HttpServer, keys: tuple[str, str]) -> None:
    headers = {"X-API-Key": keys[0]}
    assert httpx.get(http.url.replace("/mcp", "/"), headers=headers).status_code == 404
    assert httpx.get(http.url.replace("/mcp", "/"), timeout=30).status_code == 401

    def body() -> Iterator[bytes]:
        for _ in range(3):
            yield b" " * (1 << 20)

    refused = http.post(content=body(), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "QWED-REQ-002")


def test_a_body_with_two_lengths_is_refused(http: HttpServer, keys: tuple[str, str]) -> None:
    both = {"X-API-Key": keys[0], "Content-Length": "4", "Transfer-Encoding": "chunked"}
    refused = http.post(content=iter([b"{}"]), headers=both)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "QWED-REQ-001")


def test_a_session_of_one_key_does_not_exist_for_another(http: HttpServer, keys: tuple[str, str]) -> None:
    session_id = opened(http, **{"X-API-Key": keys[0]}).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answers = [
        http.post(json=listing, headers={**ACCEPT, "X-API-Key": key, "Mcp-Session-Id": session_id}) for key in keys
    ]
    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.drill
def test_a_caller_with_too_many_sessions_loses_its_own_oldest(http: HttpServer, keys: tuple[str, str]) -> None:
    def listed(key: str, session_id: str) -> int:
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        headers = {**ACCEPT, "X-API-Key": key, "Mcp-Session-Id": session_id}
        return http.post(json=listing, headers=headers).status_code

    def fresh(key: str) -> str:
        return opened(http, **{"X-API-Key": key}).headers["mcp-session-id"]

    other = fresh(keys[1])
    own = [fresh(keys[0]) for _ in range(MAX_PER_CALLER)]
    assert listed(keys[0], own[0]) == 200
    own += [fresh(keys[0])]
    assert [listed(keys[0], opened_id) for opened_id in (own[0], own[1], own[-1])] == [200, 404, 200]
    assert listed(keys[1], other) == 200


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_client_that_leaves_ends_its_run(http: HttpServer, keys: tuple[str, str], version: str) -> None:
    headers = {**ACCEPT, "X-API-Key": keys[0], "Content-Type": "application/json", "MCP-Protocol-Version": version}
    params: dict[str, Any] = {"name": "execute_python_code", "arguments": {"code": "import time\ntime.sleep(1000)"}}
    if version == "2026-07-28":
        params["_meta"] = MODERN
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "execute_python_code"}
    else:
        headers["Mcp-Session-Id"] = opened(http, **{"X-API-Key": keys[0]}).headers["mcp-session-id"]
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    where = httpx.URL(http.url)
    assert where.port is not None
    connection = HTTPConnection(where.host, where.port, timeout=30)
    connection.request("POST", "/mcp", body, headers)
    below = wait_for_children(http.process.pid)
    connection.close()
    wait_until_dead(below)


@pytest.mark.drill
def test_without_a_server_it_has_keys_of_its_own(tmp_path: Path) -> None:
    own = HttpServer(**TRUSTED, QWED_DATA_DIR=str(tmp_path / "data"))
    key_file = tmp_path / "data" / "owner.key"
    assert own.greeting["keys"] == f"the owner's key is in {key_file}"
    key = key_file.read_text().strip()
    with own.session(key) as session:
        assert text(session.run("print(1)")) == "STDOUT:\n1\n\nExecution completed successfully."
    assert opened(own, **{"X-API-Key": f"{key[:-1]}{'a' if key[-1] != 'a' else 'b'}"}).status_code == 401
    wrote = own.stop()
    assert key not in wrote
    decisions: list[dict[str, Any]] = [json.loads(line) for line in wrote.splitlines()]
    assert decisions[0]["caller"].startswith("key_")


@pytest.mark.drill
def test_keys_that_nobody_can_vouch_for_open_nothing() -> None:
    lost = HttpServer(**TRUSTED, QWED_BASE_URL="http://127.0.0.1:1")
    answer = opened(lost, **{"X-API-Key": f"qwed_live_{'a' * 40}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "QWED-SYS-002")
    lost.stop()
