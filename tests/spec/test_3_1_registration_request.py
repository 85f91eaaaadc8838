"""Spec 3.1, Registration Request: every field, both bodies, and every refusal by name."""

from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, said
from tests.spec.sections import spec
from tests.support.agent_names import release_name

LEAST: Json = {"name": "CustomerSupportBot", "principal_id": "org_abc123"}
PROFILE: Json = {
    **LEAST,
    "type": "autonomous",
    "description": "Handles customer inquiries",
    "framework": "langchain",
    "model": "claude-3.5-sonnet",
}
PERMISSIONS: Json = {
    "allowed_engines": ["math", "fact", "sql"],
    "allowed_tools": ["database_read", "send_email"],
    "blocked_tools": ["database_write", "file_delete"],
    "max_rows": 100,
    "allowed_tables": ["customers"],
    "allowed_columns": ["id", "name"],
    "sensitive_columns": ["salary"],
    "schema_ddl": "CREATE TABLE customers (id INT, name TEXT, salary INT)",
    "dialect": "postgres",
    "allowed_functions": ["fiscal_quarter"],
    "allowed_paths": ["/srv/data"],
    "allowed_domains": ["example.com"],
    "tolerances": ["tolerance=0.5", "tolerance_days=2", "strict_mode=false"],
}
BUDGET: Json = {
    "max_daily_cost_usd": 100.5,
    "max_per_request_usd": 1,
    "max_requests_per_hour": 1000,
    "max_requests_per_day": 10000,
    "max_tokens_per_request": 4096,
    "max_tokens_per_day": 1000000,
    "max_tool_calls_per_hour": 100,
    "max_high_risk_calls_per_day": 5,
}


def _register(api: httpx.Client, body: Any) -> httpx.Response:
    if isinstance(body, dict):
        profile = body["agent"] if isinstance(body.get("agent"), dict) else body
        release_name(api, profile.get("name"))
    return api.post("/agents/register", json=body)


@spec("3.1", "guide/Registering an Agent")
@pytest.mark.parametrize("nested", [True, False])
def test_the_flat_and_the_nested_body_register_the_same_agent(api: httpx.Client, nested: bool) -> None:
    rest = {"permissions": PERMISSIONS, "budget": BUDGET, "trust_level": "supervised"}
    response = _register(api, {"agent": PROFILE, **rest} if nested else {**PROFILE, **rest})
    assert response.status_code == 201
    agent = response.json()
    assert {name: agent[name] for name in PROFILE} == PROFILE
    assert agent["permissions"] == PERMISSIONS
    assert agent["budget"] == BUDGET
    assert agent["trust_level"] == 1


@spec("3.1")
def test_a_name_and_a_principal_are_enough(api: httpx.Client) -> None:
    agent = _register(api, LEAST).json()
    assert (agent["type"], agent["trust_level"], agent["status"]) == ("supervised", 1, "active")
    assert agent["budget"] == dict.fromkeys(BUDGET)
    assert agent["permissions"] == {**dict.fromkeys(PERMISSIONS), "blocked_tools": []}


