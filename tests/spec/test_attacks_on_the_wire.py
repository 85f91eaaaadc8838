"""Attacks on HTTP: malformed, ambiguous, endless or costly requests, and internal webhook addresses."""

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import AgentConversation, Register
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import SUM, Json, question, said, tool_call
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.raw_http import message
from tests.support.server import Server

AT_ONCE = 8.0
"""Maximum CPU seconds of a hostile request; the attack would take far longer."""
PATIENCE = 120


# Malformed requests get a 4xx answer, never a 500.


@spec("B")
@pytest.mark.parametrize(
    "limit",
    ["000000001" + "9" * 30, "000000001" + "9" * 5000, "000000001000000000000", "0", "-1", "1.0", "\u0663", " 1", ""],
)
def test_an_odd_limit_of_the_list_of_agents_is_refused(spec_server: SpecServer, limit: str) -> None:
    with spec_server.client("owner") as client:
        assert client.get("/agents", params={"limit": limit}).status_code == 400


@spec("7.2")
@pytest.mark.parametrize(
    "query",
    [
        {"from": "0001-01-01T00:00:00+23:59"},
        {"to": "9999-12-31T23:59:59-23:59"},
        {"from": "\x00"},
        {"from": "1e9"},
        {"cursor": "9" * 30},
        {"cursor": "-1"},
        {"limit": "9" * 5000},
        {"decision": "approved"},
    ],
    ids=str,
)
def test_an_odd_question_about_the_activity_is_refused(spec_server: SpecServer, query: dict[str, str]) -> None:
    with spec_server.client("owner") as client:
        agent = client.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()
        assert client.get(f"/agents/{agent['agent_id']}/activity", params=query).status_code == 400


@spec("9.8")
@pytest.mark.parametrize("good_first", [True, False])
def test_two_different_keys_are_refused(server: Server, register: Register, good_first: bool) -> None:
    """Check duplicate headers, of which a proxy may choose another than we do."""
    pair = [("X-API-Key", server.owner_key), ("X-API-Key", "qwed_live_other")]
    headers = pair if good_first else pair[::-1]
    response = httpx.post(
        f"{server.base_url}/agents/{register()['agent_id']}/verify", json=question(SUM), headers=headers, timeout=30
    )
    assert response.status_code in (400, 401)


@spec("9.8")
@pytest.mark.parametrize("good_first", [True, False])
def test_two_different_tokens_are_refused(server: Server, register: Register, good_first: bool) -> None:
    one, other = register(), register()
    pair = [("Authorization", f"Bearer {agent['agent_token']}") for agent in (one, other)]
    response = httpx.post(
        f"{server.base_url}/agents/{one['agent_id']}/verify",
        json=question(SUM),
        headers=pair if good_first else pair[::-1],
        timeout=30,
    )
    assert response.status_code in (400, 401)


@spec("9.8")
@pytest.mark.parametrize("route", ["", "/budget", "/activity", "/did.json"])
def test_a_key_beside_the_token_of_another_agent_reads_nothing(
    api: httpx.Client, register: Register, route: str
) -> None:
    """Ruling 4.18: header, body and path must agree, on every route."""
    one, other = register(), register()
    headers = {"Authorization": f"Bearer {other['agent_token']}"}
    assert api.get(f"/agents/{one['agent_id']}{route}", headers=headers).status_code == 401


@spec("9.8")
def test_a_key_beside_the_token_of_another_agent_decides_nothing(api: httpx.Client, register: Register) -> None:
    one, other = register(), register()
    headers = {"Authorization": f"Bearer {other['agent_token']}"}
    assert api.post(f"/agents/{one['agent_id']}/verify", json=question(SUM), headers=headers).status_code == 401


@spec("9.8")
def test_another_organisation_finds_neither_agent_nor_action(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as owner, spec_server.client("foreign") as foreign:
        agent_id = owner.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()["agent_id"]
        answer = owner.post(f"/agents/{agent_id}/verify", json=question(SUM)).json()
        for route in ("", "/budget", "/activity", "/did.json", f"/actions/{answer['action_id']}"):
            theirs, nobodys = foreign.get(f"/agents/{agent_id}{route}"), foreign.get(f"/agents/agent_0{route}")
            assert (
                (theirs.status_code, theirs.content) == (nobodys.status_code, nobodys.content) == (404, theirs.content)
            )
        own = foreign.post("/agents/register", json={"name": unique_name("b"), "principal_id": "u"}).json()["agent_id"]
        assert foreign.get(f"/agents/{own}/actions/{answer['action_id']}").status_code == 404


@spec("4.1")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        "{}".encode("utf-16"),
        b"[" * 10_000,
        b'{"action":{"type":"calculate","typ\\u0065":"execute_code"}}',
        b'{"action":{"type":"calculate","parameters":{"a":{"b":1,"b":2}}}}',
        b'{"action":{"type":"\\ud800"}}',
        b'{"action":{"parameters":{"a":' + b"9" * 5000 + b"}}}",
    ],
    ids=range(13),
)
def test_what_is_no_request_is_refused(api: httpx.Client, register: Register, body: bytes) -> None:
    response = api.post(f"/agents/{register()['agent_id']}/verify", content=body)
    assert (response.status_code, response.json()["decision"]) == (400, "DENIED")


