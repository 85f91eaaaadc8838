"""Spec 9.2, Replay Detection; ruling 4.7, retries with an idempotency key."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from qwed.model.clock import DAY, Clock
from tests.conftest import AgentConversation
from tests.spec.requests import DELETE, EMAIL, FALSE, SUM, WRONG_SUM, Json, said
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.server import Server

REPLAY = ("DENIED", "QWED-AGENT-LOOP-002")


@spec("9.2", "guide/Replay and loop detection")
def test_a_step_that_was_committed_is_a_replay(ask: AgentConversation) -> None:
    assert ask(SUM, 1)["decision"] == "APPROVED"
    assert said(ask(SUM, 1)) == REPLAY


@spec("9.2")
def test_another_action_on_a_committed_step_is_a_replay_too(ask: AgentConversation) -> None:
    ask(SUM, 1)
    assert said(ask({"type": "verify_logic", "query": "x > 1"}, 1)) == REPLAY


@spec("9.2", "guide/Action context enforcement")
@pytest.mark.parametrize("step", [1, 2, 4, 6, 7])
def test_a_step_at_or_below_the_highest_committed_one_is_a_replay(ask: AgentConversation, step: int) -> None:
    assert ask(SUM, 7)["decision"] == "APPROVED"
    assert said(ask({"type": "calculate", "query": "3+3"}, step)) == REPLAY
    assert said(ask({"type": "calculate", "query": "3+3"}, 8)) == ("APPROVED", None)


@spec("9.2")
def test_a_denied_step_may_be_tried_again_with_another_action(ask: AgentConversation) -> None:
    assert ask({"type": "calculate", "query": "x = x + 1"}, 1)["decision"] == "DENIED"
    assert ask({"type": "calculate", "query": "4 = 4"}, 1)["decision"] == "APPROVED"


@spec("9.2")
@pytest.mark.parametrize("action", [FALSE, DELETE, {"type": "unheard_of"}, {"type": "tool_call", "tool": "unknown"}])
def test_no_denial_of_any_kind_advances_the_conversation(ask: AgentConversation, action: Json) -> None:
    assert ask(action, 3)["decision"] == "DENIED"
    assert said(ask(SUM, 1)) == ("APPROVED", None)
    assert said(ask(EMAIL, 3))[0] == "PENDING"


@spec("9.2")
@pytest.mark.parametrize(("action", "decision"), [(EMAIL, "PENDING"), (WRONG_SUM, "CORRECTED"), (SUM, "APPROVED")])
def test_what_may_still_be_executed_consumes_its_step(ask: AgentConversation, action: Json, decision: str) -> None:
    assert ask(action, 1)["decision"] == decision
    assert said(ask({"type": "calculate", "query": "9+9"}, 1)) == REPLAY


@spec("9.2")
def test_steps_are_counted_for_each_agent_and_conversation_apart(asking: Callable[..., AgentConversation]) -> None:
    one, other = asking(), asking()
    assert said(one(SUM, 1, conversation="shared")) == ("APPROVED", None)
    assert said(other(SUM, 1, conversation="shared")) == ("APPROVED", None)
    assert said(one(SUM, 1, conversation="Shared")) == ("APPROVED", None)
    assert said(one(SUM, 1, conversation="shared")) == REPLAY


@spec("9.2")
def test_both_doors_share_one_conversation(ask: AgentConversation) -> None:
    assert said(ask(SUM, 1)) == ("APPROVED", None)
    body = {"context": {"conversation_id": ask.conversation, "step_number": 1}, "parameters": {"city": "Rome"}}
    assert said(ask.api.post(f"/agents/{ask.agent_id}/tools/get_weather", json=body).json()) == REPLAY


@spec("9.2")
def test_a_replay_says_what_to_send_instead(ask: AgentConversation) -> None:
    ask(SUM, 1)
    error = ask(SUM, 1)["error"]
    assert error["final"] is True
    assert error["check"] == "step_not_replayed"
    assert "Idempotency-Key" in error["suggestion"]


@spec("9.2")
def test_a_restart_forgets_no_step(tmp_path: Path) -> None:
    headers: dict[str, str] = {}
    agent: Json = {}
    answers = []
    for _ in range(2):
        server = Server(tmp_path / "data")
        headers = {"X-API-Key": server.owner_key}
        with httpx.Client(base_url=server.base_url, headers=headers, timeout=30) as api:
            agent = agent or api.post("/agents/register", json={"name": "a", "principal_id": "u"}).json()
            answers.append(said(AgentConversation(api, agent)(SUM, 1)))
        assert server.stop() == 0
    assert answers == [("APPROVED", None), REPLAY]


# Ruling 4.7


def _send(ask: AgentConversation, key: str, action: Json = SUM, step: int = 1, **more: Json) -> httpx.Response:
    context = {"conversation_id": "retries", "step_number": step}
    return ask.send({"action": action, "context": context, **more}, headers={"Idempotency-Key": key})


@spec("9.2")
@pytest.mark.parametrize(
    ("action", "decision"), [(SUM, "APPROVED"), (WRONG_SUM, "CORRECTED"), (EMAIL, "PENDING"), (FALSE, "DENIED")]
)
def test_the_same_key_and_body_return_the_stored_answer(ask: AgentConversation, action: Json, decision: str) -> None:
    first, second = _send(ask, "k1", action), _send(ask, "k1", action)
    assert first.json()["decision"] == decision
    assert (second.status_code, second.json()) == (first.status_code, first.json())


@spec("9.2")
def test_a_suspended_agent_gets_no_stored_answer(ask: AgentConversation) -> None:
    _send(ask, "k1")
    path = f"/agents/{ask.agent_id}"
    ask.api.post(f"{path}/suspend", json={"reason": "odd"})
    assert said(_send(ask, "k1").json()) == ("DENIED", "QWED-AGENT-003")
    ask.api.post(f"{path}/reactivate", json={"reason": "fine"})
    assert said(_send(ask, "k1").json()) == ("APPROVED", None)


@spec("9.2")
def test_a_repeated_request_is_charged_and_logged_once(ask: AgentConversation) -> None:
    for _ in range(3):
        assert _send(ask, "k1").json()["decision"] == "APPROVED"
    budget = ask.budget()
    assert (budget["cost"]["current_daily_usd"], budget["requests"]["current_hour"]) == (0.01, 1)
    assert ask.activity()["summary"]["total_actions"] == 1


@spec("9.2")
def test_a_stored_answer_brings_its_attestation_again(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    first, second = _send(ask, "k1", DELETE).json(), _send(ask, "k1", DELETE).json()
    assert first["attestation"]
    assert second["attestation"] == first["attestation"]


@spec("9.2")
def test_key_order_and_blanks_do_not_make_another_body(ask: AgentConversation) -> None:
    path, headers = f"/agents/{ask.agent_id}/verify", {"Idempotency-Key": "k1"}
    context = {"conversation_id": "retries", "step_number": 1}
    first = ask.api.post(path, content=json.dumps({"action": SUM, "context": context}), headers=headers)
    turned = json.dumps({"context": dict(reversed(context.items())), "action": SUM}, indent=3)
    assert ask.api.post(path, content=turned, headers=headers).json() == first.json()


@spec("9.2")
@pytest.mark.parametrize(
    "changed",
    [
        {"action": {"type": "calculate", "query": "3+3"}},
        {"step": 2},
        {"options": {"require_attestation": True}},
        {"action": {**SUM, "cost": {"usd": 1}}},
    ],
)
def test_the_same_key_with_another_body_is_a_conflict(ask: AgentConversation, changed: Json) -> None:
    assert _send(ask, "k1").status_code == 200
    conflict = _send(ask, "k1", **changed)
    assert conflict.status_code == 409
    assert said(conflict.json()) == ("DENIED", "QWED-REQ-006")


@spec("9.2")
def test_keys_belong_to_their_agent(asking: Callable[..., AgentConversation]) -> None:
    one, other = asking(), asking()
    assert _send(one, "k1").json()["action_id"] != _send(other, "k1").json()["action_id"]


@spec("9.2")
def test_a_stranger_learns_nothing_from_a_key(stranger: httpx.Client, ask: AgentConversation) -> None:
    _send(ask, "k1")
    body = {"action": SUM, "context": {"conversation_id": "retries", "step_number": 1}}
    response = stranger.post(f"/agents/{ask.agent_id}/verify", json=body, headers={"Idempotency-Key": "k1"})
    assert (response.status_code, said(response.json())) == (401, ("DENIED", "QWED-AGENT-002"))


@spec("9.2")
def test_a_refusal_that_may_pass_later_is_not_stored(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_tool_calls_per_hour": 0})
    assert _send(ask, "k1", {"type": "database_read"}).status_code == 429
    assert _send(ask, "k1", SUM).json()["decision"] == "APPROVED"


@spec("9.2")
@pytest.mark.parametrize("key", ["", "x" * 256, "tab\tinside"])
def test_a_key_that_cannot_be_kept_is_refused(ask: AgentConversation, key: str) -> None:
    response = _send(ask, key)
    assert (response.status_code, said(response.json())) == (400, ("DENIED", "QWED-REQ-005"))


@spec("9.2")
def test_a_stored_answer_survives_a_restart(tmp_path: Path) -> None:
    agent: Json = {}
    answers = []
    for _ in range(2):
        server = Server(tmp_path / "data")
        with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as api:
            agent = agent or api.post("/agents/register", json={"name": "a", "principal_id": "u"}).json()
            answers.append(_send(AgentConversation(api, agent), "k1", options={"require_attestation": True}).json())
        assert server.stop() == 0
    assert answers[0] == answers[1]
    assert answers[0]["attestation"]


@spec("9.2")
def test_a_key_lives_for_a_day() -> None:
    now = [1_766_190_600.0]
    with open_gate(":memory:", clock=Clock(now=lambda: now[0])) as gate:
        agent_id = gate.register_agent(name="a", principal_id="u").agent_id

        def ask(step: int) -> Json:
            context = {"conversation_id": "retries", "step_number": step}
            return dict(gate.verify_action(agent_id, SUM, context, idempotency_key="k1"))

        first = ask(1)
        now[0] += DAY - 1
        assert ask(1) == first
        assert said(ask(2)) == ("DENIED", "QWED-REQ-006")
        now[0] += 2
        assert said(ask(2)) == ("APPROVED", None)


@spec("9.2")
def test_a_tool_call_may_be_repeated_with_a_key_as_well(ask: AgentConversation) -> None:
    body = {"parameters": {"city": "Rome"}, "context": {"conversation_id": "retries", "step_number": 1}}
    path, headers = f"/agents/{ask.agent_id}/tools/get_weather", {"Idempotency-Key": "k1"}
    first, second = (ask.api.post(path, json=body, headers=headers) for _ in range(2))
    assert first.json()["decision"] == "APPROVED"
    assert second.json() == first.json()
