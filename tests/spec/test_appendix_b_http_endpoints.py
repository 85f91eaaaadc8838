"""Appendix B, HTTP Endpoints: routes, request bodies, the OpenAPI document, and shutdown."""

import contextlib
import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import jsonschema_rs
import pytest

import qwed
from qwed.api.handlers import agents
from qwed.kernel.agents.registration import COUNT_LIMITS, MONEY_LIMITS, RegisterRequest
from qwed.kernel.request import ActionOptions, Context
from tests.conftest import AgentConversation, Register
from tests.spec.requests import DELETE, EMAIL, FALSE, OF_RISK, SUM, WRONG_SUM, Json, said
from tests.spec.sections import spec
from tests.support.server import Server

ENDPOINTS = [
    ("POST", "/agents/register"),
    ("GET", "/agents/{agent_id}"),
    ("POST", "/agents/{agent_id}/verify"),
    ("POST", "/agents/{agent_id}/tools/{tool}"),
    ("GET", "/agents/{agent_id}/activity"),
    ("GET", "/agents/{agent_id}/budget"),
    ("POST", "/agents/{agent_id}/trust"),
]


@pytest.fixture(scope="module")
def document(stranger: httpx.Client) -> Json:
    read: Json = stranger.get("/openapi.json").json()
    return read


@spec("B")
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
def test_every_endpoint_is_there_and_documented(api: httpx.Client, document: Json, endpoint: tuple[str, str]) -> None:
    method, path = endpoint
    assert method.lower() in document["paths"][path]
    response = api.request(method, path.format(agent_id="agent_0", tool="x"), json={})
    assert response.json()["error"]["code"] not in ("QWED-REQ-007", "QWED-REQ-008")


@spec("B")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "QWED-REQ-007"),
        ("GET", "/agents/a/b/c", 404, "QWED-REQ-007"),
        ("PUT", "/agents/register", 405, "QWED-REQ-008"),
        ("GET", "/agents/agent_0/verify", 405, "QWED-REQ-008"),
        ("POST", "/health", 405, "QWED-REQ-008"),
        ("POST", "/agents//verify", 404, "QWED-REQ-007"),
    ],
)
def test_what_is_not_there_is_said_in_the_same_shape(
    api: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    response = api.request(method, path)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert set(response.json()["error"]) >= {"code", "message", "details"}


@spec("B")
def test_health_and_readiness_need_no_key(stranger: httpx.Client, ask: AgentConversation) -> None:
    assert stranger.get("/health").json() == {"status": "ok", "version": qwed.__version__}
    ask({"type": "verify_logic", "query": "x > 1"}, 1)
    ready = stranger.get("/ready")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert ready.json()["parts"]["rate_limiter"] == "memory"


# Request bodies


def _post(ask: AgentConversation, body: bytes | str, **headers: str) -> httpx.Response:
    return ask.api.post(f"/agents/{ask.agent_id}/verify", content=body, headers=headers)


def _body(parameters: str = "{}") -> str:
    action = f'{{"type": "tool_call", "tool": "get_weather", "parameters": {parameters}}}'
    return f'{{"action": {action}, "context": {{"conversation_id": "c", "step_number": 1}}}}'


@spec("B")
@pytest.mark.parametrize("path", ["/agents/register", "/agents/{id}/verify", "/agents/{id}/tools/get_weather"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_one_mebibyte_is_413(ask: AgentConversation, path: str, chunked: bool) -> None:
    filler = b'{"x": "' + b"y" * (1 << 20) + b'"}'
    content = iter([filler[:1000], filler[1000:]]) if chunked else filler
    response = ask.api.post(path.format(id=ask.agent_id), content=content)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "QWED-REQ-002")


@spec("B")
def test_a_body_of_exactly_one_mebibyte_is_read(ask: AgentConversation) -> None:
    body = _body()
    response = _post(ask, body + " " * ((1 << 20) - len(body)))
    assert (response.status_code, said(response.json())) == (200, ("APPROVED", None))


@spec("B")
@pytest.mark.parametrize(("depth", "status"), [(60, 200), (61, 200), (62, 400), (64, 400), (5000, 400), (9_990, 400)])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"k":', "}")])
def test_json_nested_deeper_than_64_is_400(
    ask: AgentConversation, depth: int, status: int, brackets: tuple[str, str]
) -> None:
    # The body, the action, the parameters: three levels before the first of these, and a number in the last.
    opened, closed = brackets
    response = _post(ask, _body(f'{{"p": {opened * depth}1{closed * depth}}}'))
    assert response.status_code == status
    if status == 400:
        assert said(response.json()) == ("DENIED", "QWED-REQ-001")
        assert "64" in response.json()["error"]["message"]


@spec("B")
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('{"action": {}, "action": {}}', "`action`"),
        ('{"action": {"type": "calculate", "type": "execute_code"}}', "`type`"),
        (_body('{"a": {"b": 1, "b": 2}}'), "`b`"),
        (_body('{"a": 1, "\\u0061": 2}'), "`a`"),
    ],
)
def test_a_duplicate_key_is_refused_by_name(ask: AgentConversation, body: str, named: str) -> None:
    response = _post(ask, body)
    assert (response.status_code, said(response.json())) == (400, ("DENIED", "QWED-REQ-001"))
    assert named in response.json()["error"]["message"]


