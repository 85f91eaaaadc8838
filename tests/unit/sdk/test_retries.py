"""INTERFACES 5: retries only where they are safe, under one idempotency key, within the timeout."""

import json
from typing import Any

import pytest

from qwed_sdk import QWEDClient, QWEDConnectionError, QWEDServerError
from tests.support.impostor import Behave, hangs_up, impostor, says
from tests.support.server import Server

APPROVED = says(200, {"decision": "APPROVED", "action_id": "act_1"})
BUSY = says(503, {"decision": "DENIED", "error": {"code": "QWED-SYS-003", "message": "busy", "details": {}}})
DOWN = says(503, {"error": {"code": "QWED-SYS-003", "message": "busy", "details": {}}})
IN_FLIGHT = says(409, {"decision": "DENIED", "error": {"code": "QWED-REQ-006", "message": "in flight", "details": {}}})
VERIFIED = says(200, {"status": "VERIFIED", "verified": True})
CONTEXT = {"conversation_id": "c", "step_number": 1}


def verify(client: QWEDClient) -> Any:
    return client.verify_action("agent_1", {"type": "calculate", "query": "1"}, CONTEXT)


@pytest.mark.parametrize(
    "behaviours",
    [
        [hangs_up, APPROVED],
        [BUSY, APPROVED],
        [hangs_up, BUSY, APPROVED],
        [hangs_up, IN_FLIGHT, APPROVED],
        [says(502, raw=b""), APPROVED],
    ],
)
def test_a_question_is_asked_again_under_the_same_key_with_the_same_body(behaviours: list[Behave]) -> None:
    with impostor(*behaviours) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "APPROVED"
        asked_again = verify(client)
    first = other.heard[: len(behaviours)]
    assert len({each.headers["idempotency-key"] for each in first}) == 1
    assert len({each.body for each in first}) == 1
    assert asked_again.decision == "APPROVED"
    assert other.heard[-1].headers["idempotency-key"] != first[0].headers["idempotency-key"]


def test_it_is_asked_three_times_and_the_last_word_counts() -> None:
    with impostor(BUSY) as other, QWEDClient("k", other.url) as client:
        assert verify(client).error["code"] == "QWED-SYS-003"
    assert len(other.heard) == 3


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_how_often_is_the_callers_choice(retries: int) -> None:
    with impostor(hangs_up) as other, pytest.raises(QWEDConnectionError):
        verify(QWEDClient("k", other.url, retries=retries))
    assert len(other.heard) == retries + 1


NOT_TWICE = {
    "register_agent": ("a", None, "p"),
    "approve": ("apr_1", "why"),
    "suspend_agent": ("agent_1", "why"),
    "create_key": ("k",),
    "rotate_token": ("agent_1",),
    "log_execution": ("agent_1", "act_1", True),
    "erase": ("somebody",),
    "verify_batch": (["1 = 1"],),
}


@pytest.mark.parametrize("verb", NOT_TWICE)
@pytest.mark.parametrize("behave", [hangs_up, DOWN], ids=["the line breaks", "503"])
def test_what_changes_something_is_sent_once(verb: str, behave: Behave) -> None:
    with impostor(behave) as other, pytest.raises((QWEDConnectionError, QWEDServerError)):
        getattr(QWEDClient("k", other.url), verb)(*NOT_TWICE[verb])
    assert len(other.heard) == 1


@pytest.mark.parametrize("verb", ["verify_math", "verify", "get_agent"])
def test_what_only_reads_is_asked_again(verb: str) -> None:
    with impostor(hangs_up, VERIFIED) as other, QWEDClient("k", other.url) as client:
        assert getattr(client, verb)("1 = 1")["status"] == "VERIFIED"
    assert len(other.heard) == 2


def test_nobody_waits_for_a_server_that_wants_an_hour() -> None:
    later = says(503, {"decision": "DENIED", "error": {"code": "QWED-SYS-003"}}, retry_after="3600")
    with impostor(later) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "DENIED"
    assert len(other.heard) == 1


def test_a_budget_that_is_spent_is_not_asked_again() -> None:
    spent = says(429, {"decision": "BUDGET_EXCEEDED", "error": {"code": "QWED-AGENT-BUDGET-001"}}, retry_after="1")
    with impostor(spent) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "BUDGET_EXCEEDED"
    assert len(other.heard) == 1


def test_a_question_asked_twice_is_charged_once(server: Server) -> None:
    with QWEDClient(server.owner_key, server.base_url) as client:
        agent = client.register_agent("asks twice", principal_id="user_123").agent_id
        action = {"type": "calculate", "query": "2+2"}
        answers = [client.verify_action(agent, action, CONTEXT, idempotency_key="same") for _ in range(2)]
        assert answers[0].action_id == answers[1].action_id
        assert client.get_agent_budget(agent).requests["current_hour"] == 1


def test_the_body_is_the_question() -> None:
    with impostor(APPROVED) as other, QWEDClient("qwed_live_k", other.url) as client:
        client.verify_action("agent_1", {"type": "calculate", "query": "1"}, CONTEXT, {"risk_threshold": "low"})
    (heard,) = other.heard
    assert (heard.method, heard.path) == ("POST", "/agents/agent_1/verify")
    assert json.loads(heard.body) == {
        "action": {"type": "calculate", "query": "1"},
        "context": CONTEXT,
        "options": {"risk_threshold": "low"},
    }
    assert heard.headers["x-api-key"] == "qwed_live_k"
