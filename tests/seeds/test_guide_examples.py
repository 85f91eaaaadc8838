"""Statements of the guide's examples, with further cases than the printed ones."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qwed_new.core.tool_approval import ToolApprovalSystem as CoreToolApprovalSystem
from qwed_sdk import QWEDClient, ToolApprovalSystem
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.server import Server

Json = dict[str, Any]


@pytest.fixture
def client(server: Server) -> QWEDClient:
    return QWEDClient(server.owner_key, server.base_url)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
@pytest.mark.parametrize(
    ("kind", "code"),
    [("supervised", "QWED-AGENT-TRUST-001"), ("autonomous", "QWED-AGENT-TRUST-001"), ("trusted", None)],
)
def test_an_update_bound_to_the_state_of_the_database(client: QWEDClient, kind: str, code: str | None) -> None:
    agent = client.register_agent(name=unique_name("DataAnalyst"), type=kind, principal_id="user_123")
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
    # A write without WHERE is as critical as a deletion (ruling 4.3): trust decides.
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
def test_the_changelog_says_how_to_migrate() -> None:
    told = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    (entry,) = (each for each in told.split("\n- ") if each.startswith("Unknown tools are denied"))
    assert all(way in entry for way in ("`allowed_tools`", "`PUT /tools/{name}`", "`safe_operations`"))


@spec("guide/Tool approval")
def test_registering_custom_tools(client: QWEDClient) -> None:
    agent = client.register_agent(
        name=unique_name("DataAnalyst"),
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
    # The tool is known; then trust x risk applies: a name without a verb is HIGH, which a supervised agent may not do.
    assert answers == {
        "my_custom_tool": "DENIED",
        "fetch_report": "APPROVED",
        "another_tool": "DENIED",
        "execute_code": "DENIED",
    }