@spec("B")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{'action': 1}",
        b"\xff\xfe",
        b'{"action": "\xff"}',
        b"{}{}",
        b"[1,]",
        b'{"a": 01}',
        b'\xef\xbb\xbf{"action": {}}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"nul",
        b'"\\ud800"',
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_json_is_400(ask: AgentConversation, body: bytes) -> None:
    response = _post(ask, body)
    assert (response.status_code, said(response.json())[0]) == (400, "DENIED")
    registration = ask.api.post("/agents/register", content=body)
    assert (registration.status_code, set(registration.json())) == (400, {"error"})


@spec("B")
def test_a_stranger_is_not_told_that_a_registration_is_wrong(stranger: httpx.Client) -> None:
    assert stranger.post("/agents/register", content=b"{").status_code == 401


# The API document


@spec("B")
def test_the_document_is_openapi_3_1(document: Json) -> None:
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(document["info"])
    identifiers = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(identifiers) == len(set(identifiers))
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["responses"]
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}


@spec("B")
def test_every_schema_in_the_document_is_valid_and_every_reference_leads_somewhere(document: Json) -> None:
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": schemas}})
    for reference in _references(document):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for item in value.values() for found in _references(item)]


@spec("B")
def test_the_document_names_the_fields_that_are_read(document: Json) -> None:
    def names(schema: str) -> set[str]:
        return set(document["components"]["schemas"][schema]["properties"])

    assert names("VerifyRequest") == set(agents.VerifyRequest.__struct_fields__)
    assert names("VerifyToolRequest") == set(agents.VerifyToolRequest.__struct_fields__)
    assert names("ToolCallRequest") == set(agents.ToolCallRequest.__struct_fields__)
    assert names("Context") == set(Context.__struct_fields__)
    assert names("OptionsRequest") == set(ActionOptions.__struct_fields__)
    assert names("BudgetRequest") == {*MONEY_LIMITS, *COUNT_LIMITS}
    stated = {"cost", "effects"}
    assert names("ActionRequest") == stated | {"type", "action_type", "query", "code", "target", "parameters", "tool"}
    profile = {"name", "principal_id", "type", "description", "framework", "model"}
    assert names("RegisterRequest") == profile | {
        "permissions",
        "budget",
        "trust_level",
        "labels",
        "max_conversation_steps",
    }
    assert RegisterRequest.__struct_config__.forbid_unknown_fields


def _validator(document: Json, method: str, path: str, status: int) -> jsonschema_rs.Draft202012Validator:
    found = document["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator({**found, "components": document["components"]})


@spec("B")
def test_answers_look_as_the_document_says(document: Json, asking: Callable[..., AgentConversation]) -> None:
    path = "/agents/{agent_id}/verify"
    ask = asking(budget={"max_per_request_usd": 1})
    trusted = asking(type="trusted")
    bodies = [SUM, WRONG_SUM, EMAIL, FALSE, DELETE, {"type": "x"}, {**SUM, "cost": {"usd": 2}}, {"bad": 1}]
    bodies += [action for actions in OF_RISK.values() for action in actions]
    for asked in (ask, trusted):
        for number, action in enumerate(bodies):
            context = {"conversation_id": str(number), "step_number": 1}
            response = asked.send({"action": action, "context": context})
            _validator(document, "post", path, response.status_code).validate(response.json())


@spec("B")
@pytest.mark.parametrize("rest", ["", "/budget", "/activity", "/did.json"])
def test_what_is_shown_of_an_agent_looks_as_the_document_says(
    document: Json, ask: AgentConversation, rest: str
) -> None:
    for step, action in enumerate((SUM, FALSE, EMAIL), start=1):
        ask(action, step)
    shown = ask.api.get(f"/agents/{ask.agent_id}{rest}").json()
    _validator(document, "get", f"/agents/{{agent_id}}{rest}", 200).validate(shown)


@spec("B")
def test_a_registration_looks_as_the_document_says(document: Json, register: Register) -> None:
    _validator(document, "post", "/agents/register", 201).validate(register())


# Shutdown


@spec("B")
def test_a_request_in_flight_is_finished_before_the_server_ends(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    headers = {"X-API-Key": server.owner_key}
    agent = httpx.post(f"{server.base_url}/agents/register", json={"name": "a", "principal_id": "u"}, headers=headers)
    body = json.dumps({"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}).encode()
    place = urlsplit(server.base_url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as line:
        head = (
            f"POST /agents/{agent.json()['agent_id']}/verify HTTP/1.1\r\nHost: {place.netloc}\r\n"
            f"X-API-Key: {server.owner_key}\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode())
        # The server asks for the body once the request is being handled.
        assert line.recv(4096).startswith(b"HTTP/1.1 100")
        server.process.send_signal(signal.SIGTERM)
        _until_nobody_listens(place.hostname, place.port)
        line.sendall(body)
        answer = _read_all(line)
    assert answer.startswith(b"HTTP/1.1 200")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["decision"] == "APPROVED"
    assert server.stop() == 0
    again = Server(tmp_path / "data")
    with httpx.Client(base_url=again.base_url, headers=headers, timeout=30) as api:
        assert said(AgentConversation(api, agent.json(), "c")(SUM, 1)) == ("DENIED", "QWED-AGENT-LOOP-002")
    assert again.stop() == 0


@spec("B")
def test_a_server_asked_to_stop_as_soon_as_it_greets_stops(tmp_path: Path) -> None:
    assert Server(tmp_path / "data").stop() == 0


def _until_nobody_listens(host: str | None, port: int | None) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            socket.create_connection((host, port), timeout=30).close()


def _read_all(line: socket.socket) -> bytes:
    answer = b""
    while True:
        more = line.recv(65536)
        answer += more
        if not more:
            return answer
