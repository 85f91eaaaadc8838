"""Spec 7.1, `execution` and `resolution`: how an action was permitted and its reported outcome."""

import hashlib
import json
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, FALSE, SUM, WRONG_SUM, Json, action_of, changes_of, refusal_of, settle
from tests.spec.sections import spec
from tests.support.raw_http import message, send_concurrently

CONFLICT = (409, "QWED-REQ-009")


def _report(
    ask: AgentConversation, action_id: str, client: httpx.Client | None = None, **body: object
) -> httpx.Response:
    return (client or ask.api).post(f"/agents/{ask.agent_id}/actions/{action_id}/execution", json=body)


def _hash(canonical: str) -> str:
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


@spec("7.1")
@pytest.mark.parametrize("success", [True, False])
@pytest.mark.parametrize("action", [SUM, WRONG_SUM], ids=["APPROVED", "CORRECTED"])
def test_an_execution_is_kept_with_its_action(keyholders: Keyholders, action: Json, success: bool) -> None:
    ask = keyholders.create_agent()
    action_id = ask(action, 1)["action_id"]
    assert action_of(ask, action_id)["execution"] is None
    logged = _report(ask, action_id, success=success, result={"rows": 3})
    assert logged.status_code == 200
    execution = logged.json()["execution"]
    assert (execution["success"], execution["result_hash"]) == (success, _hash('{"rows":3}'))
    assert execution["at"].endswith("Z")
    assert action_of(ask, action_id)["execution"] == execution
    (listed,) = ask.activity()["activities"]
    assert listed["execution"] == execution
    (executed,) = changes_of(ask, "executed")
    assert executed["change"] == {"about": action_id, "success": success, "result_hash": execution["result_hash"]}
    assert executed["by"].startswith("key_")


@spec("7.1")
@pytest.mark.parametrize(
    ("result", "canonical"),
    [
        ('{"b": 1, "a": [true, null]}', '{"a":[true,null],"b":1}'),
        ('  {"a":[true,null],\n"b":1.0}', '{"a":[true,null],"b":1}'),
        ('{"n": 1e2, "m": 0.10}', '{"m":0.1,"n":100}'),
        ('"caf\\u00e9"', '"café"'),
        ('"\\u20ac / \\""', '"€ / \\""'),
        ("0", "0"),
        ("false", "false"),
        ('""', '""'),
        ("[]", "[]"),
        ('{"\\ud83d\\ude00": 1, "\\ufb33": 2}', '{"\U0001f600":1,"\ufb33":2}'),
    ],
)
def test_the_hash_is_of_the_canonical_json_of_the_result(keyholders: Keyholders, result: str, canonical: str) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    body = f'{{"success": true, "result": {result}}}'
    logged = keyholders.member.post(f"/agents/{ask.agent_id}/actions/{action_id}/execution", content=body)
    assert logged.json()["execution"]["result_hash"] == _hash(canonical)


