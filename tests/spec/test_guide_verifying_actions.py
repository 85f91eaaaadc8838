"""Guide: Verifying actions, and Risk assessment as its table prints it."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, Json, said
from tests.spec.sections import spec


@spec("guide/Verifying actions")
def test_the_four_answers_the_guide_branches_on(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_per_request_usd": 1})
    assert said(ask(SUM, 1))[0] == "APPROVED"
    assert said(ask(FALSE, 2))[0] == "DENIED"
    assert said(ask(EMAIL, 2))[0] == "PENDING"
    over = ask({**SUM, "cost": {"usd": 2}}, 3)
    assert over["decision"] == "BUDGET_EXCEEDED"
    assert over["error"]["message"]


@spec("guide/Verifying actions")
def test_a_request_without_context_is_rejected(ask: AgentConversation) -> None:
    assert said(ask.send({"action": SUM}).json()) == ("DENIED", "QWED-AGENT-CTX-001")


TABLE = {
    "low": [{"type": "read_file", "target": "a.txt"}, {"type": "database_read"}],
    "medium": [{"type": "send_email"}, {"type": "api_call", "target": "https://example.com"}],
    "high": [{"type": "file_write", "target": "a.txt"}, {"type": "database_write"}],
    "critical": [
        {"type": "execute_code", "code": "print(1)"},
        {"type": "file_delete", "target": "a.txt"},
        {"type": "execute_sql", "query": "DROP TABLE users"},
    ],
}
ROWS = [(action, risk) for risk, actions in TABLE.items() for action in actions]


@spec("guide/Risk assessment")
@pytest.mark.parametrize(("action", "risk"), ROWS, ids=lambda value: str(value)[:50])
def test_the_examples_of_the_risk_table(asking: Callable[..., AgentConversation], action: Json, risk: str) -> None:
    assert asking(type="trusted")(action, 1)["verification"]["risk_level"] == risk