@spec("3.1")
@pytest.mark.parametrize("name", ["name", "principal_id"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_required_field_is_named(api: httpx.Client, name: str, value: str | None) -> None:
    body = {**LEAST, name: value}
    if value is None:
        del body[name]
    for sent in (body, {"agent": body}):
        response = _register(api, sent)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "QWED-REQ-004")
        assert f"`{name}`" in response.json()["error"]["message"]


BAD_FIELDS: list[tuple[Json, str]] = [
    ({"name": 7}, "`name`"),
    ({"name": "x" * 257}, "`name`"),
    ({"name": "nul\x00"}, "`name`"),
    ({"principal_id": ["user"]}, "`principal_id`"),
    ({"principal_id": "x" * 257}, "`principal_id`"),
    ({"description": 1}, "`description`"),
    ({"description": "x" * 4097}, "`description`"),
    ({"framework": {}}, "`framework`"),
    ({"model": True}, "`model`"),
    ({"type": "wild"}, "`type`"),
    ({"type": "Supervised"}, "`type`"),
    ({"type": "untrusted"}, "`type`"),
    ({"type": 1}, "`type`"),
    ({"type": ""}, "`type`"),
    ({"type": False}, "`type`"),
    ({"type": []}, "`type`"),
    ({"type": ["trusted"]}, "`type`"),
    ({"trust_level": 4}, "`trust_level`"),
    ({"trust_level": -1}, "`trust_level`"),
    ({"trust_level": 1.0}, "`trust_level`"),
    ({"trust_level": True}, "`trust_level`"),
    ({"trust_level": "1"}, "`trust_level`"),
    ({"trust_level": "TRUSTED"}, "`trust_level`"),
    ({"trust_level": []}, "`trust_level`"),
    ({"status": "active"}, "`status`"),
    ({"agent_id": "agent_1"}, "`agent_id`"),
    ({"agent": []}, "`agent`"),
    ({"permissions": []}, "`permissions`"),
    ({"permissions": "all"}, "`permissions`"),
    ({"permissions": {"allowed_engine": ["math"]}}, "allowed_engine"),
    ({"permissions": {"allowed_engines": "math"}}, "allowed_engines"),
    ({"permissions": {"allowed_engines": ["maths"]}}, "`maths`"),
    ({"permissions": {"allowed_engines": [1]}}, "allowed_engines"),
    ({"permissions": {"allowed_tools": ["x", None]}}, "allowed_tools"),
    ({"permissions": {"allowed_tools": [""]}}, "allowed_tools"),
    ({"permissions": {"blocked_tools": {"x": 1}}}, "blocked_tools"),
    ({"permissions": {"blocked_tools": ["x"] * 1001}}, "blocked_tools"),
    ({"permissions": {"blocked_tools": ["x" * 257]}}, "blocked_tools"),
    ({"permissions": {"max_rows": 0}}, "max_rows"),
    ({"permissions": {"max_rows": 1.5}}, "max_rows"),
    ({"permissions": {"max_rows": True}}, "max_rows"),
    ({"permissions": {"schema_ddl": 5}}, "schema_ddl"),
    ({"permissions": {"dialect": "klingon"}}, "dialect"),
    ({"permissions": {"dialect": 5}}, "dialect"),
    ({"permissions": {"allowed_functions": "f"}}, "allowed_functions"),
    ({"permissions": {"schema_ddl": "x" * 100_001}}, "schema_ddl"),
    ({"permissions": {"allowed_tables": [None]}}, "allowed_tables"),
    ({"permissions": {"allowed_columns": "id"}}, "allowed_columns"),
    ({"permissions": {"sensitive_columns": 3}}, "sensitive_columns"),
    ({"permissions": {"allowed_paths": [7]}}, "allowed_paths"),
    ({"permissions": {"allowed_domains": "example.com"}}, "allowed_domains"),
    ({"permissions": {"tolerances": {"tolerance": 1}}}, "tolerances"),
    ({"permissions": {"tolerances": ["tolerance"]}}, "`tolerance`"),
    ({"permissions": {"tolerances": ["tolerance=-1"]}}, "`tolerance=-1`"),
    ({"permissions": {"tolerances": ["tolerance=nan"]}}, "`tolerance=nan`"),
    ({"permissions": {"tolerances": ["rounding=1"]}}, "`rounding=1`"),
    ({"budget": []}, "`budget`"),
    ({"budget": {"max_cost": 1}}, "`max_cost`"),
    ({"budget": {"max_daily_cost_usd": "1_000"}}, "max_daily_cost_usd"),
    ({"budget": {"max_daily_cost_usd": "NaN"}}, "max_daily_cost_usd"),
    *[({"budget": {name: -1}}, name) for name in BUDGET],
    *[({"budget": {name: True}}, name) for name in BUDGET],
    *[({"budget": {name: [1]}}, name) for name in BUDGET],
    *[({"budget": {name: 10**20}}, name) for name in BUDGET],
    *[({"budget": {name: 1.5}}, name) for name in BUDGET if not name.endswith("usd")],
    *[({"budget": {name: 0.0000001}}, "six decimals") for name in BUDGET if name.endswith("usd")],
]


@spec("3.1")
@pytest.mark.parametrize(("field", "named"), BAD_FIELDS, ids=lambda value: str(value)[:50])
def test_a_value_that_cannot_be_used_is_refused_by_name(api: httpx.Client, field: Json, named: str) -> None:
    response = _register(api, {**LEAST, **field})
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "QWED-REQ-001"
    assert named in error["message"]
    assert set(response.json()) == {"error"}


@spec("3.1")
@pytest.mark.parametrize("body", [None, [], "agent", 7])
def test_a_body_that_is_no_object_is_refused(api: httpx.Client, body: Any) -> None:
    assert _register(api, body).status_code == 400


@spec("3.1")
def test_an_unknown_field_is_refused_with_the_known_ones(api: httpx.Client) -> None:
    flat = _register(api, {**LEAST, "colour": "red"}).json()["error"]["message"]
    nested = _register(api, {"agent": {**LEAST, "colour": "red"}}).json()["error"]["message"]
    assert "`colour`" in flat
    assert "principal_id" in flat
    assert "`agent.colour`" in nested


@spec("3.1")
def test_the_two_bodies_do_not_mix(api: httpx.Client) -> None:
    response = _register(api, {"agent": LEAST, "name": "other"})
    assert response.status_code == 400
    assert "`name`" in response.json()["error"]["message"]


@spec("3.1")
@pytest.mark.parametrize("limit", list(BUDGET))
def test_null_means_no_limit_and_zero_means_nothing(api: httpx.Client, limit: str) -> None:
    assert _register(api, {**LEAST, "budget": {limit: None}}).json()["budget"][limit] is None
    assert _register(api, {**LEAST, "budget": {limit: 0}}).json()["budget"][limit] == 0


@spec("3.1")
@pytest.mark.parametrize(("sent", "shown"), [(100.00, 100), (0.1, 0.1), (0.000001, 0.000001), ("12.34", 12.34)])
def test_money_is_kept_exactly(api: httpx.Client, sent: Any, shown: float) -> None:
    assert (
        _register(api, {**LEAST, "budget": {"max_daily_cost_usd": sent}}).json()["budget"]["max_daily_cost_usd"]
        == shown
    )


@spec("3.1")
def test_agents_must_register_before_use(api: httpx.Client) -> None:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}
    response = api.post("/agents/agent_abc123/verify", json=body)
    assert (response.status_code, said(response.json())) == (404, ("DENIED", "QWED-AGENT-001"))


