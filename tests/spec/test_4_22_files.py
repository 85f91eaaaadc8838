"""Ruling 4.22: an action may carry a large file, which is analysed and not stored."""

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation, Register
from tests.spec.sections import spec
from tests.support.server import Server
from tests.support.stored_rows import StoredRows

TABLE = b"region,total\nEU,10\nUS,20\n"


def action(claim: str, file: bytes = TABLE, **more: Any) -> dict[str, Any]:
    parameters = {"content_base64": base64.b64encode(file).decode(), **more}
    return {"type": "verify_stats", "query": claim, "parameters": parameters}


@pytest.fixture
def agent(api: httpx.Client, register: Register) -> AgentConversation:
    return AgentConversation(api, register())


@spec("2.2")
def test_a_claim_about_a_file_is_decided(agent: AgentConversation) -> None:
    assert agent(action("sum of total = 30"), 1)["decision"] == "APPROVED"
    assert agent(action("sum of total = 31"), 2)["decision"] == "DENIED"


@spec("2.2")
def test_of_the_file_only_its_hash_is_kept(agent: AgentConversation, api: httpx.Client, server: Server) -> None:
    file = TABLE + b"Atlantis,12345678\n"
    answer = agent(action("rows = 3", file), 1)
    assert answer["decision"] == "APPROVED"
    shown = api.get(f"/agents/{agent.agent_id}/activity").json()["activities"][0]["action"]
    encoded = base64.b64encode(file).decode()
    assert shown["parameters"]["content_base64"] == f"sha256:{hashlib.sha256(encoded.encode()).hexdigest()}"
    kept = StoredRows(server.data_dir).bytes()
    assert encoded.encode() not in kept
    assert b"Atlantis" not in kept


@spec("2.2")
def test_what_is_attested_is_the_action_as_it_was_sent(agent: AgentConversation) -> None:
    sent = action("rows = 2")
    answer = agent(sent, 1, options={"require_attestation": True})
    claims = answer["attestation"].split(".")[1]
    canonical = json.dumps(sent, sort_keys=True, separators=(",", ":")).encode()
    sub = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    assert sub == f"sha256:{hashlib.sha256(canonical).hexdigest()}"


@spec("2.2")
def test_the_same_claim_about_another_file_is_another_action(agent: AgentConversation) -> None:
    for step, file in enumerate((TABLE, TABLE + b"EU,1\n", TABLE + b"EU,2\n", TABLE + b"EU,3\n"), start=1):
        assert agent(action("max(total) = 20", file), step)["decision"] == "APPROVED"


@spec("2.2")
def test_a_file_may_be_larger_than_any_other_body(agent: AgentConversation) -> None:
    file = b"n\n" + b"1\n" * (1 << 20)
    assert agent(action("rows = 1048576", file), 1)["decision"] == "APPROVED"


@spec("2.2")
@pytest.mark.parametrize("kind", ["calculate", "verify_fact"])
def test_nothing_but_a_file_may_be_that_large(agent: AgentConversation, kind: str) -> None:
    body = {
        "action": {**action("rows = 1", b"1" * (1 << 20)), "type": kind},
        "context": {"conversation_id": "c", "step_number": 1},
    }
    response = agent.send(body)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "QWED-REQ-002")
    beside = {
        "action": action("rows = 1", b"1", note="x" * (1 << 20)),
        "context": {"conversation_id": "c", "step_number": 1},
    }
    assert agent.send(beside).status_code == 413


@spec("2.2")
def test_a_stranger_may_not_send_a_file(server: Server, agent: AgentConversation) -> None:
    body = {"action": action("rows = 1", b"1" * (1 << 20)), "context": {"conversation_id": "c", "step_number": 1}}
    response = httpx.post(f"{server.base_url}/agents/{agent.agent_id}/verify", json=body)
    assert response.status_code == 413


@spec("2.2")
@pytest.mark.parametrize("content", ["", "no base64!", None, 5, ["a"]])
def test_what_is_no_file_is_not_approved(agent: AgentConversation, content: Any) -> None:
    asked = {"type": "verify_stats", "query": "rows = 1", "parameters": {"content_base64": content}}
    assert agent(asked, 1)["decision"] in ("DENIED", "PENDING")
