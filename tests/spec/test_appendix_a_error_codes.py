"""Appendix A, Error Codes, and additions: each is produced with its HTTP status."""

from collections.abc import Callable

import httpx
import pytest

from qwed.model import ErrorCode
from tests.conftest import AgentConversation
from tests.spec.conftest import SpecServer
from tests.spec.requests import DELETE, EMAIL, FALSE, SUM, Json, another
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]
STATE = "0" * 64


def _send(ask: AgentConversation, action: Json = SUM, step: int = 1, **context: object) -> httpx.Response:
    return ask.send({"action": action, "context": {"conversation_id": "c", "step_number": step, **context}})


def _after(ask: AgentConversation, actions: list[Json], **context: object) -> httpx.Response:
    return [_send(ask, action, step, **context) for step, action in enumerate(actions, start=1)][-1]


def _with_token(ask: AgentConversation) -> httpx.Response:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}, "agent_token": "qwed_agent_wrong"}
    return ask.send(body)


def _nan(ask: AgentConversation) -> httpx.Response:
    action = '{"type": "calculate", "query": "1", "parameters": {"n": NaN}}'
    body = f'{{"action": {action}, "context": {{"conversation_id": "c", "step_number": 1}}}}'
    return ask.api.post(f"/agents/{ask.agent_id}/verify", content=body)


def _nobody(make: Make) -> httpx.Response:
    ask = make()
    ask.agent_id = "agent_0"
    return _send(ask)


REACHED: dict[str, tuple[int, str, Callable[[Make], httpx.Response]]] = {
    "QWED-AGENT-001": (404, "DENIED", _nobody),
    "QWED-AGENT-002": (401, "DENIED", lambda make: _with_token(make())),
    "QWED-AGENT-004": (200, "DENIED", lambda make: _send(make(permissions={"blocked_tools": ["calculate"]}))),
    "QWED-AGENT-005": (200, "DENIED", lambda make: _send(make(), FALSE)),
    "QWED-AGENT-CTX-001": (400, "DENIED", lambda make: make().send({"action": SUM})),
    "QWED-AGENT-CTX-002": (400, "DENIED", lambda make: _send(make(), step=0)),
    "QWED-AGENT-LOOP-001": (200, "DENIED", lambda make: _send(make(), step=51)),
    "QWED-AGENT-LOOP-002": (200, "DENIED", lambda make: [_send(ask) for ask in [make()] * 2][-1]),
    "QWED-AGENT-LOOP-003": (200, "DENIED", lambda make: _after(make(), [SUM] * 3)),
    "QWED-AGENT-BUDGET-001": (429, "BUDGET_EXCEEDED", lambda make: _send(make(budget={"max_daily_cost_usd": 0}))),
    "QWED-AGENT-BUDGET-002": (429, "BUDGET_EXCEEDED", lambda make: _send(make(budget={"max_requests_per_hour": 0}))),
    "QWED-AGENT-BUDGET-003": (
        429,
        "BUDGET_EXCEEDED",
        lambda make: _send(make(budget={"max_tokens_per_day": 0}), {**SUM, "cost": {"tokens": 1}}),
    ),
    "QWED-AGENT-TRUST-001": (200, "DENIED", lambda make: _send(make(), DELETE)),
    "QWED-AGENT-TRUST-002": (200, "PENDING", lambda make: _send(make(), EMAIL)),
}

ADDED: dict[str, tuple[int, str, Callable[[Make], httpx.Response]]] = {
    "QWED-AGENT-ACTION-001": (200, "DENIED", lambda make: _send(make(), {"type": "unheard_of"})),
    "QWED-AGENT-LOOP-004": (
        200,
        "DENIED",
        lambda make: _after(
            make(), [SUM, another(1), SUM, another(2), SUM], pre_action_state_hash=STATE, state_source="custom"
        ),
    ),
    "QWED-AGENT-STATE-001": (400, "DENIED", lambda make: _send(make(), state_source="custom")),
    "QWED-AGENT-STATE-002": (
        400,
        "DENIED",
        lambda make: _send(make(), pre_action_state_hash="x", state_source="custom"),
    ),
    "QWED-AGENT-STATE-003": (400, "DENIED", lambda make: _send(make(), pre_action_state_hash=STATE, state_source="x")),
    "QWED-AGENT-STATE-004": (400, "DENIED", lambda make: _nan(make())),
}

# Produced by other tests, or by parts that the server does not have yet.
ROWS_WITH_A_REASON = {"QWED-AGENT-003": "needs a suspended agent, and is reached below on a server that has one"}