# Ruling 4.22: the engines and analyzers enforce the permissions.

NARROW: list[tuple[Json, Json, str]] = [
    ({"allowed_engines": ["logic"]}, SUM, "QWED-AGENT-004"),
    ({"allowed_engines": []}, SUM, "QWED-AGENT-004"),
    ({"blocked_tools": ["calculate"]}, SUM, "QWED-AGENT-004"),
    ({"allowed_tools": ["send_email"]}, {"type": "database_read"}, "QWED-AGENT-004"),
    ({"allowed_tools": []}, {"type": "file_read", "target": "a.txt"}, "QWED-AGENT-004"),
    ({"allowed_tables": ["orders"]}, {"type": "execute_sql", "query": "SELECT id FROM users"}, "QWED-AGENT-005"),
    ({"allowed_paths": ["/srv/data"]}, {"type": "file_read", "target": "/srv/other/x"}, "QWED-AGENT-005"),
    ({"allowed_paths": ["/srv/data"]}, {"type": "file_read", "target": "/srv/data/../other/x"}, "QWED-AGENT-005"),
    ({"allowed_domains": ["example.com"]}, {"type": "api_call", "target": "https://evil.com"}, "QWED-AGENT-005"),
    (
        {"allowed_domains": ["example.com"]},
        {"type": "api_call", "target": "https://example.com.evil.com"},
        "QWED-AGENT-005",
    ),
    (
        {"allowed_domains": ["example.com"]},
        {"type": "api_call", "target": "https://evil.com/@example.com"},
        "QWED-AGENT-005",
    ),
    (
        {"allowed_domains": ["example.com"]},
        {"type": "api_call", "target": "https://evil.com\\@example.com"},
        "QWED-AGENT-005",
    ),
    ({"allowed_domains": ["example.com"]}, {"type": "api_call"}, "QWED-AGENT-005"),
]


@spec("3.1")
@pytest.mark.parametrize(("permissions", "action", "code"), NARROW, ids=lambda value: str(value)[:60])
def test_what_the_permissions_leave_out_is_denied(
    api: httpx.Client, register: Any, permissions: Json, action: Json, code: str
) -> None:
    ask = AgentConversation(api, register(type="trusted", permissions=permissions))
    assert said(ask(action, 1)) == ("DENIED", code)


ALLOWED: list[tuple[Json, Json]] = [
    ({"allowed_engines": ["math"]}, SUM),
    ({"allowed_tools": []}, SUM),
    ({"allowed_tools": ["database_read"]}, {"type": "database_read"}),
    ({"allowed_tools": ["my_custom_tool"]}, {"type": "tool_call", "tool": "my_custom_tool"}),
    ({"allowed_tables": ["users"]}, {"type": "execute_sql", "query": "SELECT id FROM users"}),
    ({"sensitive_columns": ["salary"]}, {"type": "execute_sql", "query": "SELECT token FROM users"}),
    ({"allowed_paths": ["/srv/data"]}, {"type": "file_read", "target": "/srv/data/a/../b.txt"}),
    ({"allowed_domains": ["example.com"]}, {"type": "api_call", "target": "https://api.example.com/v1"}),
    ({"allowed_domains": ["Example.com"]}, {"type": "api_call", "target": "HTTPS://EXAMPLE.COM"}),
]


@spec("3.1")
@pytest.mark.parametrize(("permissions", "action"), ALLOWED, ids=lambda value: str(value)[:60])
def test_what_the_permissions_name_is_allowed(
    api: httpx.Client, register: Any, permissions: Json, action: Json
) -> None:
    ask = AgentConversation(api, register(type="trusted", permissions=permissions))
    assert said(ask(action, 1)) == ("APPROVED", None)


@spec("3.1")
def test_the_permissions_hold_for_parameters_that_say_otherwise(api: httpx.Client, register: Any) -> None:
    ask = AgentConversation(api, register(type="trusted", permissions={"allowed_tables": ["orders"]}))
    action = {
        "type": "execute_sql",
        "query": "SELECT id FROM users",
        "parameters": {"allowed_tables": ["users", "orders"]},
    }
    assert said(ask(action, 1)) == ("DENIED", "QWED-AGENT-005")
