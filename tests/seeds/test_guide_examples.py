"""The examples of the guide as printed, the same calls over HTTP; those that need the client package come with it."""

import hashlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from qwed_new.core.tool_approval import ToolApprovalSystem as CoreToolApprovalSystem
from qwed_sdk import ToolApprovalSystem
from tests.spec.sections import spec

Json = dict[str, Any]


class Client:
    """The calls of the guide, by the names it gives them."""

    def __init__(self, api: httpx.Client) -> None:
        self._api = api

    def register_agent(self, **body: Any) -> Json:
        return self._read(self._api.post("/agents/register", json=body))

    def verify_action(self, agent_id: str, action: Json, context: Json) -> Json:
        return self._read(self._api.post(f"/agents/{agent_id}/verify", json={"action": action, "context": context}))

    def get_agent_budget(self, agent_id: str) -> Json:
        return self._read(self._api.get(f"/agents/{agent_id}/budget"))

    def get_agent_activity(self, agent_id: str, limit: int) -> list[Json]:
        page = self._read(self._api.get(f"/agents/{agent_id}/activity", params={"limit": limit}))
        entries: list[Json] = page["activities"]
        return entries

    @staticmethod
    def _read(response: httpx.Response) -> Json:
        body: Json = response.json()
        return body


@pytest.fixture
def client(api: httpx.Client) -> Client:
    return Client(api)


@pytest.fixture
def agent(client: Client) -> Json:
    return client.register_agent(
        name="DataAnalyst",
        type="supervised",
        principal_id="user_123",
        permissions={
            "allowed_engines": ["math", "logic", "sql"],
            "blocked_tools": ["execute_code"],
        },
        budget={
            "max_daily_cost_usd": 100,
            "max_requests_per_hour": 500,
        },
    )


@spec("guide/Registering an Agent")
def test_registering_an_agent(agent: Json) -> None:
    assert agent["agent_id"].startswith("agent_")
    assert agent["agent_token"].startswith("qwed_agent_")


@spec("guide/Verifying actions")
def test_verifying_an_action(client: Client, agent: Json) -> None:
    decision = client.verify_action(
        agent_id=agent["agent_id"],
        action={"type": "execute_sql", "query": "SELECT * FROM users"},
        context={"conversation_id": "conv_xyz", "step_number": 1, "user_intent": "Get user list"},
    )
    assert decision["decision"] == "APPROVED"


@spec("guide/Incrementing steps correctly")
def test_incrementing_steps_correctly(client: Client, agent: Json) -> None:
    def verify(action: Json, step_number: int) -> Json:
        context = {"conversation_id": "conv_1", "step_number": step_number}
        return client.verify_action(agent_id=agent["agent_id"], action=action, context=context)

    assert verify({"type": "calculate", "query": "2+2"}, 1)["decision"] == "APPROVED"
    assert verify({"type": "calculate", "query": "2+2"}, 2)["decision"] == "APPROVED"
    result = verify({"type": "calculate", "query": "2+2"}, 3)
    assert result["decision"] == "DENIED"
    assert result["error"]["code"] == "QWED-AGENT-LOOP-003"
    assert verify({"type": "verify_logic", "query": "x > 1"}, 3)["decision"] == "APPROVED"


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
@pytest.mark.parametrize(
    ("kind", "code"),
    [("supervised", "QWED-AGENT-TRUST-001"), ("autonomous", "QWED-AGENT-TRUST-001"), ("trusted", None)],
)
def test_an_update_bound_to_the_state_of_the_database(client: Client, kind: str, code: str | None) -> None:
    agent = client.register_agent(name="DataAnalyst", type=kind, principal_id="user_123")
    db_snapshot = "checksum of the database"
    state_hash = hashlib.sha256(db_snapshot.encode()).hexdigest()
    decision = client.verify_action(
        agent_id=agent["agent_id"],
        action={"type": "execute_sql", "query": "UPDATE orders SET status = 'shipped'"},
        context={
            "conversation_id": "conv_xyz",
            "step_number": 4,
            "pre_action_state_hash": state_hash,
            "state_source": "db_snapshot",
        },
    )
    # A write that names no rows is as grave as a deletion (ruling 4.3): trust decides.
    assert (decision.get("error") or {}).get("code") == code
    assert decision["verification"]["risk_level"] == "critical"


@spec("guide/Tool approval")
@pytest.mark.parametrize("system", [ToolApprovalSystem, CoreToolApprovalSystem])
def test_an_unknown_tool_is_blocked_in_these_words(system: Callable[[], Any]) -> None:
    verdict = system().approve_tool_call("agent_abc123", "my_custom_tool", {"source": "database"})
    assert {name: verdict[name] for name in ("approved", "blocked_reason")} == {
        "approved": False,
        "blocked_reason": "Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)",
    }


@spec("guide/Tool approval")
def test_registering_custom_tools(client: Client) -> None:
    agent = client.register_agent(
        name="DataAnalyst",
        type="supervised",
        principal_id="user_123",
        permissions={
            "allowed_engines": ["math", "logic", "sql"],
            "allowed_tools": ["my_custom_tool", "fetch_report"],
            "blocked_tools": ["execute_code"],
        },
        budget={"max_daily_cost_usd": 100},
    )
    answers = {
        tool: client.verify_action(
            agent["agent_id"],
            {"type": "tool_call", "tool": tool},
            {"conversation_id": tool, "step_number": 1},
        )["decision"]
        for tool in ("my_custom_tool", "fetch_report", "another_tool", "execute_code")
    }
    # Known, and then judged by trust x risk: a supervised agent's MEDIUM risk tool needs a person.
    assert answers == {
        "my_custom_tool": "PENDING",
        "fetch_report": "APPROVED",
        "another_tool": "DENIED",
        "execute_code": "DENIED",
    }


@spec("guide/Budget Enforcement")
def test_checking_the_remaining_budget(client: Client, agent: Json) -> None:
    context = {"conversation_id": "conv_1", "step_number": 1}
    action = {"type": "calculate", "query": "2+2", "cost": {"usd": 45.50}}
    client.verify_action(agent["agent_id"], action, context)
    budget = client.get_agent_budget(agent["agent_id"])
    assert {"max_daily_usd": 100, "current_daily_usd": 45.50}.items() <= budget["cost"].items()
    assert {"max_per_hour": 500, "current_hour": 1}.items() <= budget["requests"].items()


@spec("guide/Activity logging")
def test_reading_the_activity(client: Client, agent: Json) -> None:
    for step in range(1, 13):
        action = {"type": "calculate", "query": f"{step} + 1"}
        client.verify_action(agent["agent_id"], action, {"conversation_id": "conv_1", "step_number": step})
    activity = client.get_agent_activity(agent["agent_id"], limit=10)
    lines = [f"{entry['timestamp']}: {entry['action_type']} -> {entry['decision']}" for entry in activity]
    assert len(lines) == 10
    assert all(line.endswith("Z: calculate -> APPROVED") for line in lines)


@spec("guide/Replay and loop detection")
def test_a_step_sent_again(client: Client, agent: Json) -> None:
    action, context = {"type": "calculate", "query": "2+2"}, {"conversation_id": "conv_1", "step_number": 1}
    assert client.verify_action(agent["agent_id"], action=action, context=context)["decision"] == "APPROVED"
    again = client.verify_action(agent["agent_id"], action=action, context=context)
    assert again["decision"] == "DENIED"
    assert again["error"]["code"] == "QWED-AGENT-LOOP-002"