@spec("4.1")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("place", ['"parameters":{{"x":{}}}', '"cost":{{"usd":{}}}', '"cost":{{"tokens":{}}}'])
def test_what_is_no_number_is_refused(api: httpx.Client, register: Register, number: str, place: str) -> None:
    text = '{"action":{"type":"calculate","query":"2+2",%s},"context":{"conversation_id":"c","step_number":1}}'
    response = api.post(f"/agents/{register()['agent_id']}/verify", content=text % place.format(number))
    assert (response.status_code, response.json()["decision"]) == (400, "DENIED")


@spec("9.1")
@pytest.mark.parametrize("step", [2**63, 2**64, 10**40, 10**4000])
def test_a_step_number_of_any_size_is_answered(ask: AgentConversation, step: int) -> None:
    assert said(ask(SUM, step)) == ("DENIED", "QWED-AGENT-LOOP-001")
    assert ask.activity()["activities"][0]["decision"] == "DENIED"


@spec("B")
@pytest.mark.parametrize("name", ["%00", "%ff%fe", "%ed%a0%80", "..%2f", "a" * 20_000])
def test_an_odd_id_is_no_agent(api: httpx.Client, name: str) -> None:
    assert api.post(f"/agents/{name}/verify", json=question(SUM)).status_code == 404


@spec("B")
def test_a_body_in_pieces_is_read_whole(api: httpx.Client, register: Register) -> None:
    text = json.dumps(question(SUM)).encode()
    pieces = (text[at : at + 7] for at in range(0, len(text), 7))
    response = api.post(f"/agents/{register()['agent_id']}/verify", content=pieces)
    assert response.json()["decision"] == "APPROVED"


@spec("B")
def test_callers_that_never_finish_hold_up_nobody(server: Server, api: httpx.Client) -> None:
    unfinished = b"POST /agents/x/verify HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"

    with ExitStack() as held:
        for _ in range(50):
            _line(held, server).sendall(unfinished)
        assert api.get("/health").status_code == 200


def _line(held: ExitStack, server: Server) -> socket.socket:
    place = urlsplit(server.base_url)
    return held.enter_context(socket.create_connection((place.hostname, place.port), timeout=30))


# One hostile input never slows the others (P6).


@pytest.fixture
def hostage(tmp_path: Path) -> Iterator[Server]:
    """A dedicated server, because the effects of an attack may last."""
    running = Server(tmp_path / "data")
    yield running
    running.kill()


@contextmanager
def _at_once(hostage: Server) -> Iterator[None]:
    before = hostage.spent()
    yield
    assert hostage.spent() - before < AT_ONCE


def _asked_by(hostage: Server, action: Json, **fields: Any) -> Json:
    headers = {"X-API-Key": hostage.owner_key}
    with httpx.Client(base_url=hostage.base_url, headers=headers, timeout=PATIENCE) as client:
        agent = client.post("/agents/register", json={"name": unique_name(), "principal_id": "u", **fields}).json()
        answer: Json = client.post(f"/agents/{agent['agent_id']}/verify", json=question(action)).json()
        return answer


@spec("B")
@pytest.mark.parametrize(("many", "status"), [(9_000, 400), (60_000, 413)])
def test_a_stranger_with_many_keys_and_one_twice_is_refused_at_once(hostage: Server, many: int, status: int) -> None:
    members = ",".join(f'"{number:06x}":0' for number in range(many))
    text = f'{{{members},"{many - 1:06x}":1}}'
    with _at_once(hostage):
        response = httpx.post(f"{hostage.base_url}/agents/x/verify", content=text, timeout=PATIENCE)
    assert response.status_code == status


