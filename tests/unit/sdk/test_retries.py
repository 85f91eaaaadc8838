"""Retries only where they are safe, with one idempotency key, within the timeout (INTERFACES 5)."""

import json
from typing import Any

import pytest

from qwed_sdk import QWEDClient, QWEDConnectionError, QWEDServerError
from tests.support.agent_names import unique_name
from tests.support.fake_server import Behave, close_connection, fake_server, respond_with
from tests.support.server import Server

APPROVED = respond_with(200, {"decision": "APPROVED", "action_id": "act_1"})
BUSY = respond_with(503, {"decision": "DENIED", "error": {"code": "QWED-SYS-003", "message": "busy", "details": {}}})
DOWN = respond_with(503, {"error": {"code": "QWED-SYS-003", "message": "busy", "details": {}}})
IN_FLIGHT = respond_with(
    409, {"decision": "DENIED", "error": {"code": "QWED-REQ-006", "message": "in flight", "details": {}}}
)
VERIFIED = respond_with(200, {"status": "VERIFIED", "verified": True, "agent_id": "agent_1"})
CONTEXT = {"conversation_id": "c", "step_number": 1}


def verify(client: QWEDClient) -> Any:
    return client.verify_action("agent_1", {"type": "calculate", "query": "1"}, CONTEXT)


@pytest.mark.parametrize(
    "behaviours",
    [
        [close_connection, APPROVED],
        [BUSY, APPROVED],
        [close_connection, BUSY, APPROVED],
        [close_connection, IN_FLIGHT, APPROVED],
        [respond_with(502, raw=b""), APPROVED],
    ],
)
def test_a_question_is_asked_again_under_the_same_key_with_the_same_body(behaviours: list[Behave]) -> None:
    with fake_server(*behaviours) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "APPROVED"
        asked_again = verify(client)
    first = other.heard[: len(behaviours)]
    assert len({request.headers["idempotency-key"] for request in first}) == 1
    assert len({request.body for request in first}) == 1
    assert asked_again.decision == "APPROVED"
    assert other.heard[-1].headers["idempotency-key"] != first[0].headers["idempotency-key"]


def test_it_is_asked_three_times_and_the_last_word_counts() -> None:
    with fake_server(BUSY) as other, QWEDClient("k", other.url) as client:
        assert verify(client).error["code"] == "QWED-SYS-003"
    assert len(other.heard) == 3


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_how_often_is_the_callers_choice(retries: int) -> None:
    with fake_server(close_connection) as other, pytest.raises(QWEDConnectionError):
        verify(QWEDClient("k", other.url, retries=retries))
    assert len(other.heard) == retries + 1


NOT_TWICE = {
    "register_agent": ("a", None, "p"),
    "approve": ("apr_1", "why"),
    "suspend_agent": ("agent_1", "why"),
    "create_key": ("k",),
    "rotate_token": ("agent_1",),
    "log_execution": ("agent_1", "act_1", True),
    "erase": ("user_123",),
    "verify_batch": (["1 = 1"],),
}


@pytest.mark.parametrize("verb", NOT_TWICE)
@pytest.mark.parametrize("behave", [close_connection, DOWN], ids=["connection lost", "503"])
def test_what_changes_something_is_sent_once(verb: str, behave: Behave) -> None:
    with fake_server(behave) as other, pytest.raises((QWEDConnectionError, QWEDServerError)):
        getattr(QWEDClient("k", other.url), verb)(*NOT_TWICE[verb])
    assert len(other.heard) == 1


@pytest.mark.parametrize("verb", ["verify_math", "verify", "get_agent"])
def test_what_only_reads_is_asked_again(verb: str) -> None:
    with fake_server(close_connection, VERIFIED) as other, QWEDClient("k", other.url) as client:
        assert getattr(client, verb)("1 = 1")["status"] == "VERIFIED"
    assert len(other.heard) == 2


def test_nobody_waits_for_a_server_that_wants_an_hour() -> None:
    later = respond_with(503, {"decision": "DENIED", "error": {"code": "QWED-SYS-003"}}, retry_after="3600")
    with fake_server(later) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "DENIED"
    assert len(other.heard) == 1


def test_a_budget_that_is_spent_is_not_asked_again() -> None:
    spent = respond_with(
        429, {"decision": "BUDGET_EXCEEDED", "error": {"code": "QWED-AGENT-BUDGET-001"}}, retry_after="1"
    )
    with fake_server(spent) as other, QWEDClient("k", other.url) as client:
        assert verify(client).decision == "BUDGET_EXCEEDED"
    assert len(other.heard) == 1


def test_a_question_asked_twice_is_charged_once(server: Server) -> None:
    with QWEDClient(server.owner_key, server.base_url) as client:
        agent = client.register_agent(unique_name("asks twice"), principal_id="user_123").agent_id
        action = {"type": "calculate", "query": "2+2"}
        answers = [client.verify_action(agent, action, CONTEXT, idempotency_key="same") for _ in range(2)]
        assert answers[0].action_id == answers[1].action_id
        assert client.get_agent_budget(agent).requests["current_hour"] == 1


def test_the_body_is_the_question() -> None:
    with fake_server(APPROVED) as other, QWEDClient("qwed_live_k", other.url) as client:
        client.verify_action("agent_1", {"type": "calculate", "query": "1"}, CONTEXT, {"risk_threshold": "low"})
    (heard,) = other.heard
    assert (heard.method, heard.path) == ("POST", "/agents/agent_1/verify")
    assert json.loads(heard.body) == {
        "action": {"type": "calculate", "query": "1"},
        "context": CONTEXT,
        "options": {"risk_threshold": "low"},
    }
    assert heard.headers["x-api-key"] == "qwed_live_k"


@pytest.mark.parametrize(
    "how",
    [
        *({"timeout": value} for value in (None, 0, -1, float("nan"), "5", True)),
        *({"retries": value} for value in (-1, None, 1.5, True)),
    ],
    ids=repr,
)
def test_a_patience_that_is_none_is_refused_where_it_is_given(how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(how))):
        QWEDClient("k", "http://127.0.0.1:9", **how)


def test_without_end_is_a_day() -> None:
    with fake_server(APPROVED) as other, QWEDClient("k", other.url, float("inf")) as client:
        assert verify(client).decision == "APPROVED"


@pytest.mark.parametrize("header", ["-1", "0.5", "1e9", "0", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999999"])
def test_a_time_to_come_back_that_is_none_changes_nothing(header: str) -> None:
    later = respond_with(503, {"decision": "DENIED"}, retry_after=header)
    with fake_server(later) as other, QWEDClient("k", other.url, retries=1) as client:
        assert verify(client).decision == "DENIED"
    assert len(other.heard) == 2


@pytest.mark.parametrize("timeout", [float("nan"), -1, None, "5"])
def test_nobody_waits_for_a_time_that_is_none(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout"):
        QWEDClient("k", "http://127.0.0.1:9").wait_for_decision("agent_1", "act_1", timeout)


def test_a_server_that_does_not_hold_a_question_back_is_not_asked_without_pause() -> None:
    with fake_server(respond_with(200, {"decision": "PENDING", "action_id": "act_1"})) as other:
        QWEDClient("k", other.url).wait_for_decision("agent_1", "act_1", timeout=0.4)
    assert len(other.heard) <= 3


def test_a_batch_that_is_never_over_is_given_as_it_stands() -> None:
    begun = respond_with(200, {"job_id": "job_1", "status": "processing"})
    with fake_server(begun) as other:
        assert not QWEDClient("k", other.url).verify_batch(["1 = 1"], timeout=0.1)
