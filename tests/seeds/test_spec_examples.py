"""JSON examples of the specification as printed, with ids and tokens replaced by real ones."""

from typing import Any

import httpx
import pytest

from tests.spec.sections import spec
from tests.support.agent_names import release_name, unique_name

Json = dict[str, Any]

REGISTRATION: Json = {
    "agent": {
        "name": "CustomerSupportBot",
        "type": "autonomous",
        "description": "Handles customer inquiries",
        "principal_id": "org_abc123",
        "framework": "langchain",
        "model": "claude-3.5-sonnet",
    },
    "permissions": {
        "allowed_engines": ["math", "fact", "sql"],
        "allowed_tools": ["database_read", "send_email"],
        "blocked_tools": ["database_write", "file_delete"],
    },
    "budget": {
        "max_daily_cost_usd": 100.00,
        "max_requests_per_hour": 1000,
        "max_tokens_per_request": 4096,
    },
    "trust_level": "supervised",
}


@pytest.fixture
def agent(api: httpx.Client) -> Json:
    release_name(api, REGISTRATION["agent"]["name"])
    response = api.post("/agents/register", json=REGISTRATION)
    assert response.status_code == 201
    registered: Json = response.json()
    return registered


def _kept(sent: Any, shown: Any) -> bool:
    """Return True if the answer repeats everything that was sent."""
    if isinstance(sent, dict):
        return all(_kept(value, shown.get(name)) for name, value in sent.items())
    return bool(sent == shown)


@spec("3.1", "3.2")
def test_the_registration_request_and_its_response(agent: Json) -> None:
    assert agent["agent_id"].startswith("agent_")
    assert agent["agent_token"].startswith("qwed_agent_")
    assert agent["status"] == "active"
    assert agent["created_at"].endswith("Z")
    assert _kept(REGISTRATION["permissions"], agent["permissions"])
    assert _kept(REGISTRATION["budget"], agent["budget"])
    assert _kept(REGISTRATION["agent"], agent)


@spec("3.4")
def test_the_identity(agent: Json) -> None:
    assert agent["did"] == f"did:qwed:agent:{agent['agent_id']}"


@spec("4.1", "4.2")
def test_the_verification_request_and_its_response(stranger: httpx.Client, agent: Json) -> None:
    request = {
        "agent_id": agent["agent_id"],
        "agent_token": agent["agent_token"],
        "action": {
            "type": "execute_sql",
            "query": "SELECT * FROM customers WHERE status = 'active'",
            "target": "production_db",
        },
        "context": {
            "conversation_id": "conv_123",
            "step_number": 5,
            "user_intent": "Get list of active customers",
        },
        "options": {"require_attestation": True, "risk_threshold": "medium"},
    }
    response = stranger.post(f"/agents/{agent['agent_id']}/verify", json=request)
    assert response.status_code == 200
    answer = response.json()
    assert answer["decision"] == "APPROVED"
    assert _kept({"status": "VERIFIED", "engine": "sql", "risk_level": "low"}, answer["verification"])
    printed = {"no_destructive_operations", "no_sensitive_columns", "schema_valid"}
    assert printed <= set(answer["verification"]["checks_passed"])
    assert answer["attestation"].startswith("eyJhbGciOiJFUzI1NiIs")
    assert answer["budget_remaining"] == {"daily_cost_usd": 99.99, "hourly_requests": 999}


TOOL_CALL: Json = {
    "tool_call": {
        "tool_name": "send_email",
        "parameters": {
            "to": "user@example.com",
            "subject": "Your order status",
            "body": "Your order #12345 has shipped...",
        },
    },
    "justification": "User requested order status update",
}