@spec("5.2")
@pytest.mark.parametrize("piece", ["token:", "api_key:"])
def test_what_only_looks_like_a_list_of_secrets_is_read_at_once(hostage: Server, piece: str) -> None:
    texts = [piece * 3_000 for _ in range(40)]
    with _at_once(hostage):
        answer = _asked_by(hostage, tool_call("log_message", m=texts))
    assert answer["decision"] in ("DENIED", "PENDING", "APPROVED")


@spec("5.1")
def test_a_command_with_many_files_is_held_to_many_paths_at_once(hostage: Server) -> None:
    files = " ".join(f"{number:x}" for number in range(3_500))
    permissions = {"allowed_paths": [f"/srv/d{number}" for number in range(100)]}
    with _at_once(hostage):
        answer = _asked_by(hostage, {"type": "shell_command", "query": f"cat {files}"}, permissions=permissions)
    assert answer["decision"] in ("DENIED", "PENDING", "APPROVED")


def _pigeons(tag: str) -> str:
    """Return a pigeonhole claim (eleven pigeons, ten holes): short, false and too hard for any solver."""
    pigeons, holes = "abcdefghijk", "abcdefghij"
    sits = [f"(OR {' '.join(f'{tag}{one}{hole}' for hole in holes)})" for one in pigeons]
    pairs = [(one, other) for one in pigeons for other in pigeons if other < one]
    alone = [f"(OR (NOT {tag}{one}{hole}) (NOT {tag}{other}{hole}))" for hole in holes for one, other in pairs]
    return f"(AND {' '.join(sits + alone)})"


@spec("2.1")
def test_an_agent_with_hard_questions_does_not_hold_up_another(hostage: Server) -> None:
    headers = {"X-API-Key": hostage.owner_key}
    with httpx.Client(base_url=hostage.base_url, headers=headers, timeout=30) as client:
        fields = {"name": unique_name(), "principal_id": "u"}
        hostile = client.post("/agents/register", json=fields).json()["agent_id"]
        # The first request waits for the workers to start.
        client.post(f"/agents/{hostile}/verify", json=question({"type": "execute_sql", "query": "SELECT a FROM t"}))

    with ExitStack() as held:
        lines = [_line(held, hostage) for _ in range(6)]
        for tag, line in zip("lmnopq", lines, strict=True):
            hard = question({"type": "verify_logic", "query": _pigeons(tag)}, conversation=tag)
            line.sendall(message(f"/agents/{hostile}/verify", hard, headers))
        answer = _asked_by(hostage, {"type": "execute_sql", "query": "SELECT b FROM t"})
        answered = select.select(lines, [], [], 0)[0]
    assert answer["decision"] == "APPROVED"
    # It was sent after all of them, and did not wait for all of them.
    assert len(answered) < len(lines) - 1


# Request boundaries, and webhook addresses


_TRICKS = {
    "two lengths": b"content-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
    "a length and chunks": b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "another coding": b"transfer-encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "less than nothing": b"content-length: -1\r\n\r\n",
    "a length with a sign": b"content-length: +2\r\n\r\n{}",
    "a length beyond numbers": b"content-length: 99999999999999999999999\r\n\r\n{}",
}


@spec("B")
@pytest.mark.parametrize("trick", _TRICKS)
def test_a_request_whose_end_is_unclear_is_refused_and_nothing_after_it_is_read(
    spec_server: SpecServer, trick: str
) -> None:
    place = urlsplit(spec_server.base_url)
    with socket.create_connection((place.hostname, place.port or 80), timeout=30) as line:
        line.sendall(b"POST /agents/x/verify HTTP/1.1\r\nhost: x\r\n" + _TRICKS[trick])
        heard = b"".join(iter(lambda: line.recv(65_536), b""))
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert heard.count(b"HTTP/1.1 ") == 1


_INSIDE = (
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://0/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[::]/",
    "https://[fe80::1%25eth0]/",
    "https://169.254.169.254/",
    "https://[0:0:0:0:0:ffff:a9fe:a9fe]/",
    "https://localhost./",
    "https://a.localhost/",
    "https://metadata.google.internal/",
    "https://example.com\\@127.0.0.1/",
    "https://127.0.0.1#@example.com",
    "https://u:p@example.com/",
    "https://example.com:22/",
    "https://example.com:0/",
    "http://example.com/",
    "gopher://example.com/",
    "https:///x",
)


@spec("2.3")
@pytest.mark.parametrize("url", _INSIDE)
def test_no_spelling_of_a_place_inside_is_a_webhook(new_keyholders: Keyholders, url: str) -> None:
    assert new_keyholders.owner.put("/webhook", json={"url": url}).status_code == 400
