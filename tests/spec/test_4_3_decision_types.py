"""Spec 4.3, Decision Types; ruling 4.9, their HTTP status; ruling 4.12, CORRECTED."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, WRONG_SUM, Json, said
from tests.spec.sections import spec


def _body(action: Json, step: int = 1) -> Json:
    return {"action": action, "context": {"conversation_id": "c", "step_number": step}}


@spec("4.3")
@pytest.mark.parametrize(
    ("action", "decision"), [(SUM, "APPROVED"), (FALSE, "DENIED"), (WRONG_SUM, "CORRECTED"), (EMAIL, "PENDING")]
)
def test_a_decision_is_200_whatever_it_says(ask: AgentConversation, action: Json, decision: str) -> None:
    response = ask.send(_body(action))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["decision"] == decision


@spec("4.3")
def test_budget_exceeded_is_429(asking: Callable[..., AgentConversation]) -> None:
    response = asking(budget={"max_requests_per_hour": 0}).send(_body(SUM))
    assert response.status_code == 429
    assert response.json()["decision"] == "BUDGET_EXCEEDED"


@spec("4.3")
def test_pending_names_its_approval_and_when_it_expires(ask: AgentConversation) -> None:
    answer = ask(EMAIL, 1)
    assert answer["approval_id"].startswith("apr_")
    assert answer["expires_at"].endswith("Z")
    assert answer["error"]["details"] == {
        "approval_id": answer["approval_id"],
        "expires_at": answer["expires_at"],
        "trust_level": 1,
        "effects": [{"effect": "COMMUNICATE", "target": "send_email"}],
    }
    assert answer["error"]["final"] is False


@spec("4.3")
@pytest.mark.parametrize(
    ("claim", "repaired"),
    [("2+2 = 5", "2+2 = 4"), ("0.1 + 0.2 = 0.4", "0.1 + 0.2 = 0.3"), ("10 / 4 = 3", "10 / 4 = 2.5")],
)
def test_corrected_offers_the_one_right_value(ask: AgentConversation, claim: str, repaired: str) -> None:
    answer = ask({"type": "calculate", "query": claim, "target": "ledger"}, 1)
    assert said(answer) == ("CORRECTED", None)
    assert answer["corrected"] == {"type": "calculate", "query": repaired, "target": "ledger"}
    assert answer["verified_query"] == repaired


@spec("4.3")
def test_a_correction_verifies_itself(ask: AgentConversation) -> None:
    corrected = ask(WRONG_SUM, 1)["corrected"]
    assert said(ask(corrected, 2)) == ("APPROVED", None)


@spec("4.3")
def test_an_identity_that_is_simply_false_has_no_correction(ask: AgentConversation) -> None:
    answer = ask(FALSE, 1)
    assert said(answer) == ("DENIED", "QWED-AGENT-005")
    assert "corrected" not in answer


@spec("4.3")
@pytest.mark.parametrize("query", ["2+2 = 4", "2+2", "  2 +  2 = 4"])
def test_an_action_with_nothing_wrong_is_never_rewritten(ask: AgentConversation, query: str) -> None:
    answer = ask({"type": "calculate", "query": query}, 1)
    assert (answer["decision"], answer["verified_query"]) == ("APPROVED", query)
    assert "corrected" not in answer


@spec("4.3")
def test_a_query_wider_than_the_agent_may_ask_is_narrowed(asking: Callable[..., AgentConversation]) -> None:
    permissions = {
        "schema_ddl": "CREATE TABLE users (id INT, name TEXT, password TEXT)",
        "allowed_columns": ["id", "name"],
        "max_rows": 10,
    }
    answer = asking(permissions=permissions)({"type": "execute_sql", "query": "SELECT * FROM users"}, 1)
    assert answer["decision"] == "CORRECTED"
    narrowed = answer["verified_query"].lower()
    assert "password" not in narrowed
    assert "*" not in narrowed
    assert "limit 10" in narrowed


@spec("4.3")
def test_corrected_commits_is_charged_and_counts_under_the_submitted_action(
    asking: Callable[..., AgentConversation],
) -> None:
    ask = asking()
    assert [ask(WRONG_SUM, step)["decision"] for step in (1, 2)] == ["CORRECTED", "CORRECTED"]
    assert said(ask(WRONG_SUM, 2)) == ("DENIED", "QWED-AGENT-LOOP-002")
    assert said(ask(WRONG_SUM, 3)) == ("DENIED", "QWED-AGENT-LOOP-003")
    assert ask.budget()["cost"]["current_daily_usd"] == 0.02
