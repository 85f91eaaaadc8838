"""Appendix B: every route refuses unknown parameters and bodies with too many values."""

import json
import re
from typing import Any

import httpx
import pytest

from qwed.api.routes import ROUTES, Route
from qwed.api.server.body import MAX_VALUES
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import Json, refusal_of, said
from tests.spec.sections import spec
from tests.support.full_organisations import body_of
from tests.support.route_caller import answer_to

_IN_PATH = re.compile(r"{\w+}")
WITH_A_BODY = [route for route in ROUTES if route.body is not None]
# A value for each parameter where it is known; on other routes the parameter is unknown.
PARAMETERS = {
    "limit": "1",
    "version": "1",
    "cursor": "1",
    "wait": "0",
    "state": "pending",
    "status": "retired",
    "agent_id": "agent_1",
    "kind": "all",
    "decision": "DENIED",
    "from": "2025-12-01",
    "to": "2025-12-02",
    "format": "json",
    "from_index": "0",
    "index": "0",
    "size": "1",
    "activity_id": "act_1",
    # The value is refused, because a stream that is followed never ends.
    "type": "nothing of the kind",
    "surprise": "1",
    "Limit": "1",
    "": "",
}


def _name(route: Route) -> str:
    return f"{route.method} {route.path}"


def _ask(client: httpx.Client, route: Route, query: dict[str, str]) -> httpx.Response:
    body = body_of(route.name)
    content = {} if body is None else {"json": body}
    return answer_to(client, route.method, _IN_PATH.sub("nobody", route.path), params=query, **content)


@spec("B")
@pytest.mark.parametrize("route", ROUTES, ids=_name)
def test_a_parameter_that_a_route_does_not_know_is_refused_by_name(
    spec_server: SpecServer, new_keyholders: Keyholders, route: Route
) -> None:
    before = new_keyholders.owner.get("/changes").json()
    with spec_server.client() as stranger:
        for name in [name for name in PARAMETERS if name not in route.query]:
            refused = _ask(new_keyholders.owner, route, {name: PARAMETERS[name]})
            assert refusal_of(refused) == (400, "QWED-REQ-005"), name
            assert f"`{name}`" in refused.json()["error"]["message"]
            assert refusal_of(_ask(stranger, route, {name: PARAMETERS[name]})) == (400, "QWED-REQ-005")
    known = {name: PARAMETERS[name] for name in route.query}
    assert refusal_of(_ask(new_keyholders.owner, route, known | {"surprise": "1"})) == (400, "QWED-REQ-005")
    assert new_keyholders.owner.get("/changes").json() == before


@spec("B")
@pytest.mark.parametrize("route", [route for route in ROUTES if route.query], ids=_name)
def test_each_parameter_that_is_documented_is_known(new_keyholders: Keyholders, route: Route) -> None:
    for name in route.query:
        answer = _ask(new_keyholders.owner, route, {name: PARAMETERS[name]})
        assert "unknown parameter" not in answer.text, name


def _full(values: int) -> list[int]:
    """Return a list with this many JSON separators."""
    return [0] * values


@spec("B")
@pytest.mark.parametrize("route", WITH_A_BODY, ids=_name)
def test_a_body_of_more_than_ten_thousand_values_is_413_wherever_one_is_read(
    new_keyholders: Keyholders, route: Route
) -> None:
    path = _IN_PATH.sub("nobody", route.path)
    if "{agent_id}" in route.path:
        path = route.path.replace("{agent_id}", new_keyholders.create_agent().agent_id)
        path = _IN_PATH.sub("nobody", path)
    refused = new_keyholders.owner.request(route.method, path, json={"x": _full(MAX_VALUES)})
    assert refusal_of(refused) == (413, "QWED-REQ-002")
    assert f"more than {MAX_VALUES} values" in refused.json()["error"]["message"]
    if route.is_decision:
        assert refused.json()["decision"] == "DENIED"


def _with(parameters: Any) -> Json:
    action = {"type": "tool_call", "tool": "log_message", "parameters": parameters}
    return {"action": action, "context": {"conversation_id": "c", "step_number": 1}}


def _marks(body: Json) -> int:
    text = json.dumps(body)
    return sum(text.count(mark) for mark in ",[{")


@spec("B")
def test_ten_thousand_values_are_read_and_one_more_is_not(ask: AgentConversation) -> None:
    room = MAX_VALUES - _marks(_with({"m": [0]}))
    largest = _with({"m": [0] * (room + 1)})
    assert _marks(largest) == MAX_VALUES
    assert said(ask.send(largest).json()) == ("APPROVED", None)
    assert refusal_of(ask.send(_with({"m": [0] * (room + 2)}))) == (413, "QWED-REQ-002")


@spec("B")
@pytest.mark.parametrize(
    "text",
    [",[{" * 100_000, '\\",' * 50_000, "\\\\" * 50_000 + ",", '"' * 50_000, "\n,\t" * 50_000, "\u201c,\u201d" * 20_000],
    ids=["marks", "escaped quotes", "backslashes", "quotes", "controls", "other quotes"],
)
def test_what_stands_in_a_text_is_no_value(ask: AgentConversation, text: str) -> None:
    assert said(ask.send(_with({"m": text})).json()) == ("APPROVED", None)


@spec("B")
@pytest.mark.parametrize(
    "body",
    [
        b'{"x": "' + b"," * 20_000,
        b'{"x": "\\' + b"," * 20_000,
        b"," * 20_000,
        b'"' + b'","' * 20_000,
        b"[" * 9_999,
        b'{"a":' * 9_999,
        b"\xff" + b"," * 20_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_body_that_only_begins_is_refused_at_once(ask: AgentConversation, body: bytes) -> None:
    refused = ask.api.post(f"/agents/{ask.agent_id}/verify", content=body)
    assert refused.status_code in (400, 413)
    assert refused.json()["decision"] == "DENIED"