@spec("5.1", "5.2")
def test_the_tool_call_and_its_assessment(api: httpx.Client) -> None:
    # The printed answer approves medium risk, which needs an autonomous agent (guide, Decision matrix).
    release_name(api, REGISTRATION["agent"]["name"])
    agent = api.post("/agents/register", json={**REGISTRATION, "trust_level": "autonomous"}).json()
    # The context is required here as well (ruling 4.20).
    context = {"conversation_id": "conv_123", "step_number": 6}
    body = {"agent_id": agent["agent_id"], **TOOL_CALL, "context": context}
    answer = api.post(f"/agents/{agent['agent_id']}/tools/send_email", json=body).json()
    assert answer["decision"] == "APPROVED"
    assert answer["tool_name"] == "send_email"
    assert answer["risk_assessment"] == {
        "base_risk": "medium",
        "factors": [
            {"factor": "external_communication", "weight": 0.3},
            {"factor": "pii_in_content", "weight": 0.5},
        ],
        "final_risk": "medium",
        "requires_approval": False,
    }
    for check in ({"policy": "no_pii_leakage", "passed": True}, {"policy": "rate_limit", "passed": True}):
        assert check in answer["policy_checks"]


@spec("5.1")
def test_the_tool_call_as_printed_lacks_the_context_that_9_1_requires(api: httpx.Client, agent: Json) -> None:
    body = {"agent_id": agent["agent_id"], **TOOL_CALL}
    response = api.post(f"/agents/{agent['agent_id']}/tools/send_email", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "QWED-AGENT-CTX-001")


@spec("5.3")
@pytest.mark.parametrize(
    "row",
    [
        {"name": "database_read", "risk_level": "low", "requires_verification": True, "verification_engine": "sql"},
        {
            "name": "database_write",
            "risk_level": "high",  # printed critical; the guide, which is newer, says high (ruling 4.3)
            "requires_verification": True,
            "requires_approval": True,
            "verification_engine": "sql",
        },
        {
            "name": "execute_code",
            "risk_level": "critical",
            "requires_verification": True,
            "verification_engine": "code",
            "sandbox_required": True,
        },
    ],
    ids=lambda row: row["name"],
)
def test_the_tool_registry(api: httpx.Client, row: Json) -> None:
    shown = {each["name"]: each for each in api.get("/tools").json()["tools"]}
    assert _kept(row, shown[row["name"]])


@spec("6.1")
def test_the_budget_schema(api: httpx.Client) -> None:
    limits = {
        "max_daily_cost_usd": 100.00,
        "max_per_request_usd": 11.00,
        "max_requests_per_hour": 1000,
        "max_requests_per_day": 10000,
        "max_tokens_per_request": 50000,
        "max_tokens_per_day": 1000000,
        "max_tool_calls_per_hour": 100,
        "max_high_risk_calls_per_day": 5,
    }
    agent = api.post("/agents/register", json={"name": unique_name(), "principal_id": "u", "budget": limits}).json()
    action = {"type": "calculate", "query": "2+2", "cost": {"usd": 10.50, "tokens": 50000}}
    body = {"action": action, "context": {"conversation_id": "conv_123", "step_number": 1}}
    assert api.post(f"/agents/{agent['agent_id']}/verify", json=body).json()["decision"] == "APPROVED"
    printed = {
        "cost": {"max_daily_usd": 100.00, "max_per_request_usd": 11.00, "current_daily_usd": 10.50},
        "requests": {"max_per_hour": 1000, "max_per_day": 10000, "current_hour": 1, "current_day": 1},
        "tokens": {"max_per_request": 50000, "max_daily": 1000000, "current_daily": 50000},
        "tools": {"max_calls_per_hour": 100, "high_risk_calls_remaining": 5},
    }
    assert _kept(printed, api.get(f"/agents/{agent['agent_id']}/budget").json())


@spec("6.3")
def test_the_budget_response(api: httpx.Client, agent: Json) -> None:
    def verify(usd: float, step: int) -> httpx.Response:
        action = {"type": "calculate", "query": f"{step} + 1", "cost": {"usd": usd}}
        body = {"action": action, "context": {"conversation_id": "conv_123", "step_number": step}}
        return api.post(f"/agents/{agent['agent_id']}/verify", json=body)

    assert verify(99.50, 1).json()["decision"] == "APPROVED"
    response = verify(3, 2)
    assert response.status_code == 429
    answer = response.json()
    assert answer["decision"] == "BUDGET_EXCEEDED"
    assert answer["error"]["code"] == "QWED-AGENT-BUDGET-001"
    assert answer["error"]["message"].lower() == "daily cost limit exceeded"
    # Nothing is charged above a limit, so `current` cannot exceed it as in the printed example.
    assert (answer["error"]["details"]["limit"], answer["error"]["details"]["current"]) == (100, 99.5)
    assert answer["error"]["details"]["reset_at"].endswith("T00:00:00Z")


