"""Ruling 4.10, approvals: a person decides once, about one exact action."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.gate import GateError
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import (
    EMAIL,
    WRITE,
    Json,
    action_of,
    another,
    changes_of,
    claims_of,
    hash_of,
    refusal_of,
    said,
    settle,
)
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock
from tests.support.polling import until
from tests.support.raw_http import message, send_concurrently

DAY = 86_400
CONFLICT = (409, "QWED-REQ-009")
SQL: Json = {"type": "execute_sql", "query": "UPDATE orders SET status = 'shipped' WHERE id = 7"}


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@spec("2.3", "8.1")
def test_an_approval_shows_a_person_what_waits_and_until_when(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2)
    waiting = ask({**WRITE, "cost": {"usd": 0.25}}, 1, user_intent="save the report")
    shown = keyholders.approver.get(f"/approvals/{waiting['approval_id']}").json()
    assert shown["approval_id"] == waiting["approval_id"]
    assert (shown["kind"], shown["state"], shown["resolution"]) == ("action", "pending", None)
    assert (shown["agent_id"], shown["action_id"]) == (ask.agent_id, waiting["action_id"])
    assert (shown["action"], shown["corrected"], shown["user_intent"]) == (WRITE, None, "save the report")
    assert (shown["risk_level"], shown["verification"]["status"]) == ("high", "VERIFIED")
    assert shown["action_hash"] == f"sha256:{hash_of(WRITE)}"
    assert shown["expires_at"] == waiting["expires_at"]
    assert _at(shown["expires_at"]) - _at(shown["created_at"]) == DAY
    keys = {each["id"]: each["role"] for each in keyholders.owner.get("/keys").json()["keys"]}
    assert keys[shown["requested_by"]] == "member"


@spec("2.3")
def test_the_justification_of_a_tool_call_is_shown_with_it(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    body = {
        "parameters": EMAIL["parameters"],
        "justification": "User requested order status update",
        "context": {"conversation_id": "c", "step_number": 1},
    }
    waiting = ask.api.post(f"/agents/{ask.agent_id}/tools/send_email", json=body).json()
    shown = keyholders.approver.get(f"/approvals/{waiting['approval_id']}").json()
    assert shown["justification"] == "User requested order status update"


@spec("2.3")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_an_approved_action_may_be_executed_as_it_was_asked_for(keyholders: Keyholders, role: str) -> None:
    ask = keyholders.create_agent(trust_level=2)
    waiting = ask(SQL, 1)
    assert waiting["decision"] == "PENDING"
    assert "attestation" not in waiting
    assert "verified_query" not in waiting
    settled = settle(getattr(keyholders, role), waiting["approval_id"], reason="seen", approver="Ada")
    assert settled.status_code == 200
    resolution = settled.json()["resolution"]
    assert (settled.json()["state"], resolution["state"], resolution["decision"]) == ("approved",) * 2 + ("APPROVED",)
    assert (resolution["reason"], resolution["approver"], resolution["self_approved"]) == ("seen", "Ada", False)
    keys = {each["id"]: each["role"] for each in keyholders.owner.get("/keys").json()["keys"]}
    assert keys[resolution["by"]] == role
    action = action_of(ask, waiting["action_id"])
    assert (action["decision"], action["error"], action["verified_query"]) == ("APPROVED", None, SQL["query"])
    assert action["resolution"] == resolution
    claims = claims_of(action["attestation"])
    assert (claims["sub"], claims["jti"]) == (f"sha256:{hash_of(SQL)}", action["attestation_id"])
    assert claims["qwed"]["activity_id"] == waiting["action_id"]
    (approved,) = changes_of(ask, "approved")
    assert approved["activity_id"] == resolution["activity_id"]
    assert claims["qwed"]["log"]["index"] == approved["log_index"]
    assert approved["change"] == {
        "about": waiting["action_id"],
        "reason": "seen",
        "approver": "Ada",
        "approval_id": waiting["approval_id"],
        "sub": claims["sub"],
    }


@spec("2.3")
def test_a_rejected_action_is_denied_and_says_why(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    settled = settle(keyholders.approver, waiting["approval_id"], "reject", reason="wrong customer").json()
    assert (settled["state"], settled["resolution"]["decision"]) == ("rejected", "DENIED")
    action = action_of(ask, waiting["action_id"])
    assert (action["decision"], action["first_decision"]) == ("DENIED", "PENDING")
    assert (action["resolution"]["state"], action["resolution"]["reason"]) == ("rejected", "wrong customer")
    assert action["attestation"] is None
    assert [each["change"]["about"] for each in changes_of(ask, "rejected")] == [waiting["action_id"]]


@spec("2.3", "8.1")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_only_an_owner_or_approver_of_the_organisation_decides(
    spec_server: SpecServer, keyholders: Keyholders, verb: str
) -> None:
    ask = keyholders.create_agent()
    approval_id = ask(EMAIL, 1)["approval_id"]
    refusals = {"member": (403, "QWED-AUTH-003"), "foreign": (404, "QWED-REQ-007"), "revoked": (401, "QWED-AUTH-002")}
    for key, refusal in refusals.items():
        with spec_server.client(key) as client:
            assert refusal_of(settle(client, approval_id, verb)) == refusal
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert refusal_of(settle(agent, approval_id, verb)) == (403, "QWED-AUTH-003")
    with spec_server.client() as stranger:
        assert refusal_of(settle(stranger, approval_id, verb)) == (401, "QWED-AUTH-001")
    assert keyholders.owner.get(f"/approvals/{approval_id}").json()["state"] == "pending"


@spec("2.3")
@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "QWED-REQ-004"),
        ({"reason": ""}, "QWED-REQ-001"),
        ({"reason": "   "}, "QWED-REQ-001"),
        ({"reason": ["x"]}, "QWED-REQ-001"),
        ({"reason": "x" * 4097}, "QWED-REQ-001"),
        ({"reason": "x", "approver": 3}, "QWED-REQ-001"),
        ({"reason": "x", "decision": "APPROVED"}, "QWED-REQ-001"),
        ("yes", "QWED-REQ-001"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_decision_has_a_reason_and_nothing_it_should_not_have(
    keyholders: Keyholders, verb: str, body: object, code: str
) -> None:
    approval_id = keyholders.create_agent()(EMAIL, 1)["approval_id"]
    assert refusal_of(keyholders.approver.post(f"/approvals/{approval_id}/{verb}", json=body)) == (400, code)
    assert keyholders.owner.get(f"/approvals/{approval_id}").json()["state"] == "pending"


@spec("2.3")
@pytest.mark.parametrize("first", ["approve", "reject"])
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_what_is_decided_is_decided(keyholders: Keyholders, first: str, second: str) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    settled = settle(keyholders.approver, waiting["approval_id"], first)
    assert refusal_of(settle(keyholders.owner, waiting["approval_id"], second)) == CONFLICT
    assert keyholders.owner.get(f"/approvals/{waiting['approval_id']}").json() == settled.json()
    assert len(changes_of(ask, "approved", "rejected")) == 1


@spec("2.3", "9.4")
def test_of_many_who_decide_at_once_one_does(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    waiting = ask({**EMAIL, "cost": {"usd": 1}}, 1)
    place = f"/approvals/{waiting['approval_id']}"
    calls = [
        message(f"{place}/{verb}", {"reason": verb}, {"x-api-key": spec_server.keys[role]})
        for role in ("owner", "approver")
        for verb in ("approve", "reject")
    ] * 4
    heard = send_concurrently(spec_server.base_url, calls, len(calls))
    statuses = sorted(0 if each is None else each.status for each in heard)
    assert statuses == [200] + [409] * (len(calls) - 1)
    assert len(changes_of(ask, "approved", "rejected")) == 1
    cost = ask.budget()["cost"]
    approved = action_of(ask, waiting["action_id"])["decision"] == "APPROVED"
    assert (cost["held_usd"], cost["current_daily_usd"]) == (0, 1 if approved else 0)


@spec("8.1")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_nobody_approves_what_was_asked_with_their_own_key(keyholders: Keyholders, role: str) -> None:
    mine: httpx.Client = getattr(keyholders, role)
    ask = AgentConversation(mine, keyholders.create_agent().agent)
    first, second = ask(EMAIL, 1), ask(EMAIL, 2)
    assert refusal_of(settle(mine, first["approval_id"])) == (403, "QWED-AUTH-004")
    assert action_of(ask, first["action_id"])["decision"] == "PENDING"
    other = keyholders.approver if role == "owner" else keyholders.owner
    assert settle(other, first["approval_id"]).json()["resolution"]["self_approved"] is False
    assert settle(mine, second["approval_id"], "reject").status_code == 200


@spec("8.1")
def test_whoever_is_alone_approves_and_the_record_says_so(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as operator:
        made = operator.post("/organisations", json={"name": "a hermit"}).json()
    with spec_server.client(made["owner_key"]) as owner:
        ask = AgentConversation(owner, owner.post("/agents/register", json={"name": "a", "principal_id": "u"}).json())
        first, second = ask(EMAIL, 1), ask(EMAIL, 2)
        assert settle(owner, first["approval_id"]).json()["resolution"]["self_approved"] is True
        (approved,) = changes_of(ask, "approved")
        assert approved["change"]["self_approved"] is True
        guest = owner.post("/keys", json={"name": "a guest", "role": "member"}).json()
        assert refusal_of(settle(owner, second["approval_id"])) == (403, "QWED-AUTH-004")
        assert owner.delete(f"/keys/{guest['id']}").status_code == 200
        assert settle(owner, second["approval_id"]).json()["resolution"]["self_approved"] is True


@spec("2.3")
def test_the_list_is_newest_first_and_narrowed_by_state_and_agent(new_keyholders: Keyholders) -> None:
    ask, other = new_keyholders.create_agent(), new_keyholders.create_agent()
    mine = [ask({**EMAIL, "target": str(step)}, step)["approval_id"] for step in (1, 2, 3)]
    foreign = other(EMAIL, 1)["approval_id"]
    settle(new_keyholders.approver, mine[0])
    settle(new_keyholders.approver, mine[1], "reject")

    def listed(**query: Any) -> list[str]:
        answer = new_keyholders.member.get("/approvals", params=query)
        assert answer.status_code == 200
        return [each["approval_id"] for each in answer.json()["approvals"]]

    assert listed() == [foreign, *mine[::-1]]
    assert listed(agent_id=ask.agent_id) == mine[::-1]
    assert listed(state="pending") == [foreign, mine[2]]
    assert listed(state="approved") == [mine[0]]
    assert listed(state="rejected", agent_id=ask.agent_id) == [mine[1]]
    assert listed(state="expired") == []
    assert listed(agent_id="agent_0") == []


@spec("2.3")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6])
def test_pages_of_approvals_follow_each_other_without_gap_or_repeat(new_keyholders: Keyholders, limit: int) -> None:
    ask = new_keyholders.create_agent()
    made = [ask({**EMAIL, "target": str(step)}, step)["approval_id"] for step in range(1, 6)]
    seen: list[str] = []
    query: Json = {"limit": limit}
    while query:
        page = new_keyholders.owner.get("/approvals", params=query).json()
        assert len(page["approvals"]) <= limit
        seen += [each["approval_id"] for each in page["approvals"]]
        query = {"limit": limit, "cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert seen == made[::-1]


@spec("2.3")
@pytest.mark.parametrize("query", [{"state": "open"}, {"state": "PENDING"}, {"limit": "0"}, {"limit": "x"}], ids=str)
def test_a_list_that_cannot_be_made_is_refused(keyholders: Keyholders, query: Json) -> None:
    assert refusal_of(keyholders.owner.get("/approvals", params=query)) == (400, "QWED-REQ-005")


@spec("2.3")
def test_another_organisation_sees_no_approval(spec_server: SpecServer, keyholders: Keyholders) -> None:
    approval_id = keyholders.create_agent()(EMAIL, 1)["approval_id"]
    with spec_server.client("foreign") as foreign:
        assert refusal_of(foreign.get(f"/approvals/{approval_id}")) == (404, "QWED-REQ-007")
        assert foreign.get("/approvals").json()["approvals"] == []
        missing, other = foreign.get("/approvals/apr_0"), foreign.get(f"/approvals/{approval_id}")
        assert missing.json() == other.json()


@spec("2.3", "5.3")
def test_approving_asks_again_whether_the_tool_is_still_the_same(new_keyholders: Keyholders) -> None:
    new_keyholders.owner.put("/tools/post_invoice", json={"risk_level": "medium"})
    ask = new_keyholders.create_agent()
    waiting = ask({"type": "tool_call", "tool": "post_invoice"}, 1)
    assert waiting["decision"] == "PENDING"
    new_keyholders.owner.put("/tools/post_invoice", json={"risk_level": "critical"})
    refused = settle(new_keyholders.approver, waiting["approval_id"])
    assert refusal_of(refused) == CONFLICT
    assert refused.json()["error"]["check"] == "policy_unchanged"
    assert action_of(ask, waiting["action_id"])["decision"] == "PENDING"
    new_keyholders.owner.put("/tools/post_invoice", json={"risk_level": "medium"})
    assert settle(new_keyholders.approver, waiting["approval_id"]).status_code == 200


@spec("2.3")
def test_an_approval_is_of_one_action_and_no_other(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    first = ask(EMAIL, 1)
    settle(keyholders.approver, first["approval_id"])
    # The same request again is another action, and waits again.
    assert ask(EMAIL, 2)["decision"] == "PENDING"
    assert said(ask(EMAIL, 1)) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("2.3")
def test_an_answer_remembered_as_pending_stays_pending(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    body = {"action": EMAIL, "context": {"conversation_id": "c", "step_number": 1}}
    first = ask.send(body, {"Idempotency-Key": "once"}).json()
    settle(keyholders.approver, first["approval_id"])
    assert ask.send(body, {"Idempotency-Key": "once"}).json() == first
    assert action_of(ask, first["action_id"])["decision"] == "APPROVED"


@spec("2.3", "7.1")
def test_a_secret_in_a_reason_is_not_kept_in_the_clear(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    approval_id = ask(EMAIL, 1)["approval_id"]
    settled = settle(
        keyholders.approver, approval_id, reason="used AKIAIOSFODNN0FIXTURE to check", approver="ghp_" + "a" * 36
    )
    assert settled.status_code == 200
    kept = settled.text + str(changes_of(ask)) + str(keyholders.owner.get("/changes").text)
    assert "AKIAIOSFODNN0FIXTURE" not in kept
    assert "ghp_" + "a" * 36 not in kept


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyholders]:
    """Create a gate in which each agent may have two pending actions."""
    directory = Path(tmp_path_factory.mktemp("crowded")) / "data"
    with start_spec_server(directory, QWED_MAX_OPEN_APPROVALS="2") as spec_server, keyholders_of(spec_server) as found:
        yield found


@spec("2.3")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_agent_has_only_so_many_actions_before_people(crowded: Keyholders, verb: str) -> None:
    ask, other = crowded.create_agent(), crowded.create_agent()
    first, _second = ask(EMAIL, 1), ask(EMAIL, 2)
    third = ask(another_email(3), 3)
    assert said(third) == ("DENIED", "QWED-AGENT-TRUST-002")
    assert (third["error"]["check"], third["error"]["final"]) == ("approvals_left", False)
    assert "approval_id" not in third
    assert ask.budget()["cost"]["held_usd"] == 0.02
    # Actions that need no person and other agents are not affected, and the step is free.
    assert said(ask(another(1), 3)) == ("APPROVED", None)
    assert other(EMAIL, 1)["decision"] == "PENDING"
    assert settle(crowded.approver, first["approval_id"], verb).status_code == 200
    assert ask(another_email(4), 4)["decision"] == "PENDING"


def another_email(number: int) -> Json:
    return {**EMAIL, "target": f"outbox {number}"}


# Time


@spec("2.3")
def test_an_approval_nobody_gives_in_a_day_is_expired_and_not_rejected() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = gate.register_agent(name="patient", principal_id="u")["agent_id"]
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        assert _at(waiting["expires_at"]) == manual_clock.now + DAY
        manual_clock.advance(DAY - 1)
        assert gate.get_action(agent, waiting["action_id"])["decision"] == "PENDING"
        manual_clock.advance(1)
        for late in (gate.approve, gate.reject):
            with pytest.raises(GateError, match="already expired"):
                late(waiting["approval_id"], "too late")
        action = gate.get_action(agent, waiting["action_id"])
        assert (action["decision"], action["approval"]["state"]) == ("DENIED", "expired")
        assert (action["resolution"]["state"], action["resolution"]["by"]) == ("expired", "qwed")
        (expired,) = (each for each in gate.get_agent_activity(agent, kind="change") if each["event"] == "expired")
        assert expired["change"]["about"] == waiting["action_id"]


@spec("2.3")
def test_an_approval_a_second_before_its_end_is_in_time() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = gate.register_agent(name="patient", principal_id="u")["agent_id"]
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        manual_clock.advance(DAY - 1)
        assert gate.approve(waiting["approval_id"], "in time")["state"] == "approved"
        manual_clock.advance(DAY)
        assert gate.get_action(agent, waiting["action_id"])["decision"] == "APPROVED"


@spec("2.3")
def test_an_expired_approval_shows_its_end_wherever_it_is_looked_at() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = gate.register_agent(name="patient", principal_id="u")["agent_id"]
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        manual_clock.advance(DAY)
        (listed,) = gate.list_approvals(state="expired")
        assert listed["state"] == "expired"
        resolution = listed["resolution"]
        assert (resolution["state"], resolution["decision"], resolution["by"]) == ("expired", "DENIED", "qwed")
        # Listing writes nothing.
        assert resolution["activity_id"] is None
        assert gate.get_action(agent, waiting["action_id"])["resolution"]["state"] == "expired"
        # An expired request needs no decision.
        (expired,) = until(
            lambda: [each for each in gate.get_agent_activity(agent, kind="change") if each["event"] == "expired"]
        )
        (written,) = gate.list_approvals(state="expired")
        assert written["resolution"] == {**resolution, "activity_id": expired["activity_id"]}
        (decision,) = gate.get_agent_activity(agent)
        assert decision["resolution"] == written["resolution"]
        assert gate.list_approvals(state="pending") == []


@spec("2.3")
def test_what_has_run_out_a_moment_ago_reads_the_same_in_every_part_of_the_answer() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = gate.register_agent(name="patient", principal_id="u")["agent_id"]
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        manual_clock.advance(DAY - 0.5)
        assert gate.get_action(agent, waiting["action_id"])["approval"]["state"] == "pending"
        manual_clock.advance(0.5)
        action = gate.get_action(agent, waiting["action_id"])
        assert (action["decision"], action["approval"]["state"]) == ("DENIED", "expired")
