"""Spec 8.1, Trust Level Definitions; guide, Trust Levels; ruling 4.2."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import CreateAgent, Keyholders, SpecServer
from tests.spec.requests import (
    DELETE,
    EMAIL,
    FALSE,
    OF_RISK,
    SUM,
    TRUST_WORDS,
    WRITE,
    Json,
    changes_of,
    refusal_of,
    said,
    trust_of,
)
from tests.spec.sections import spec

# Spec 8.1 and the guide's matrix: the highest risk that each level may take alone, and the one a person must approve.
ALONE = {0: (), 1: ("low",), 2: ("low", "medium"), 3: ("low", "medium", "high", "critical")}
WITH_A_PERSON = {0: "low", 1: "medium", 2: "high"}


@spec("8.1", "guide/Trust Levels")
@pytest.mark.parametrize(("level", "word"), list(enumerate(TRUST_WORDS)))
def test_the_four_levels_have_these_values_and_names(
    asking: Callable[..., AgentConversation], level: int, word: str
) -> None:
    assert asking(trust_level=level).agent["trust_level"] == level
    assert asking(trust_level=word).agent["trust_level"] == level


@spec("8.1", "guide/Trust Levels")
def test_an_untrusted_agent_does_nothing_on_its_own(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(trust_level=0)
    for actions in OF_RISK.values():
        for action in actions:
            assert ask(action, 1, conversation=str(action))["decision"] in ("PENDING", "DENIED")


@spec("8.1", "guide/Trust Levels")
def test_a_trusted_agent_has_full_autonomy(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(trust_level=3)
    for actions in OF_RISK.values():
        for action in actions:
            assert ask(action, 1, conversation=str(action))["decision"] == "APPROVED"


@spec("8.1", "guide/Trust Levels")
@pytest.mark.parametrize("level", range(4))
def test_each_level_does_alone_what_its_row_says_asks_for_one_risk_more_and_stops_there(
    create_agent: CreateAgent, level: int
) -> None:
    ask = create_agent(trust_level=level)
    heard = {risk: ask(actions[0], 1, conversation=risk)["decision"] for risk, actions in OF_RISK.items()}
    for risk, decision in heard.items():
        asks = "PENDING" if WITH_A_PERSON.get(level) == risk else "DENIED"
        assert decision == ("APPROVED" if risk in ALONE[level] else asks)


@spec("8.1")
@pytest.mark.parametrize("action", [FALSE, {"type": "execute_code", "code": "eval(input())"}])
def test_full_autonomy_is_no_leave_to_do_what_verification_refuses(create_agent: CreateAgent, action: Json) -> None:
    assert said(create_agent(trust_level=3)(action, 1)) == ("DENIED", "QWED-AGENT-005")


@spec("8.1", "3.3")
@pytest.mark.parametrize("field", [{"type": "trusted"}, {"trust_level": 3}, {"trust_level": "trusted"}], ids=str)
@pytest.mark.parametrize("role", ["approver", "member"])
def test_level_3_is_an_owners_to_give(keyholders: Keyholders, role: str, field: Json) -> None:
    body = {"name": "ambitious", "principal_id": "user_123", **field}
    assert refusal_of(getattr(keyholders, role).post("/agents/register", json=body)) == (403, "QWED-AUTH-003")


@spec("8.1")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_trust_is_lowered_at_once_and_the_next_request_is_judged_by_it(keyholders: Keyholders, role: str) -> None:
    ask = keyholders.create_agent(trust_level=3)
    assert said(ask(DELETE, 1)) == ("APPROVED", None)
    body = {"request": "trust_reduction", "from_level": 3, "to_level": 1, "justification": "on probation"}
    response = getattr(keyholders, role).post(f"/agents/{ask.agent_id}/trust", json=body)
    assert (response.status_code, response.json()["trust_level"]) == (200, 1)
    assert response.json()["approval_id"] is None
    assert said(ask(DELETE, 2)) == ("DENIED", "QWED-AGENT-TRUST-001")
    (lowered,) = changes_of(ask, "trust_lowered")
    assert lowered["change"] == {"level_before": 3, "level_after": 1, "reason": "on probation"}
    assert lowered["by"].startswith("key_")


@spec("8.1")
def test_neither_a_member_nor_the_agent_lowers_trust(spec_server: SpecServer, create_agent: CreateAgent) -> None:
    ask = create_agent(trust_level=2)
    body = {"request": "trust_reduction", "to_level": 0}
    assert refusal_of(ask.api.post(f"/agents/{ask.agent_id}/trust", json=body)) == (403, "QWED-AUTH-003")
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert refusal_of(agent.post(f"/agents/{ask.agent_id}/trust", json=body)) == (403, "QWED-AUTH-003")
    assert trust_of(ask) == 2


@spec("8.1")
@pytest.mark.parametrize("to_level", [2, 3, -1, 4, True, 1.0, "1", None])
def test_a_reduction_goes_down_to_a_level_there_is(keyholders: Keyholders, to_level: object) -> None:
    ask = keyholders.create_agent(trust_level=2)
    body = {"request": "trust_reduction", "to_level": to_level}
    assert refusal_of(keyholders.owner.post(f"/agents/{ask.agent_id}/trust", json=body)) == (400, "QWED-REQ-005")
    assert trust_of(ask) == 2


@spec("8.1")
def test_a_lowered_agent_is_refused_what_it_was_told_to_wait_for(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2)
    waiting = ask(WRITE, 1)
    keyholders.owner.post(f"/agents/{ask.agent_id}/trust", json={"request": "trust_reduction", "to_level": 1})
    response = keyholders.approver.post(f"/approvals/{waiting['approval_id']}/approve", json={"reason": "fine"})
    assert refusal_of(response) == (409, "QWED-REQ-009")
    assert "beyond trust level 1" in response.json()["error"]["message"]
    assert said(ask(EMAIL, 2))[0] == "PENDING"
    assert said(ask(SUM, 3)) == ("APPROVED", None)
