"""Spec 8.3, kill switch: an organisation stops and resumes all its agents."""

import json
from pathlib import Path

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, SUM, WRITE, WRONG_SUM, Json, action_of, refusal_of, said, settle
from tests.spec.sections import spec
from tests.support.server import Server
from tests.support.webhook_receivers import WebhookReceiver, answering

STOPPED = ("DENIED", "QWED-AGENT-003")


def _throw(client: httpx.Client, verb: str = "suspend-all", reason: str = "drill") -> httpx.Response:
    return client.post(f"/{verb}", json={"reason": reason})


@spec("8.3")
@pytest.mark.parametrize("role", Keyholders._fields)
def test_any_key_stops_every_agent_at_once(spec_server: SpecServer, new_keyholders: Keyholders, role: str) -> None:
    agents = [new_keyholders.create_agent(trust_level=level) for level in range(4)]
    thrown = _throw(getattr(new_keyholders, role))
    assert (thrown.status_code, thrown.json()["halted"]) == (200, True)
    for ask in agents:
        response = ask.send({"action": SUM, "context": {"conversation_id": "c", "step_number": 1}})
        assert (response.status_code, said(response.json())) == (403, STOPPED)
        assert ask.api.get(f"/agents/{ask.agent_id}").json()["status"] == "suspended"
    listed = new_keyholders.member.get("/agents").json()["agents"]
    assert {each["status"] for each in listed} == {"suspended"}
    with spec_server.client(token=agents[0].agent["agent_token"]) as agent:
        assert said(AgentConversation(agent, agents[0].agent)(SUM, 1)) == STOPPED


