"""Spec 8.3, Principal complaint: suspension, reactivation, and what a suspended agent may do."""

import pytest

from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, SUM, Json, changes_of, refusal_of, said, trust_of
from tests.spec.sections import spec

EVAL: Json = {"type": "execute_code", "code": "eval(input())"}


@spec("8.3")
@pytest.mark.parametrize("role", Keyholders._fields)
def test_a_complaint_suspends_whoever_of_the_principals_people_files_it(keyholders: Keyholders, role: str) -> None:
    ask = keyholders.create_agent(trust_level=3)
    response = getattr(keyholders, role).post(
        f"/agents/{ask.agent_id}/complaint", json={"reason": "it wrote to a client"}
    )
    assert (response.status_code, response.json()["status"]) == (200, "suspended")
    refused = ask.send({"action": SUM, "context": {"conversation_id": "c", "step_number": 1}})
    assert (refused.status_code, said(refused.json())) == (403, ("DENIED", "QWED-AGENT-003"))
    (complaint,) = changes_of(ask, "complaint")
    assert complaint["change"] == {"reason": "it wrote to a client"}
    assert complaint["by"].startswith("key_")
    assert trust_of(ask) == 3


@spec("8.3")
def test_an_agent_files_no_complaint_and_does_not_wake_itself(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        for verb in ("complaint", "suspend", "reactivate", "rotate-token"):
            response = agent.post(f"/agents/{ask.agent_id}/{verb}", json={"reason": "no reason"})
            assert refusal_of(response) == (403, "QWED-AUTH-003")
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
@pytest.mark.parametrize("verb", ["complaint", "suspend", "reactivate"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "QWED-REQ-004"),
        ({"reason": None}, "QWED-REQ-004"),
        ({"reason": " "}, "QWED-REQ-001"),
        ({"reason": 5}, "QWED-REQ-001"),
        ({"reason": "x" * 4097}, "QWED-REQ-001"),
        ({"reason": "x", "by": "me"}, "QWED-REQ-001"),
        ([], "QWED-REQ-001"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_reason_is_given(keyholders: Keyholders, verb: str, body: object, code: str) -> None:
    ask = keyholders.create_agent()
    assert refusal_of(keyholders.owner.post(f"/agents/{ask.agent_id}/{verb}", json=body)) == (400, code)
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_only_an_owner_or_approver_lets_a_stopped_agent_go_on(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    place = f"/agents/{ask.agent_id}"
    for role in ("approver", "owner"):
        keyholders.member.post(f"{place}/complaint", json={"reason": "again"})
        refused = keyholders.member.post(f"{place}/reactivate", json={"reason": "sorry"})
        assert refusal_of(refused) == (403, "QWED-AUTH-003")
        assert said(ask(SUM, 1))[1] == "QWED-AGENT-003"
        woken = getattr(keyholders, role).post(f"{place}/reactivate", json={"reason": "explained"})
        assert (woken.status_code, woken.json()["status"]) == (200, "active")
        assert said(ask(SUM, 1, conversation=role)) == ("APPROVED", None)
    assert [each["event"] for each in changes_of(ask)] == ["registered", *["complaint", "reactivated"] * 2]


@spec("8.3")
def test_suspending_twice_is_one_event_and_every_complaint_is_kept(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    for verb in ("suspend", "suspend", "complaint", "complaint"):
        assert keyholders.owner.post(f"/agents/{ask.agent_id}/{verb}", json={"reason": verb}).status_code == 200
    assert [each["event"] for each in changes_of(ask)] == ["registered", "suspended", "complaint", "complaint"]


@spec("8.3")
def test_another_organisation_complains_about_nobody(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    with spec_server.client("foreign") as foreign:
        for verb in ("complaint", "suspend", "reactivate", "rotate-token"):
            response = foreign.post(f"/agents/{ask.agent_id}/{verb}", json={"reason": "envy"})
            assert refusal_of(response) == (404, "QWED-AGENT-001")
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("8.3")
def test_what_a_stopped_agent_waits_for_is_approved_only_when_it_goes_on(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    keyholders.member.post(f"/agents/{ask.agent_id}/complaint", json={"reason": "odd"})
    approve = f"/approvals/{waiting['approval_id']}/approve"
    refused = keyholders.approver.post(approve, json={"reason": "fine"})
    assert refusal_of(refused) == (409, "QWED-REQ-009")
    assert refused.json()["error"]["final"] is False
    keyholders.owner.post(f"/agents/{ask.agent_id}/reactivate", json={"reason": "explained"})
    assert keyholders.approver.post(approve, json={"reason": "fine"}).status_code == 200


@spec("8.3")
def test_a_stopped_agents_attempts_cost_no_trust(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=3)
    keyholders.owner.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"})
    for _ in range(25):
        assert said(ask(EVAL, 1))[1] == "QWED-AGENT-003"
    assert trust_of(ask) == 3