PRINTED = {
    *(f"QWED-AGENT-00{number}" for number in range(1, 6)),
    *(f"QWED-AGENT-CTX-00{number}" for number in (1, 2)),
    *(f"QWED-AGENT-LOOP-00{number}" for number in (1, 2, 3)),
    *(f"QWED-AGENT-BUDGET-00{number}" for number in (1, 2, 3)),
    *(f"QWED-AGENT-TRUST-00{number}" for number in (1, 2)),
}


@spec("A")
def test_every_code_of_the_appendix_has_a_row() -> None:
    assert set(REACHED) | set(ROWS_WITH_A_REASON) == PRINTED
    ours = {row.code for row in ErrorCode if row.code.startswith("QWED-AGENT-")}
    assert ours == PRINTED | set(ADDED) | IN_AN_ORGANISATION_OF_ITS_OWN


IN_AN_ORGANISATION_OF_ITS_OWN = {"QWED-AGENT-POLICY-001", "QWED-AGENT-POLICY-002"}
"""Codes that `test_policies.py` reaches, because policies apply to every agent of an organisation."""

# The appendix, copied by hand.
DESCRIPTIONS = {
    "QWED-AGENT-001": "Agent not registered",
    "QWED-AGENT-002": "Invalid agent token",
    "QWED-AGENT-003": "Agent suspended",
    "QWED-AGENT-004": "Tool not allowed",
    "QWED-AGENT-005": "Verification failed",
    "QWED-AGENT-CTX-001": "Missing required action context (conversation_id and step_number)",
    "QWED-AGENT-CTX-002": "Invalid step_number (must be >= 1)",
    "QWED-AGENT-LOOP-001": "Conversation step limit exceeded (max 50 steps)",
    "QWED-AGENT-LOOP-002": "Replay or out-of-order action step detected",
    "QWED-AGENT-LOOP-003": "Repetitive action loop detected (max 2 consecutive identical actions)",
    "QWED-AGENT-BUDGET-001": "Daily cost exceeded",
    "QWED-AGENT-BUDGET-002": "Hourly rate exceeded",
    "QWED-AGENT-BUDGET-003": "Token limit exceeded",
    "QWED-AGENT-TRUST-001": "Insufficient trust level",
    "QWED-AGENT-TRUST-002": "Action requires approval",
}
# Meanings that were added: engines (ruling 4.5), whole numbers (4.6), limits that are settings, days.
WIDER = {
    "QWED-AGENT-004": "tool or engine not allowed",
    "QWED-AGENT-CTX-002": "invalid step_number (must be an integer >= 1)",
    "QWED-AGENT-LOOP-001": "conversation step limit exceeded",
    "QWED-AGENT-LOOP-003": "repetitive action loop detected",
    "QWED-AGENT-BUDGET-002": "rate exceeded",
}


@spec("A")
@pytest.mark.parametrize("code", DESCRIPTIONS)
def test_each_code_means_what_the_appendix_says(code: str) -> None:
    meant = [row.meaning for row in ErrorCode if row.code == code]
    assert WIDER.get(code, DESCRIPTIONS[code].lower()) in meant


@spec("A")
@pytest.mark.parametrize("code", [code for code in DESCRIPTIONS if "CTX-001" in code or "LOOP" in code])
def test_these_are_told_in_the_words_of_the_appendix(asking: Make, code: str) -> None:
    assert REACHED[code][2](asking).json()["error"]["message"] == DESCRIPTIONS[code].lower()


@spec("A")
@pytest.mark.parametrize("code", [*REACHED, *ADDED])
def test_each_code_is_reached_at_its_status_in_one_shape(asking: Make, code: str) -> None:
    status, decision, reach = (REACHED | ADDED)[code]
    response = reach(asking)
    answer = response.json()
    assert response.headers["content-type"] == "application/json"
    assert (response.status_code, answer["decision"], answer["error"]["code"]) == (status, decision, code)
    assert set(answer["error"]) >= {"code", "message", "details", "final"}
    assert isinstance(answer["error"]["details"], dict)
    # Messages are lower case without a full stop; the guide's tool message is quoted as printed.
    assert answer["error"]["message"]
    assert not answer["error"]["message"].endswith(".")


@spec("A")
@pytest.mark.parametrize("code", [*REACHED, *ADDED])
def test_every_refusal_says_which_check_refused(asking: Make, code: str) -> None:
    _status, _decision, reach = (REACHED | ADDED)[code]
    assert reach(asking).json()["error"].get("check")


@spec("A")
def test_a_suspended_agent_is_agent_003(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as owner:
        response = _send(AgentConversation(owner, spec_server.suspended))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "QWED-AGENT-003")


@spec("A")
def test_a_refusal_repeats_user_input_only_short_and_on_one_line(ask: AgentConversation) -> None:
    hostile = "x\n\x1b[31m" + "y" * 5000
    message = ask({"type": hostile}, 1)["error"]["message"]
    assert len(message) < 200
    assert message.isprintable()
