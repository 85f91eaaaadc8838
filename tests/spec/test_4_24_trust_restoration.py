"""Ruling 4.24: trust that was lost automatically is restored by a person at once."""

from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import CreateAgent, Keyholders, SpecServer
from tests.spec.requests import Json, changes_of, trust_of
from tests.spec.sections import spec

EVAL: Json = {"type": "execute_code", "code": "eval(input())"}


def _restore(client: httpx.Client, ask: AgentConversation, to_level: Any, **fields: Any) -> httpx.Response:
    body = {"request": "trust_restoration", "to_level": to_level, "reason": "a false alarm", **fields}
    return client.post(f"/agents/{ask.agent_id}/trust", json=body)


def _fallen(keyholders: Keyholders, level: int) -> AgentConversation:
    """Return an agent of this level that has lost two by a violation."""
    ask = keyholders.create_agent(trust_level=level)
    ask(EVAL, 1)
    assert trust_of(ask) == max(level - 2, 0)
    return ask


@spec("8.3")
def test_an_owner_restores_the_level_of_the_registration(keyholders: Keyholders) -> None:
    ask = _fallen(keyholders, 3)
    response = _restore(keyholders.owner, ask, 3)
    assert (response.status_code, response.json()["trust_level"], trust_of(ask)) == (200, 3, 3)
    (change,) = changes_of(ask, "trust_restored")
    assert change["change"] == {"level_before": 1, "level_after": 3, "reason": "a false alarm"}


@spec("8.3", "9.8")
def test_an_approver_restores_up_to_level_2(keyholders: Keyholders) -> None:
    ask = _fallen(keyholders, 3)
    assert _restore(keyholders.approver, ask, 3).status_code == 403
    assert _restore(keyholders.approver, ask, 2).status_code == 200
    assert trust_of(ask) == 2


@spec("8.3")
@pytest.mark.parametrize(("registered", "level"), [(2, 3), (2, 0), (1, 2), (2, 4), (2, "2"), (2, True)])
def test_no_other_level_is_restored(keyholders: Keyholders, registered: int, level: Any) -> None:
    ask = _fallen(keyholders, registered)
    assert _restore(keyholders.owner, ask, level).json()["error"]["code"] == "QWED-REQ-005"
    assert changes_of(ask, "trust_restored") == []


@spec("8.3")
def test_what_a_person_took_away_is_not_restored(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2)
    path = f"/agents/{ask.agent_id}/trust"
    body = {"request": "trust_reduction", "to_level": 1, "justification": "less"}
    assert keyholders.owner.post(path, json=body).status_code == 200
    ask(EVAL, 1)
    assert trust_of(ask) == 0
    assert _restore(keyholders.approver, ask, 2).json()["error"]["details"] == {"restorable_level": 1}
    assert _restore(keyholders.approver, ask, 1).status_code == 200


@spec("8.3", "9.8")
def test_members_and_agents_restore_nothing(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = _fallen(keyholders, 2)
    assert _restore(keyholders.member, ask, 2).status_code == 403
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert _restore(agent, ask, 2).status_code == 403
    assert trust_of(ask) == 0


@spec("8.3")
@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_restoration_says_why(keyholders: Keyholders, reason: str | None) -> None:
    ask = _fallen(keyholders, 2)
    assert _restore(keyholders.owner, ask, 2, reason=reason).status_code == 400
    response = _restore(keyholders.owner, ask, 2, reason=reason, justification="a false alarm")
    assert response.status_code == 200
    (change,) = changes_of(ask, "trust_restored")
    assert change["change"]["reason"] == "a false alarm"


@spec("8.2")
def test_a_refusal_by_trust_still_counts_as_evidence(create_agent: CreateAgent) -> None:
    ask = create_agent(trust_level=1)
    assert ask({"type": "file_delete", "target": "reports/today.txt"}, 1)["decision"] == "DENIED"
    asked = ask.api.post(f"/agents/{ask.agent_id}/trust", json={"to_level": 2})
    assert asked.json()["error"]["details"]["evidence"]["denied_actions"] == 1