@spec("7.1", "7.2")
def test_the_activity_and_the_audit_query(api: httpx.Client, agent: Json) -> None:
    action = {"type": "tool_call", "tool": "database_read", "parameters": {"query": "SELECT id FROM customers"}}
    cost = {"usd": 0.05, "tokens": 150}
    body = {
        "action": {**action, "cost": cost},
        "context": {"conversation_id": "conv_123", "step_number": 1},
        "options": {"require_attestation": True},
    }
    answer = api.post(f"/agents/{agent['agent_id']}/verify", json=body).json()
    assert answer["decision"] == "APPROVED"
    place = f"/agents/{agent['agent_id']}/actions/{answer['action_id']}/execution"
    assert api.post(place, json={"success": True, "result": [[1], [2]]}).status_code == 200
    page = api.get(f"/agents/{agent['agent_id']}/activity").json()
    (activity,) = page["activities"]
    assert activity["activity_id"].startswith("act_")
    assert activity["attestation_id"].startswith("att_")
    printed = {"agent_id": agent["agent_id"], "action": action, "decision": "APPROVED", "cost": cost}
    assert _kept(printed, activity)
    assert _kept({"status": "VERIFIED", "engine": "sql"}, activity["verification"])
    assert "latency_ms" in activity["verification"]
    assert activity["execution"]["success"] is True
    assert activity["execution"]["result_hash"].startswith("sha256:")
    asked = api.get(f"/agents/{agent['agent_id']}/activity?from=2025-12-01&to=2025-12-20").json()
    assert asked["agent_id"] == agent["agent_id"]
    assert asked["period"] == {"from": "2025-12-01T00:00:00Z", "to": "2025-12-20T00:00:00Z"}
    printed_names = {"total_actions", "approved", "denied", "corrected", "total_cost_usd"}
    assert printed_names <= set(asked["summary"])


@spec("9.1", "9.2")
def test_the_calls_of_the_sdk_example_over_http(api: httpx.Client) -> None:
    body: Json = {
        "name": "MyAgent",
        "principal_id": "org_123",
        "permissions": {"allowed_engines": ["math", "sql"], "allowed_tools": ["database_read"]},
        "budget": {"max_daily_cost_usd": 50.00},
    }
    release_name(api, body["name"])
    agent = api.post("/agents/register", json=body).json()
    request = {
        "action": {"type": "execute_sql", "query": "SELECT * FROM users"},
        "context": {"conversation_id": "conv_1", "step_number": 1},
    }
    result = api.post(f"/agents/{agent['agent_id']}/verify", json=request).json()
    assert result["decision"] == "APPROVED"
    assert result["verified_query"] == "SELECT * FROM users"
    assert result["action_id"].startswith("act_")
    executed = {"success": True, "attestation": result.get("attestation")}
    logged = api.post(f"/agents/{agent['agent_id']}/actions/{result['action_id']}/execution", json=executed)
    assert (logged.status_code, logged.json()["execution"]["success"]) == (200, True)


@spec("8.2")
def test_the_trust_elevation_is_not_believed_for_its_own_evidence(api: httpx.Client, agent: Json) -> None:
    body = {
        "agent_id": agent["agent_id"],
        "request": "trust_elevation",
        "from_level": 1,
        "to_level": 2,
        "justification": "30 days of safe operation",
        "evidence": {
            "days_active": 30,
            "total_actions": 50000,
            "denied_actions": 50,
            "denial_rate": 0.001,
            "attestations": 50000,
        },
    }
    response = api.post(f"/agents/{agent['agent_id']}/trust", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "QWED-REQ-009")
    computed = response.json()["error"]["details"]["evidence"]
    assert set(computed) == set(body["evidence"])
    assert computed["total_actions"] == 0