@spec("7.1")
def test_of_the_result_only_its_hash_is_kept(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    assert _report(ask, action_id, success=True, result="the patient is Ada Lovelace").status_code == 200
    assert "Lovelace" not in json.dumps([action_of(ask, action_id), ask.activity(kind="all")])


@spec("7.1")
def test_a_hash_may_be_given_in_place_of_the_result_or_beside_it(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    first, second, third = (ask({**SUM, "target": str(step)}, step)["action_id"] for step in (1, 2, 3))
    stated = _hash('"done"')
    reports: tuple[tuple[str, dict[str, Any]], ...] = (
        (first, {"result_hash": stated}),
        (second, {"result_hash": stated, "result": "done"}),
        (third, {}),
    )
    for action_id, body in reports:
        logged = _report(ask, action_id, success=True, **body)
        assert logged.json()["execution"]["result_hash"] == body.get("result_hash")


@spec("7.1")
@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, (400, "QWED-REQ-004")),
        ({"success": "yes"}, (400, "QWED-REQ-001")),
        ({"success": 1}, (400, "QWED-REQ-001")),
        ({"success": None}, (400, "QWED-REQ-001")),
        ({"success": True, "result_hash": "abc"}, (400, "QWED-REQ-001")),
        ({"success": True, "result_hash": "sha256:" + "A" * 64}, (400, "QWED-REQ-001")),
        ({"success": True, "result_hash": "sha256:" + "0" * 64, "result": 1}, (400, "QWED-REQ-001")),
        ({"success": True, "attestation": 5}, (400, "QWED-REQ-001")),
        ({"success": True, "attestation": "eyJ.eyJ.x"}, (400, "QWED-REQ-001")),
        ({"success": True, "cost": 0}, (400, "QWED-REQ-001")),
        ([], (400, "QWED-REQ-001")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_report_that_is_none_is_refused_and_leaves_room_for_one(
    keyholders: Keyholders, body: object, refusal: tuple[int, str]
) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    place = f"/agents/{ask.agent_id}/actions/{action_id}/execution"
    assert refusal_of(keyholders.member.post(place, json=body)) == refusal
    assert keyholders.member.post(place, json={"success": True}).status_code == 200


@spec("7.1")
def test_a_result_that_is_not_deterministic_is_refused(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    place = f"/agents/{ask.agent_id}/actions/{action_id}/execution"
    refused = keyholders.member.post(place, content='{"success": true, "result": NaN}')
    assert refusal_of(refused) == (400, "QWED-AGENT-STATE-004")


@spec("7.1")
def test_an_execution_is_told_once(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    first = _report(ask, action_id, success=True, result=1).json()["execution"]
    assert refusal_of(_report(ask, action_id, success=False, result=2)) == CONFLICT
    assert action_of(ask, action_id)["execution"] == first
    assert len(changes_of(ask, "executed")) == 1


@spec("7.1", "9.4")
def test_of_many_reports_at_once_one_is_kept(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    place = f"/agents/{ask.agent_id}/actions/{action_id}/execution"
    headers = {"x-api-key": spec_server.keys["member"]}
    calls = [message(place, {"success": True, "result": number}, headers) for number in range(16)]
    heard = send_concurrently(spec_server.base_url, calls, len(calls))
    assert sorted(0 if each is None else each.status for each in heard) == [200] + [409] * 15
    assert len(changes_of(ask, "executed")) == 1


@spec("7.1")
def test_the_agent_reports_with_its_own_token(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask, other = keyholders.create_agent(), keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    with spec_server.client(token=other.agent["agent_token"]) as stranger:
        assert refusal_of(_report(ask, action_id, stranger, success=True)) == (401, "QWED-AGENT-002")
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert _report(ask, action_id, agent, success=True).status_code == 200
    (executed,) = changes_of(ask, "executed")
    assert executed["by"] == ask.agent_id


@spec("7.1")
def test_the_attestation_shown_is_that_of_the_action(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    first, second = (ask({**SUM, "target": str(step)}, step, options={"require_attestation": True}) for step in (1, 2))
    wrong = _report(ask, first["action_id"], success=True, attestation=second["attestation"])
    assert refusal_of(wrong) == (400, "QWED-REQ-001")
    right = _report(ask, first["action_id"], success=True, attestation=first["attestation"])
    assert right.status_code == 200


@spec("7.1")
def test_the_attestation_of_an_approved_action_is_the_one_to_show(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    settle(keyholders.approver, waiting["approval_id"])
    attestation = action_of(ask, waiting["action_id"])["attestation"]
    assert _report(ask, waiting["action_id"], success=True, attestation=attestation).status_code == 200


@spec("7.1")
@pytest.mark.parametrize("outcome", ["DENIED", "PENDING", "rejected"])
def test_what_was_not_permitted_is_no_execution_and_is_logged_all_the_same(
    keyholders: Keyholders, outcome: str
) -> None:
    ask = keyholders.create_agent()
    answer = ask(FALSE if outcome == "DENIED" else EMAIL, 1)
    if outcome == "rejected":
        settle(keyholders.approver, answer["approval_id"], "reject")
    refused = _report(ask, answer["action_id"], success=True, result="sent")
    assert refusal_of(refused) == CONFLICT
    assert ("PENDING" if outcome == "PENDING" else "DENIED") in refused.json()["error"]["message"]
    assert action_of(ask, answer["action_id"])["execution"] is None
    (confessed,) = changes_of(ask, "executed_unpermitted")
    assert confessed["change"] == {"about": answer["action_id"], "success": True, "result_hash": _hash('"sent"')}
    assert changes_of(ask, "executed") == []


@spec("7.1")
def test_what_was_approved_later_is_reported_later(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    assert refusal_of(_report(ask, waiting["action_id"], success=True)) == CONFLICT
    settle(keyholders.approver, waiting["approval_id"])
    assert _report(ask, waiting["action_id"], success=True).json()["execution"]["success"] is True


@spec("7.1")
def test_an_execution_belongs_to_an_action_of_its_agent(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask, other = keyholders.create_agent(), keyholders.create_agent()
    action_id = ask(SUM, 1)["action_id"]
    registered = changes_of(ask, "registered")[0]["activity_id"]
    assert refusal_of(_report(other, action_id, success=True)) == (404, "QWED-REQ-007")
    assert refusal_of(_report(ask, "act_0", success=True)) == (404, "QWED-REQ-007")
    # A change is not an action.
    assert refusal_of(_report(ask, registered, success=True)) == (404, "QWED-REQ-007")
    with spec_server.client("foreign") as foreign:
        assert refusal_of(_report(ask, action_id, foreign, success=True)) == (404, "QWED-AGENT-001")
    assert action_of(ask, action_id)["execution"] is None


@spec("7.1")
def test_the_list_keeps_the_first_decision_and_shows_how_it_was_resolved(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    settle(keyholders.approver, waiting["approval_id"], reason="fine")
    (listed,) = ask.activity()["activities"]
    assert (listed["decision"], listed["approval"]["state"]) == ("PENDING", "approved")
    assert (listed["resolution"]["decision"], listed["resolution"]["reason"]) == ("APPROVED", "fine")
    (approved,) = changes_of(ask, "approved")
    assert listed["resolution"]["activity_id"] == approved["activity_id"]
    assert ask.activity(decision="PENDING")["activities"] == [listed]


@spec("7.1")
def test_a_secret_in_what_is_said_about_trust_is_not_kept_in_the_clear(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2)
    body = {"request": "trust_reduction", "to_level": 1, "justification": "it posted AKIAIOSFODNN0FIXTURE"}
    assert keyholders.owner.post(f"/agents/{ask.agent_id}/trust", json=body).status_code == 200
    assert "AKIAIOSFODNN0FIXTURE" not in str(changes_of(ask))
