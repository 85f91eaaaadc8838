"""Spec 4.1 and 5.2: stated effects are added to the detected ones and remove none."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from qwed.model import RISK_OF, EffectKind
from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, hash_of, said, tool_call
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate

Make = Callable[..., AgentConversation]
READING = "mcp__shop__list_orders"
ALLOWED = {"allowed_tools": ["mcp__shop__*", "file_delete", "send_email", "file_read"]}


def _told(answer: Json) -> list[tuple[str, str]]:
    return [(effect["effect"], effect["target"]) for effect in answer["verification"]["effects"]]


@spec("5.2")
@pytest.mark.parametrize("kind", list(EffectKind))
def test_a_stated_effect_counts_like_one_that_was_found(asking: Make, kind: EffectKind) -> None:
    answer = asking(type="trusted", permissions=ALLOWED)({**tool_call(READING), "effects": [kind]}, 1)
    assert (kind, READING) in _told(answer)
    assert answer["risk_assessment"]["final_risk"] == RISK_OF[kind].word


@spec("5.2")
@pytest.mark.parametrize("effects", [[], None, ["READ"], ["READ", "READ"]])
def test_nothing_that_is_stated_takes_an_effect_away(asking: Make, effects: Any) -> None:
    ask = asking(type="autonomous", permissions=ALLOWED)
    deleting = {"type": "file_delete", "target": "reports/today.txt", "effects": effects}
    assert said(ask(deleting, 1)) == ("DENIED", "QWED-AGENT-TRUST-001")
    sending = {**tool_call("send_email", to="a@example.com"), "effects": effects}
    assert ask(sending, 2)["risk_assessment"]["final_risk"] == "medium"


@spec("5.2", "4.1")
def test_an_effect_may_be_stated_of_any_action(asking: Make) -> None:
    ask = asking(type="autonomous", permissions=ALLOWED)
    assert said(ask({**SUM, "effects": ["DELETE"]}, 1)) == ("DENIED", "QWED-AGENT-TRUST-001")
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("4.2")
def test_what_is_stated_is_no_part_of_the_hash_and_not_remembered_for_others(asking: Make) -> None:
    ask = asking(type="autonomous", permissions=ALLOWED)
    plain = tool_call(READING)
    stated: list[Json] = [{}, {"effects": ["WRITE"]}, {}]
    answers = [ask({**plain, **more}, 1, conversation=f"c{number}") for number, more in enumerate(stated)]
    assert [answer["decision"] for answer in answers] == ["APPROVED", "PENDING", "APPROVED"]
    shown = ask.api.get(f"/approvals/{answers[1]['approval_id']}").json()
    assert shown["action_hash"] == f"sha256:{hash_of(plain)}"


@spec("4.1")
@pytest.mark.parametrize("word", ["ERASE", "delete", "", 4, None, ["READ"]])
@pytest.mark.parametrize("door", ["verify", f"tools/{READING}"])
def test_an_unknown_effect_is_refused_by_name_with_those_there_are(asking: Make, word: Any, door: str) -> None:
    ask = asking(permissions=ALLOWED)
    effects = ["READ", word]
    where = {"context": {"conversation_id": "c", "step_number": 1}}
    body = {"action": {**tool_call(READING), "effects": effects}} if door == "verify" else {"effects": effects}
    refused = ask.api.post(f"/agents/{ask.agent_id}/{door}", json={**body, **where})
    error = refused.json()["error"]
    assert f"unknown effect `{word}` in `action.effects`" in error["message"]
    assert all(kind in error["message"] for kind in EffectKind)


@spec("4.1")
@pytest.mark.parametrize("effects", ["READ", {"READ": 1}, 7])
def test_effects_that_are_no_list_are_refused(asking: Make, effects: Any) -> None:
    refused = asking(permissions=ALLOWED)({**tool_call(READING), "effects": effects}, 1)
    assert (refused["decision"], "`action.effects`" in refused["error"]["message"]) == ("DENIED", True)


@spec("9.2")
def test_a_key_with_other_effects_is_a_key_with_another_body(asking: Make) -> None:
    ask = asking(type="autonomous", permissions=ALLOWED)
    headers = {"Idempotency-Key": "one"}
    where = {"context": {"conversation_id": "c", "step_number": 1}}

    def sent(**more: Any) -> httpx.Response:
        return ask.api.post(f"/agents/{ask.agent_id}/tools/{READING}", json={**where, **more}, headers=headers)

    assert sent(effects=["NETWORK"]).json()["decision"] == "APPROVED"
    assert sent(effects=["NETWORK"]).status_code == 200
    assert sent(effects=["WRITE"]).status_code == 409
    assert sent().status_code == 409


@spec("5.2", "7.1")
def test_a_secret_that_is_read_does_not_leave_where_leaving_is_stated(asking: Make) -> None:
    reading = {**tool_call("file_read", path="/srv/app/.env"), "effects": ["COMMUNICATE"]}
    answer = asking(type="trusted", permissions=ALLOWED)(reading, 1)
    assert (answer["decision"], answer["error"]["check"]) == ("DENIED", "no_secret_leakage")


@spec("5.1")
def test_an_effect_is_stated_in_process_as_well() -> None:
    with open_gate() as gate:
        agent = gate.register_agent(name="a", principal_id="p", type="autonomous", permissions=ALLOWED).agent_id
        at = {"conversation_id": "c", "step_number": 1}
        assert gate.verify_tool_call(agent, READING, {}, at, effects=["SPEND"]).decision == "DENIED"
        assert gate.verify_tool_call(agent, READING, {}, at, effects=("WRITE",)).decision == "PENDING"
