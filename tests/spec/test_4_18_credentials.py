"""Ruling 4.18 and spec 9.8: lookup, comparison, display and counting of keys and tokens."""

import hmac
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qwed.domain import credentials
from qwed.gate import Gate
from qwed.kernel.authentication import find_key
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import SUM, Json
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.gate_factory import open_gate
from tests.support.metrics_scrape import Scrape
from tests.support.store_parts import StoreParts

HERE = {"conversation_id": "c", "step_number": 1}
NOBODY = "agent_" + "0" * 24


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with open_gate(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Record the arguments of `hmac.compare_digest`."""
    asked: list[tuple[Any, Any]] = []
    real = hmac.compare_digest

    def compare(one: Any, other: Any) -> bool:
        asked.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    return asked


@spec("9.8", "guide/Timing-safe token verification")
def test_every_token_is_compared_in_constant_time_whoever_shows_it_for_whom(
    gate: Gate, compared: list[tuple[Any, Any]]
) -> None:
    agent = gate.register_agent(name=unique_name(), principal_id="u")
    token, digest = agent.agent_token, credentials.digest_of(agent.agent_token)
    other = token[:-1] + ("0" if token[-1] != "0" else "1")
    shown = [(agent.agent_id, token), (agent.agent_id, other), (agent.agent_id, ""), (NOBODY, token)]
    codes = [
        (gate.verify_action(agent_id, SUM, HERE, agent_token=text).error or {}).get("code") for agent_id, text in shown
    ]
    assert codes == [None, *["QWED-AGENT-002"] * 3]
    # One comparison each, of digests of equal length, also for an unknown key.
    kept = [digest, digest, digest, bytes(32)]
    assert compared == [(credentials.digest_of(text), known) for (_, text), known in zip(shown, kept, strict=True)]


@spec("9.8")
def test_every_key_is_compared_in_constant_time_also_where_there_is_none(
    gate: Gate, compared: list[tuple[Any, Any]]
) -> None:
    key = gate.owner_key or ""
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    unknown = "qwed_live_" + "f" * 52
    found = [find_key(text, gate.services.store) for text in (key, wrong, unknown, "nonsense")]
    assert [each is not None for each in found] == [True, False, False, False]
    assert [one for one, _other in compared] == [
        credentials.digest_of(text) for text in (key, wrong, unknown, "nonsense")
    ]


@spec("9.8")
@pytest.mark.sqlite("it is asked for its plan of the statement; that of PostgreSQL depends on how many keys there are")
def test_a_key_is_looked_up_by_its_prefix_through_an_index(gate: Gate) -> None:
    store: Any = gate.services.store
    asked: list[str] = []
    connection: sqlite3.Connection = StoreParts(store).reader
    connection.set_trace_callback(asked.append)
    find_key("qwed_live_" + "f" * 52, store)
    connection.set_trace_callback(None)
    assert [text for text in asked if "f" * 13 in text] == []
    (lookup,) = [text for text in asked if "FROM keys" in text]
    assert "'qwed_live_ffffffffffff'" in lookup
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {lookup}"))
    assert "USING INDEX" in plan
    assert "SCAN" not in plan


@spec("9.8", "3.2")
def test_a_key_and_a_token_are_shown_once(spec_server: SpecServer, new_keyholders: Keyholders) -> None:
    made = new_keyholders.owner.post("/keys", json={"name": "k", "role": "member"}).json()
    agent = new_keyholders.create_agent().agent
    rotated = new_keyholders.owner.post(f"/agents/{agent['agent_id']}/rotate-token").json()
    shown = [made["key"], agent["agent_token"], rotated["agent_token"]]
    assert len(set(shown)) == 3
    assert made["key"].startswith("qwed_live_")
    places = ["/keys", "/changes", "/agents", f"/agents/{agent['agent_id']}", "/audit/entries", "/approvals"]
    told = "".join(new_keyholders.owner.get(place).text for place in places)
    for text in shown:
        assert text not in told
        assert credentials.digest_of(text).hex() not in told


@spec("9.8", "7.1")
def test_strangers_are_counted_and_leave_no_leaf(spec_server: SpecServer, new_keyholders: Keyholders) -> None:
    agent, scrape = new_keyholders.create_agent(), Scrape(spec_server.base_url, spec_server.keys["owner"])
    size = new_keyholders.owner.get("/audit/head").json()["size"]
    before = scrape.value("qwed_unauthenticated_total")
    body: Json = {"action": SUM, "context": HERE}
    with (
        spec_server.client() as nobody,
        spec_server.client("qwed_live_" + "f" * 52) as guessing,
        spec_server.client("revoked") as former,
    ):
        for client in (nobody, guessing, former):
            assert client.post(f"/agents/{agent.agent_id}/verify", json=body).status_code == 401
            assert client.get("/agents").status_code == 401
    assert scrape.value("qwed_unauthenticated_total") == before + 6
    assert new_keyholders.owner.get("/audit/head").json()["size"] == size


@spec("9.8")
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_member_key_decides_for_agents_up_to_level_2(spec_server: SpecServer, level: int) -> None:
    body = {"action": {"type": "calculate", "query": "2+2"}, "context": {"conversation_id": "c", "step_number": 1}}
    with spec_server.client("owner") as owner, spec_server.client("member") as member:
        registrant = owner if level == 3 else member
        agent = registrant.post(
            "/agents/register", json={"name": unique_name("levelled"), "principal_id": "u", "trust_level": level}
        ).json()
        path = f"/agents/{agent['agent_id']}/verify"
        answer = member.post(path, json=body)
        token = {"Authorization": f"Bearer {agent['agent_token']}"}
        with_token = member.post(path, json=body, headers=token).json()
    refused = answer.json().get("error", {}).get("code") == "QWED-AUTH-003"
    assert (answer.status_code, refused) == ((403, True) if level == 3 else (200, False))
    assert with_token.get("error", {}).get("code") != "QWED-AUTH-003"


@spec("9.8")
@pytest.mark.parametrize("path", ["verify", "tools/get_weather"])
def test_a_member_key_decides_for_the_agents_it_registered_only(spec_server: SpecServer, path: str) -> None:
    profile = {"name": unique_name("of a colleague"), "principal_id": "u"}
    context = {"conversation_id": "c", "step_number": 1}
    body: Json = {"action": {"type": "calculate", "query": "2+2"}, "context": context}
    if path != "verify":
        body = {"parameters": {"city": "Oslo"}, "context": context}
    with spec_server.client("owner") as owner, spec_server.client("member") as member:
        colleague = owner.post("/keys", json={"name": "colleague", "role": "member"}).json()["key"]
        agent = owner.post("/agents/register", json=profile, headers={"X-API-Key": colleague}).json()
        address, own = f"/agents/{agent['agent_id']}/{path}", {"X-API-Key": colleague}
        token = {"Authorization": f"Bearer {agent['agent_token']}"}
        refused = member.post(address, json=body)
        allowed = [
            member.post(
                address, json={**body, "context": {**context, "step_number": step}}, headers=headers
            ).status_code
            for step, headers in enumerate((own, token, {"X-API-Key": spec_server.keys["owner"]}), start=1)
        ]
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "QWED-AUTH-003")
    assert "the agents it registered" in refused.json()["error"]["message"]
    assert allowed == [200, 200, 200]


@spec("9.8")
def test_an_agent_of_level_3_elsewhere_is_as_unknown_as_one_that_is_not_there(spec_server: SpecServer) -> None:
    body = {"action": {"type": "calculate", "query": "2+2"}, "context": {"conversation_id": "c", "step_number": 1}}
    with spec_server.client("foreign") as foreign, spec_server.client("member") as member:
        fields = {"name": unique_name("elsewhere"), "principal_id": "u", "trust_level": 3}
        theirs = foreign.post("/agents/register", json=fields).json()["agent_id"]
        answers = [member.post(f"/agents/{name}/verify", json=body) for name in (theirs, f"{theirs[:-4]}0000")]
    first, second = ((answer.status_code, answer.json()["error"]["code"]) for answer in answers)
    assert first == second == (404, "QWED-AGENT-001")
