"""Spec 9.3, Repetitive Loop Detection."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from qwed_sdk import QWEDClient, QWEDRequestError
from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, Json, said
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.server import Server

LOOP = ("DENIED", "QWED-AGENT-LOOP-003")
OTHER: Json = {"type": "verify_logic", "query": "x > 1"}


@spec("9.3", "guide/Replay and loop detection", "guide/Conversation controls")
def test_the_third_identical_action_in_a_row_is_blocked(ask: AgentConversation) -> None:
    assert [said(ask(SUM, step)) for step in (1, 2, 3)] == [("APPROVED", None), ("APPROVED", None), LOOP]


@spec("9.3")
def test_the_counter_resets_when_a_different_action_is_submitted(ask: AgentConversation) -> None:
    steps = enumerate([SUM, SUM, OTHER, SUM, SUM], start=1)
    assert {ask(action, step)["decision"] for step, action in steps} == {"APPROVED"}
    assert said(ask(SUM, 6)) == LOOP


@spec("9.3")
def test_a_denied_action_in_between_does_not_reset_the_counter(ask: AgentConversation) -> None:
    assert [ask(SUM, step)["decision"] for step in (1, 2)] == ["APPROVED", "APPROVED"]
    assert said(ask(FALSE, 3)) == ("DENIED", "QWED-AGENT-005")
    assert said(ask(SUM, 3)) == LOOP


@spec("9.3", "guide/Replay and loop detection")
def test_a_loop_consumes_nothing_and_another_action_goes_on_at_the_same_step(ask: AgentConversation) -> None:
    for step in (1, 2):
        ask(SUM, step)
    assert said(ask(SUM, 3)) == LOOP
    assert said(ask(SUM, 3)) == LOOP
    assert said(ask(OTHER, 3)) == ("APPROVED", None)


@spec("9.3")
def test_pending_actions_count_as_well(ask: AgentConversation) -> None:
    assert [ask(EMAIL, step)["decision"] for step in (1, 2)] == ["PENDING", "PENDING"]
    assert said(ask(EMAIL, 3)) == LOOP


@spec("9.3")
def test_denied_actions_never_become_a_loop(ask: AgentConversation) -> None:
    assert {said(ask(FALSE, 1)) for _ in range(5)} == {("DENIED", "QWED-AGENT-005")}


@spec("9.3")
def test_each_conversation_counts_its_own(ask: AgentConversation) -> None:
    for name in ("one", "two", "three"):
        assert [said(ask(SUM, step, conversation=name)) for step in (1, 2, 3)][-1] == LOOP


FIELDS: list[tuple[Json, Json]] = [
    (SUM, {"type": "verify_math", "query": "2+2"}),
    (SUM, {"type": "calculate", "query": "2 +2"}),
    ({**SUM, "target": "a"}, {**SUM, "target": "b"}),
    ({"type": "execute_code", "code": "a = 1"}, {"type": "execute_code", "code": "a = 2"}),
    ({**SUM, "parameters": {"n": 1}}, {**SUM, "parameters": {"n": 2}}),
    ({"type": "tool_call", "tool": "get_weather"}, {"type": "tool_call", "tool": "search_web"}),
    ({**SUM, "parameters": {"n": 1}}, {**SUM, "parameters": {"n": "1"}}),
    ({**SUM, "parameters": {"n": [1, 2]}}, {**SUM, "parameters": {"n": [2, 1]}}),
    ({**SUM, "parameters": {"n": 2**53}}, {**SUM, "parameters": {"n": 2**53 + 1}}),
    ({**SUM, "parameters": {"n": None}}, {**SUM, "parameters": {}}),
    ({**SUM, "parameters": {"n": True}}, {**SUM, "parameters": {"n": 1}}),
    ({**SUM, "parameters": {"é": 1}}, {**SUM, "parameters": {"e\u0301": 1}}),
]


@spec("9.3")
@pytest.mark.parametrize(("one", "other"), FIELDS)
def test_actions_that_differ_in_one_field_are_different(
    asking: Callable[..., AgentConversation], one: Json, other: Json
) -> None:
    ask = asking(type="trusted")
    actions = itertools.islice(itertools.cycle([one, other]), 6)
    assert {ask(action, step)["decision"] for step, action in enumerate(actions, start=1)} == {"APPROVED"}


@spec("9.3")
def test_key_order_blanks_and_number_spelling_do_not_hide_a_repetition(ask: AgentConversation) -> None:
    spellings = [
        '{"type": "calculate", "query": "2+2", "parameters": {"a": 1, "b": {"c": 10, "d": 2}}}',
        '{"parameters":{"b":{"d":2,"c":10.0},"a":1},"query":"2+2","type":"calculate"}',
        '{"action_type": "calculate", "query": "\\u0032+2", "parameters": {"b": {"c": 1e1, "d": 2}, "a": 1}}',
    ]
    answers = [_send_raw(ask, action, step) for step, action in enumerate(spellings, start=1)]
    assert [said(answer) for answer in answers] == [("APPROVED", None), ("APPROVED", None), LOOP]


@spec("9.3")
@pytest.mark.parametrize("noise", [{"cost": {"usd": 0.5}}, {"code": None}, {"target": None}, {"parameters": None}])
def test_what_is_no_part_of_the_fingerprint_hides_nothing(ask: AgentConversation, noise: Json) -> None:
    actions = [SUM, {**SUM, **noise}, SUM]
    assert [said(ask(action, step)) for step, action in enumerate(actions, start=1)][-1] == LOOP


@spec("9.3")
def test_the_intent_and_options_hide_nothing(ask: AgentConversation) -> None:
    ask(SUM, 1, user_intent="one")
    ask(SUM, 2, options={"require_attestation": True})
    assert said(ask(SUM, 3, user_intent="three")) == LOOP


@spec("9.3")
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("place", ['{"n": %s}', '{"n": [1, {"deep": %s}]}'])
def test_non_finite_numbers_are_rejected(ask: AgentConversation, literal: str, place: str) -> None:
    action = f'{{"type": "calculate", "query": "2+2", "parameters": {place % literal}}}'
    answer = _send_raw(ask, action, 1)
    assert said(answer) == ("DENIED", "QWED-AGENT-STATE-004")
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("9.3")
@pytest.mark.parametrize("key", ["1", "null", "true"])
def test_keys_that_are_no_strings_are_rejected(ask: AgentConversation, key: str) -> None:
    action = f'{{"type": "calculate", "query": "2+2", "parameters": {{{key}: 1}}}}'
    assert said(_send_raw(ask, action, 1)) == ("DENIED", "QWED-REQ-001")


@spec("9.3")
@pytest.mark.parametrize(
    "parameters",
    [{1: "a"}, {True: "a"}, {"n": [{None: "a"}]}, {"n": math.nan}, {"n": -math.inf}, {"n": {1, 2}}],
    ids=str,
)
def test_python_values_that_json_has_not_are_rejected_in_process_and_by_the_client(
    server: Server, ask: AgentConversation, parameters: Any
) -> None:
    action, context = {**SUM, "parameters": parameters}, {"conversation_id": "c", "step_number": 1}
    with (
        QWEDClient(server.owner_key, server.base_url) as client,
        pytest.raises(QWEDRequestError, match="not valid JSON"),
    ):
        client.verify_action(ask.agent_id, action, context)
    assert ask.activity()["activities"] == []
    with open_gate(":memory:") as gate:
        agent = gate.register_agent(name="a", principal_id="u").agent_id
        assert said(dict(gate.verify_action(agent, action, context))) == ("DENIED", "QWED-AGENT-STATE-004")


@spec("9.3")
@pytest.mark.parametrize(
    "parameters",
    [{}, {"s": "text", "n": 1.5, "b": False, "z": None, "a": [1, "x", None], "o": {"k": {}}}, {"big": 10**40}],
)
def test_every_json_value_is_deterministic(ask: AgentConversation, parameters: Json) -> None:
    action = {"type": "tool_call", "tool": "get_weather", "parameters": parameters}
    assert [ask(action, step)["decision"] for step in (1, 2, 3)] == ["APPROVED", "APPROVED", "DENIED"]


@spec("9.3")
def test_half_a_surrogate_pair_has_no_fingerprint(ask: AgentConversation) -> None:
    answer = _send_raw(ask, '{"type": "calculate", "query": "2+2", "target": "\\ud800"}', 1)
    assert answer["decision"] == "DENIED"
    assert answer["error"]["code"] in ("QWED-REQ-001", "QWED-AGENT-STATE-004")


def _send_raw(ask: AgentConversation, action: str, step: int) -> Json:
    context = json.dumps({"conversation_id": ask.conversation, "step_number": step})
    body = f'{{"action": {action}, "context": {context}}}'
    answer: Json = ask.api.post(f"/agents/{ask.agent_id}/verify", content=body).json()
    return answer
