"""Ruling 4.11: a refusal quotes the input briefly, on one line, without its secrets."""

from collections.abc import Callable

import httpx
import pytest

from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import SUM, Json
from tests.spec.scenario import SECRET, STATE, Scene, raw, require_discretion
from tests.spec.sections import spec

ODD = "x\n\x1b[31m\u202e" + "y" * 500


@pytest.fixture
def scene(spec_server: SpecServer, keyholders: Keyholders, foreign_agent: Json) -> Scene:
    return Scene(spec_server, keyholders, keyholders.create_agent(), foreign_agent)


def _context() -> Json:
    return {"conversation_id": "c", "step_number": 1}


ECHOES: dict[str, Callable[[Scene, str], httpx.Response]] = {
    "action type": lambda s, text: s.verify({"type": text}),
    "tool": lambda s, text: s.verify({"type": "tool_call", "tool": text}),
    "tool in the path": lambda s, _text: s.plain("POST", "{agent}/tools/x", {"context": _context()}),
    "field of a request": lambda s, text: s.sent({"action": SUM, "context": _context(), text: 1}),
    "field of an action": lambda s, text: s.verify({**SUM, text: 1}),
    "field of a context": lambda s, text: s.sent({"action": SUM, "context": {**_context(), text: 1}}),
    "option": lambda s, text: s.sent({"action": SUM, "context": _context(), "options": {text: 1}}),
    "threshold": lambda s, text: s.sent({"action": SUM, "context": _context(), "options": {"risk_threshold": text}}),
    "state source": lambda s, text: s.verify(pre_action_state_hash=STATE, state_source=text),
    "dialect": lambda s, text: s.verify({"type": "execute_sql", "query": "SELECT 1", "parameters": {"dialect": text}}),
    "language": lambda s, text: s.verify({"type": "execute_code", "code": "1", "parameters": {"language": text}}),
    "query": lambda s, text: s.verify({"type": "calculate", "query": f"1/0 {text}"}),
    "formula": lambda s, text: s.verify({"type": "verify_logic", "query": f"({text} x)"}),
    "sql": lambda s, text: s.verify({"type": "execute_sql", "query": f"SELECT {text} FROM {text}; {text}"}),
    "code": lambda s, text: s.verify({"type": "execute_code", "code": f"import os\nos.system('{text}')"}),
    "shell": lambda s, text: s.verify({"type": "shell_command", "query": f"curl http://{text} | sh"}),
    "path": lambda s, text: s.verify({"type": "file_delete", "target": text}),
    "field of a registration": lambda s, text: s.plain("POST", "/agents/register", {"name": "x", text: 1}),
    "agent type": lambda s, text: s.plain("POST", "/agents/register", {"name": "x", "principal_id": "u", "type": text}),
    "trust word": lambda s, text: s.plain(
        "POST", "/agents/register", {"name": "x", "principal_id": "u", "trust_level": text}
    ),
    "permission": lambda s, text: s.plain(
        "POST", "/agents/register", {"name": "x", "principal_id": "u", "permissions": {text: 1}}
    ),
    "budget": lambda s, text: s.plain(
        "POST", "/agents/register", {"name": "x", "principal_id": "u", "budget": {text: 1}}
    ),
    "field of a trust request": lambda s, text: s.plain("POST", "{agent}/trust", {"to_level": 2, text: 1}),
    "field of a reason": lambda s, text: s.plain("POST", "{agent}/suspend", {"reason": "x", text: 1}),
    "field of a key": lambda s, text: s.plain("POST", "/keys", {"name": "x", "role": "member", text: 1}),
    "role": lambda s, text: s.plain("POST", "/keys", {"name": "x", "role": text}),
    "field of an execution": lambda s, text: s.plain(
        "POST", "{agent}/actions/act_0/execution", {"success": True, text: 1}
    ),
    "field of a webhook": lambda s, text: s.plain("PUT", "/webhook", {"url": "https://example.com", text: 1}),
    "url": lambda s, text: s.plain("PUT", "/webhook", {"url": f"https://{text}@example.com/"}),
    "field of a tool": lambda s, text: s.plain("PUT", "/tools/post_invoice", {"risk_level": "low", text: 1}),
    "risk of a tool": lambda s, text: s.plain("PUT", "/tools/post_invoice", {"risk_level": text}),
    "engine of a tool": lambda s, text: s.plain(
        "PUT", "/tools/post_invoice", {"risk_level": "low", "verification_engine": text}
    ),
    "key twice": lambda s, text: raw(
        s,
        "{agent}/verify",
        httpx.Request("POST", "http://x", json={text: 1}).content.replace(b"}", b"")
        + b","
        + httpx.Request("POST", "http://x", json={text: 1}).content.replace(b"{", b""),
    ),
    "query parameter": lambda s, text: s.keyholders.owner.get(f"/agents/{s.ask.agent_id}/activity", params={text: 1}),
}


@spec("A")
@pytest.mark.parametrize("place", ECHOES)
def test_a_secret_that_was_sent_is_not_said_again(scene: Scene, place: str) -> None:
    response = ECHOES[place](scene, SECRET)
    assert response.status_code < 500
    assert response.json()["error"]["code"]
    require_discretion(response, scene)


@spec("A")
@pytest.mark.parametrize("place", ECHOES)
def test_what_was_sent_is_repeated_short_and_on_one_line(scene: Scene, place: str) -> None:
    response = ECHOES[place](scene, ODD)
    assert response.status_code < 500
    error = response.json()["error"]
    assert error["message"].isprintable()
    assert len(error["message"]) < 400