@spec("8.3")
def test_other_organisations_go_on(new_keyholders: Keyholders, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    _throw(new_keyholders.owner)
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_only_an_owner_or_approver_lets_them_go_on(new_keyholders: Keyholders, role: str) -> None:
    ask = new_keyholders.create_agent()
    _throw(new_keyholders.member)
    assert refusal_of(_throw(new_keyholders.member, "reactivate-all")) == (403, "QWED-AUTH-003")
    assert said(ask(SUM, 1)) == STOPPED
    put_back = _throw(getattr(new_keyholders, role), "reactivate-all")
    assert (put_back.status_code, put_back.json()["halted"]) == (200, False)
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_agents_suspended_one_by_one_stay_suspended(new_keyholders: Keyholders) -> None:
    ask, other = new_keyholders.create_agent(), new_keyholders.create_agent()
    new_keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "this one above all"})
    _throw(new_keyholders.owner)
    _throw(new_keyholders.owner, "reactivate-all")
    assert said(ask(SUM, 1)) == STOPPED
    assert said(other(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_waking_one_agent_wakes_nobody_while_all_are_stopped(new_keyholders: Keyholders) -> None:
    ask = new_keyholders.create_agent()
    new_keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"})
    _throw(new_keyholders.owner)
    new_keyholders.owner.post(f"/agents/{ask.agent_id}/reactivate", json={"reason": "explained"})
    assert said(ask(SUM, 1)) == STOPPED


@spec("8.3")
def test_who_is_registered_meanwhile_is_stopped_too(new_keyholders: Keyholders) -> None:
    _throw(new_keyholders.owner)
    ask = new_keyholders.create_agent()
    assert said(ask(SUM, 1)) == STOPPED
    _throw(new_keyholders.owner, "reactivate-all")
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_nothing_is_approved_while_all_are_stopped_and_anything_is_rejected(new_keyholders: Keyholders) -> None:
    ask = new_keyholders.create_agent()
    first, second = ask(EMAIL, 1), ask(EMAIL, 2)
    _throw(new_keyholders.member)
    assert refusal_of(settle(new_keyholders.approver, first["approval_id"])) == (409, "QWED-REQ-009")
    assert settle(new_keyholders.approver, second["approval_id"], "reject").status_code == 200
    _throw(new_keyholders.owner, "reactivate-all")
    assert settle(new_keyholders.approver, first["approval_id"]).status_code == 200
    assert action_of(ask, first["action_id"])["decision"] == "APPROVED"


@spec("8.3")
def test_each_throw_is_a_change_with_its_reason_and_a_second_one_is_none(new_keyholders: Keyholders) -> None:
    for verb in ("suspend-all", "suspend-all", "reactivate-all", "reactivate-all"):
        assert _throw(new_keyholders.owner, verb, f"because {verb}").status_code == 200
    changes: list[Json] = new_keyholders.member.get("/changes").json()["changes"]
    switched = [(each["event"], each["change"]["reason"]) for each in changes if each["event"] in ("halted", "resumed")]
    assert switched == [("resumed", "because reactivate-all"), ("halted", "because suspend-all")]


@spec("8.3")
@pytest.mark.parametrize("verb", ["suspend-all", "reactivate-all"])
def test_the_switch_takes_a_reason_and_a_key(spec_server: SpecServer, new_keyholders: Keyholders, verb: str) -> None:
    assert refusal_of(new_keyholders.owner.post(f"/{verb}", json={})) == (400, "QWED-REQ-004")
    with spec_server.client(token=new_keyholders.create_agent().agent["agent_token"]) as agent:
        assert refusal_of(_throw(agent, verb)) == (403, "QWED-AUTH-003")
    with spec_server.client() as stranger:
        assert refusal_of(_throw(stranger, verb)) == (401, "QWED-AUTH-001")
    assert said(new_keyholders.create_agent()(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_what_was_stopped_is_stopped_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    headers = {"X-API-Key": server.owner_key}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=30) as owner:
        agent = owner.post("/agents/register", json={"name": "a", "principal_id": "u"}).json()
        assert _throw(owner).status_code == 200
    assert server.stop() == 0
    again = Server(tmp_path / "data")
    with httpx.Client(base_url=again.base_url, headers=headers, timeout=30) as owner:
        assert said(AgentConversation(owner, agent)(SUM, 1)) == STOPPED
        _throw(owner, "reactivate-all")
        assert said(AgentConversation(owner, agent)(SUM, 1)) == ("APPROVED", None)
    assert again.stop() == 0


@spec("8.3", "4.2")
@pytest.mark.parametrize("stop", ["one", "all"])
@pytest.mark.parametrize("action", [WRITE, WRONG_SUM], ids=["approved", "corrected"])
def test_who_is_stopped_is_given_nothing_to_act_on_until_it_goes_on(
    spec_server: SpecServer, new_keyholders: Keyholders, stop: str, action: Json
) -> None:
    ask = new_keyholders.create_agent(trust_level=2)
    asked = ask(action, 1, options={"require_attestation": True})
    if asked["decision"] == "PENDING":
        assert settle(new_keyholders.approver, asked["approval_id"]).status_code == 200
    given = action_of(ask, asked["action_id"])
    assert given["attestation"]
    stopped, on = {
        "one": (f"/agents/{ask.agent_id}/suspend", f"/agents/{ask.agent_id}/reactivate"),
        "all": ("/suspend-all", "/reactivate-all"),
    }[stop]
    assert new_keyholders.member.post(stopped, json={"reason": "odd"}).status_code == 200
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        for client in (agent, new_keyholders.member, new_keyholders.owner):
            shown = action_of(ask, asked["action_id"], client)
            assert shown["error"]["code"] == "QWED-AGENT-003"
            nothing = {"decision": "DENIED", "error": shown["error"], "attestation": None, "verified_query": None}
            assert shown == given | nothing
        assert new_keyholders.owner.post(on, json={"reason": "explained"}).status_code == 200
        assert action_of(ask, asked["action_id"], agent) == given


@spec("8.3")
def test_the_organisation_is_told_once_that_all_are_stopped(tmp_path: Path) -> None:
    server, told = Server(tmp_path / "data", QWED_WEBHOOK_ALLOW_PRIVATE="true"), WebhookReceiver(answering(200))
    headers = {"X-API-Key": server.owner_key}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=30) as owner:
        assert owner.put("/webhook", json={"url": told.url(scheme="http")}).status_code == 200
        agent = owner.post("/agents/register", json={"name": "a", "principal_id": "user_7"}).json()["agent_id"]
        for verb in ("suspend-all", "suspend-all", "reactivate-all"):
            assert _throw(owner, verb, "a secret reason").status_code == 200
        assert owner.post(f"/agents/{agent}/suspend", json={"reason": "odd"}).status_code == 200
        notices = {notice["activity_id"]: notice for notice in (json.loads(told.next().body) for _ in range(2))}
        halted = next(each for each in owner.get("/changes").json()["changes"] if each["event"] == "halted")
    assert server.stop() == 0
    told.close()
    everybody = notices.pop(halted["activity_id"])
    assert set(everybody) == {"id", "event", "at", "organisation_id", "activity_id"}
    assert everybody["event"] == "suspended"
    (one,) = notices.values()
    assert (one["event"], one["agent_id"]) == ("suspended", agent)
