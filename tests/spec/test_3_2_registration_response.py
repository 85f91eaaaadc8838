"""Spec 3.2 to 3.4: Registration Response, Agent Types, Agent Identity."""

import re
from typing import Any

import httpx
import pytest

from tests.conftest import Register
from tests.spec.requests import Json
from tests.spec.sections import spec


@spec("3.2", "guide/Registering an Agent")
def test_the_response_has_every_field_of_the_document(register: Register) -> None:
    agent = register()
    assert {"agent_id", "agent_token", "status", "created_at", "permissions", "budget"} <= set(agent)
    assert re.fullmatch(r"agent_[0-9a-f]+", agent["agent_id"])
    assert re.fullmatch(r"qwed_agent_[A-Za-z0-9_-]{32,}", agent["agent_token"])
    assert agent["status"] == "active"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", agent["created_at"])


@spec("3.2")
def test_the_token_is_shown_this_once(api: httpx.Client, register: Register) -> None:
    agent = register()
    shown = api.get(f"/agents/{agent['agent_id']}").json()
    assert shown == {name: value for name, value in agent.items() if name != "agent_token"}
    assert agent["agent_token"] not in api.get("/agents", params={"limit": 1000}).text


@spec("3.2")
def test_two_agents_of_one_principal_are_two(register: Register) -> None:
    one, other = register(principal_id="user_7"), register(principal_id="user_7")
    assert one["agent_id"] != other["agent_id"]
    assert one["agent_token"] != other["agent_token"]


@spec("3.2")
def test_the_list_of_agents_is_paged_and_complete(api: httpx.Client, register: Register) -> None:
    mine = {register()["agent_id"] for _ in range(5)}
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.get("/agents", params={"limit": 50, "cursor": cursor}).json()
        seen += [agent["agent_id"] for agent in page["agents"]]
        cursor = page["next_cursor"]
    assert mine <= set(seen)
    assert len(seen) == len(set(seen))


@spec("3.2")
@pytest.mark.parametrize("limit", ["0", "-1", "x", "1001", "1.5", ""])
def test_a_page_size_that_cannot_be_is_refused(api: httpx.Client, limit: str) -> None:
    response = api.get("/agents", params={"limit": limit})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "QWED-REQ-005")


@spec("3.3")
@pytest.mark.parametrize(("kind", "level"), [("supervised", 1), ("autonomous", 2), ("trusted", 3)])
def test_the_type_sets_the_trust_level(register: Register, kind: str, level: int) -> None:
    agent = register(type=kind)
    assert (agent["type"], agent["trust_level"]) == (kind, level)


@spec("3.3")
@pytest.mark.parametrize("kind", ["supervised", "autonomous", "trusted"])
@pytest.mark.parametrize(("level", "value"), [(0, 0), (1, 1), (2, 2), (3, 3), ("untrusted", 0), ("trusted", 3)])
def test_a_stated_trust_level_overrides_the_type(register: Register, kind: str, level: Any, value: int) -> None:
    agent = register(type=kind, trust_level=level)
    assert (agent["type"], agent["trust_level"]) == (kind, value)


@spec("3.4")
def test_agents_receive_a_did(register: Register) -> None:
    agent = register()
    assert agent["did"] == f"did:qwed:agent:{agent['agent_id']}"


@spec("3.4")
def test_the_did_document_names_who_vouches_for_the_agent(api: httpx.Client, register: Register) -> None:
    agent = register()
    document: Json = api.get(f"/agents/{agent['agent_id']}/did.json").json()
    (method,) = document["verificationMethod"]
    assert document["id"] == agent["did"]
    assert document["@context"][0] == "https://www.w3.org/ns/did/v1"
    assert document["controller"].startswith("did:qwed:node:")
    assert method["controller"] == document["controller"]
    assert document["assertionMethod"] == [method["id"]]
    (key,) = api.get("/.well-known/jwks.json").json()["keys"]
    assert method["publicKeyJwk"] == key
    assert "d" not in key
