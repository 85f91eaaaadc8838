"""Spec 7.1, Activity Log Schema; guide, Activity logging."""

import re
from collections.abc import Callable

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import SpecServer
from tests.spec.requests import EMAIL, FALSE, SUM, WRITE, WRONG_SUM, Json
from tests.spec.sections import spec

CALL: Json = {"type": "tool_call", "tool": "database_read", "parameters": {"query": "SELECT id FROM users"}}


@spec("7.1", "guide/Activity logging")
def test_the_schema_of_the_document(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    answer = ask({**CALL, "cost": {"usd": 0.05, "tokens": 150}}, 1, options={"require_attestation": True})
    (activity,) = ask.activity()["activities"]
    assert activity["activity_id"] == activity["action_id"] == answer["action_id"]
    assert re.fullmatch(r"act_[0-9a-f]+", activity["activity_id"])
    assert activity["agent_id"] == ask.agent_id
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", activity["timestamp"])
    assert activity["action"] == CALL
    assert activity["action_type"] == "tool_call"
    assert (activity["verification"]["status"], activity["verification"]["engine"]) == ("VERIFIED", "sql")
    assert activity["verification"]["latency_ms"] > 0
    assert activity["decision"] == "APPROVED"
    assert activity["cost"] == {"usd": 0.05, "tokens": 150}
    assert re.fullmatch(r"att_[0-9a-f]+", activity["attestation_id"])
    assert activity["execution"] is None
    assert (activity["conversation_id"], activity["step_number"]) == (ask.conversation, 1)


@spec("7.1")
@pytest.mark.parametrize(
    ("action", "decision", "usd"),
    [(SUM, "APPROVED", 0.01), (WRONG_SUM, "CORRECTED", 0.01), (EMAIL, "PENDING", 0), (FALSE, "DENIED", 0)],
)
def test_every_decision_is_logged_with_what_it_cost(
    ask: AgentConversation, action: Json, decision: str, usd: float
) -> None:
    answer = ask(action, 1)
    (activity,) = ask.activity()["activities"]
    assert (activity["activity_id"], activity["decision"]) == (answer["action_id"], decision)
    assert activity["cost"]["usd"] == usd
    assert activity["verification"]["status"] == answer["verification"]["status"]
    assert (activity["error"] or {}).get("code") == (answer.get("error") or {}).get("code")


def _replayed(ask: AgentConversation) -> Json:
    ask(SUM, 1)
    return ask(SUM, 1)


def _looped(ask: AgentConversation) -> Json:
    return [ask(SUM, step) for step in (1, 2, 3)][-1]


REFUSALS: list[tuple[Callable[[AgentConversation], Json], str]] = [
    (_replayed, "QWED-AGENT-LOOP-002"),
    (_looped, "QWED-AGENT-LOOP-003"),
    (lambda ask: ask(SUM, 51), "QWED-AGENT-LOOP-001"),
    (lambda ask: ask(SUM, 0), "QWED-AGENT-CTX-002"),
    (lambda ask: ask.send({"action": SUM}).json(), "QWED-AGENT-CTX-001"),
    (lambda ask: ask(SUM, 1, state_source="custom"), "QWED-AGENT-STATE-001"),
    (lambda ask: ask({**SUM, "cost": {"usd": 10**6}}, 1), "QWED-AGENT-BUDGET-001"),
    (lambda ask: ask({"type": "unheard_of"}, 1), "QWED-AGENT-ACTION-001"),
]


@spec("7.1")
@pytest.mark.parametrize(("refuse", "code"), REFUSALS, ids=[code for _refuse, code in REFUSALS])
def test_refusals_without_judgement_are_logged_too(
    asking: Callable[..., AgentConversation], refuse: Callable[[AgentConversation], Json], code: str
) -> None:
    ask = asking(budget={"max_daily_cost_usd": 100})
    answer = refuse(ask)
    activity = ask.activity(limit=1)["activities"][0]
    assert activity["error"]["code"] == answer["error"]["code"] == code
    assert activity["verification"] is None
    assert activity["attestation_id"] is None
    assert activity["cost"] == {"usd": 0, "tokens": 0}


@spec("7.1")
def test_a_suspended_agents_attempt_is_logged(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as owner:
        ask = AgentConversation(owner, spec_server.suspended)
        assert ask(SUM, 1)["error"]["code"] == "QWED-AGENT-003"
        activity = ask.activity(limit=1)["activities"][0]
    assert (activity["decision"], activity["error"]["code"]) == ("DENIED", "QWED-AGENT-003")


@spec("7.1")
def test_a_correction_keeps_both_what_was_asked_and_what_was_allowed(ask: AgentConversation) -> None:
    ask(WRONG_SUM, 1)
    (activity,) = ask.activity()["activities"]
    assert activity["action"] == WRONG_SUM
    assert activity["corrected"] == {**WRONG_SUM, "query": "2+2 = 4"}


@spec("7.1")
def test_the_record_says_who_asked(stranger: httpx.Client, ask: AgentConversation) -> None:
    ask(SUM, 1)
    body = {"action": SUM, "context": {"conversation_id": "own", "step_number": 1}}
    headers = {"Authorization": f"Bearer {ask.agent['agent_token']}"}
    stranger.post(f"/agents/{ask.agent_id}/verify", json=body, headers=headers)
    by_agent, by_key = ask.activity()["activities"]
    assert by_agent["by"] == ask.agent_id
    assert by_key["by"].startswith("key_")


@spec("7.1")
def test_one_activity_is_read_by_its_id_and_by_its_agent_alone(asking: Callable[..., AgentConversation]) -> None:
    mine, other = asking(), asking()
    action_id = mine(WRITE, 1)["action_id"]
    found = mine.api.get(f"/agents/{mine.agent_id}/actions/{action_id}")
    (listed,) = mine.activity()["activities"]
    assert found.status_code == 200
    assert {name: found.json()[name] for name in listed} == listed
    for agent_id, missing in ((other.agent_id, action_id), (mine.agent_id, "act_0")):
        response = mine.api.get(f"/agents/{agent_id}/actions/{missing}")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "QWED-REQ-007")


@spec("7.1")
def test_the_log_grows_by_one_index_an_answer(ask: AgentConversation) -> None:
    for step in (1, 2, 3):
        ask(SUM, step)
    indexes = [activity["log_index"] for activity in ask.activity()["activities"]]
    assert indexes == sorted(indexes, reverse=True)
    assert len(set(indexes)) == 3


@spec("7.1")
def test_a_secret_in_a_refused_call_is_not_kept_in_the_clear(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    ask({**EMAIL, "parameters": {"to": "a@example.com", "body": "AKIAIOSFODNN0FIXTURE"}}, 1)
    assert "AKIAIOSFODNN0FIXTURE" not in str(ask.activity())
