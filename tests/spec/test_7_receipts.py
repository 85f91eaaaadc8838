"""DESIGN 7, receipts: an action permitted without a signed token gets a proof that it is in the log."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import KeySet

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, WRITE, WRONG_SUM, Json, another, proof_of
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.raw_http import message, send_concurrently
from tests.support.receipt_check import hash_of_leaf, require_receipt, root_from, root_of
from tests.support.server import Server

MANY, LINES = 200, 40


def keys_of(client: httpx.Client) -> KeySet:
    return KeySet.import_key_set(client.get("/.well-known/jwks.json").json())


@pytest.fixture(scope="module")
def keys(stranger: httpx.Client) -> KeySet:
    return keys_of(stranger)


def _tool(ask: AgentConversation) -> Json:
    body = {"parameters": {"city": "Oslo"}, "context": {"conversation_id": "tool", "step_number": 1}}
    answer: Json = ask.api.post(f"/agents/{ask.agent_id}/tools/get_weather", json=body).json()
    return answer


PERMITTED: dict[str, Callable[[AgentConversation], Json]] = {
    "approved": lambda ask: ask(SUM, 1),
    "corrected": lambda ask: ask(WRONG_SUM, 1),
    "medium risk": lambda ask: ask(EMAIL, 1),
    "a tool": _tool,
}


@spec("4.2", "7.1")
@pytest.mark.parametrize("name", PERMITTED)
def test_what_is_permitted_carries_a_receipt_that_verifies(
    asking: Callable[..., AgentConversation], keys: KeySet, name: str
) -> None:
    ask = asking(trust_level=2, permissions={"allowed_tools": ["get_weather", "send_email"]})
    answer = PERMITTED[name](ask)
    assert answer["decision"] in ("APPROVED", "CORRECTED")
    leaf = require_receipt(answer["attestation"], keys, answer["action_id"])
    found = answer["verification"]
    assert (leaf["decision"], leaf["agent_id"], leaf["v"]) == (answer["decision"], ask.agent_id, 2)
    assert (leaf["status"], leaf["engine"], leaf["risk_level"]) == (
        found["status"],
        found["engine"],
        found["risk_level"],
    )


@spec("4.2")
def test_what_may_not_happen_carries_none(asking: Callable[..., AgentConversation]) -> None:
    for level, action in ((0, SUM), (1, EMAIL), (1, WRITE), (3, FALSE)):
        answer = asking(trust_level=level)(action, 1)
        assert answer["decision"] in ("PENDING", "DENIED")
        assert "attestation" not in answer


@spec("7.1")
def test_a_receipt_tells_nothing_of_what_was_asked(ask: AgentConversation) -> None:
    action = {"type": "calculate", "query": "31337 + 1", "target": "kestrel"}
    answer = ask(action, 1, conversation="kestrel talk", user_intent="kestrel wish", subject="kestrel@example.com")
    shown = json.dumps(answer["attestation"])
    assert "kestrel" not in shown
    assert "31337" not in shown
    leaf = json.loads(answer["attestation"]["leaf"])
    assert not {"action_hash", "sub", "conversation_id"} & set(leaf)


@spec("7.1")
def test_what_is_asked_twice_with_one_key_has_one_receipt(ask: AgentConversation, keys: KeySet) -> None:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}
    first, second = (ask.send(body, {"Idempotency-Key": "again"}).json() for _ in range(2))
    require_receipt(first["attestation"], keys, first["action_id"])
    assert second == first


@spec("7.1")
def test_a_receipt_stays_good_while_the_log_grows_and_leads_to_its_newest_head(
    api: httpx.Client, ask: AgentConversation, keys: KeySet
) -> None:
    first = ask(SUM, 1)
    for step in range(2, 9):
        ask(another(step), step)
    require_receipt(first["attestation"], keys, first["action_id"])
    leaves: list[str] = []
    while page := api.get("/audit/entries", params={"from_index": len(leaves), "limit": 1000}).json()["entries"]:
        leaves += [entry["leaf"] for entry in page]
    head = first["attestation"]["head"]
    assert leaves[first["attestation"]["index"]] == first["attestation"]["leaf"]
    assert root_of(leaves[: head["size"]]).hex() == head["root"]


@spec("7.1")
@pytest.mark.parametrize("part", ["leaf", "path", "index", "size"])
def test_a_receipt_that_was_touched_leads_nowhere(ask: AgentConversation, keys: KeySet, part: str) -> None:
    ask(another(1), 1)
    answer = ask(SUM, 2)
    receipt: Json = answer["attestation"]
    index, size = receipt["index"], receipt["head"]["size"]
    leaf, path = receipt["leaf"], [bytes.fromhex(each) for each in receipt["path"]]
    if part == "leaf":
        leaf = leaf.replace('"risk_level":"low"', '"risk_level":"medium"')
    elif part == "path":
        path[0] = bytes(32)
    elif part == "index":
        index ^= 1
    else:
        size = index + 1 if size > index + 1 else size + 1
    try:
        root = root_from(index, size, hash_of_leaf(leaf), path).hex()
    except AssertionError:
        return
    assert root != receipt["head"]["root"]


@spec("7.1")
def test_two_hundred_at_once_have_a_receipt_each_and_no_two_the_same_place(
    server: Server, register: Callable[..., Json], keys: KeySet
) -> None:
    agents = [register(trust_level=2)["agent_id"] for _ in range(LINES)]
    asked = [
        message(
            f"/agents/{agents[number % LINES]}/verify",
            {
                "action": {"type": "calculate", "query": f"{number} + 1"},
                "context": {"conversation_id": f"at once {number}", "step_number": 1},
            },
            {"X-API-Key": server.owner_key},
        )
        for number in range(MANY)
    ]
    heard = [one.json for one in send_concurrently(server.base_url, asked, LINES) if one is not None]
    assert [answer["decision"] for answer in heard] == ["APPROVED"] * MANY
    for answer in heard:
        require_receipt(answer["attestation"], keys, answer["action_id"])
    receipts = [answer["attestation"] for answer in heard]
    assert len({receipt["index"] for receipt in receipts}) == MANY
    roots: dict[int, set[str]] = {}
    for receipt in receipts:
        roots.setdefault(receipt["head"]["size"], set()).add(receipt["head"]["root"])
    assert all(len(each) == 1 for each in roots.values())
    # Entries of one commit are under one head.
    assert len(roots) < MANY


@spec("7.1", "9.2")
def test_a_receipt_and_its_retry_are_the_same_after_a_restart(tmp_path: Path) -> None:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}
    answers: list[Json] = []
    agent_id = ""
    for _ in range(2):
        server = Server(tmp_path / "data")
        with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
            if not agent_id:
                profile = {"name": "retrying", "principal_id": "user_1"}
                agent_id = client.post("/agents/register", json=profile).json()["agent_id"]
            for key in ("first", "second"):
                asked = {**body, "context": {"conversation_id": key, "step_number": 1}}
                answer = client.post(f"/agents/{agent_id}/verify", json=asked, headers={"Idempotency-Key": key})
                answers.append(answer.json())
                require_receipt(answers[-1]["attestation"], keys_of(client), answers[-1]["action_id"])
        assert server.stop() == 0
    assert answers[:2] == answers[2:]


@spec("7.1")
@pytest.mark.parametrize(
    "place", [pytest.param(":memory:", marks=pytest.mark.sqlite("it alone can be kept in memory")), "a directory"]
)
def test_in_process_a_directory_gives_receipts_and_memory_gives_none(tmp_path: Path, place: str) -> None:
    with open_gate(place if place == ":memory:" else tmp_path / "data") as gate:
        agent = gate.register_agent(name="inside", principal_id="user_1").agent_id
        context: dict[str, Any] = {"conversation_id": "c", "step_number": 1}
        answer = gate.verify_action(agent, SUM, context)
        assert answer.decision == "APPROVED"
        assert proof_of({"attestation": answer.attestation}) == (None if place == ":memory:" else "receipt")
