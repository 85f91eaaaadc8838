"""Tool approval (guide)."""

import pytest

import qwed_new.core.tool_approval
import qwed_sdk
from qwed.guards.tool_approval import ToolApprovalSystem, fold_name

SAFE = ("read_database", "query_data", "search_web", "send_email", "log_message", "get_weather")
DANGEROUS = ("delete_database", "drop_table", "send_money", "delete_files", "shutdown_server", "revoke_access")


def approve(name, params=None, system=None):
    return (system or ToolApprovalSystem()).approve_tool_call("agent_abc123", name, params)


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_tool_is_approved(name):
    result = approve(name, {"q": "x"})
    assert result.approved
    assert (result["category"], result["blocked_reason"], result.risk_score) == ("safe", None, 0.0)


@pytest.mark.parametrize("name", DANGEROUS)
def test_a_dangerous_tool_needs_manual_approval(name):
    result = approve(name)
    assert not result.approved
    assert result.category == "dangerous"
    assert result.blocked_reason == f"Dangerous operation '{name}' requires manual approval"
    assert result.approved_by is None


def test_an_unknown_tool_is_denied_with_the_message_of_the_guide():
    result = approve("my_custom_tool", {"target": "the database"})
    assert dict(result) == {
        "approved": False,
        "blocked_reason": "Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)",
        "risk_score": 0.2,
        "category": "unknown",
        "approved_by": None,
    }


@pytest.mark.parametrize(
    ("name", "params", "score"),
    [
        ("noop", {}, 0.0),
        ("noop", None, 0.0),
        ("noop", {"DATABASE": 1}, 0.2),
        ("noop", {"a": ["Admin"]}, 0.2),
        ("noop", {"a": "database admin"}, 0.4),
        ("delete_row", {}, 0.5),
        ("drop_and_delete", {}, 0.5),
        ("payment", {}, 0.4),
        ("delete_payment", {}, 0.9),
        ("drop_money", {"x": "database"}, 1.0),
        ("drop_money", {"x": "database admin"}, 1.0),
    ],
)
def test_the_score_adds_up_and_stops_at_one(name, params, score):
    result = approve(name, params)
    assert result.risk_score == score
    assert result.blocked_reason.endswith(f"(risk_score={score:.1f})")


def test_a_tool_added_to_the_safe_list_is_approved():
    system = ToolApprovalSystem()
    system.safe_operations.add("my_custom_tool")
    system.safe_operations.add("getForecast")
    assert approve("my_custom_tool", system=system).approved
    assert approve("getForecast", system=system).approved
    assert not approve("getforecast", system=system).approved


def test_a_tool_on_both_lists_is_dangerous():
    system = ToolApprovalSystem()
    system.dangerous_operations.add("send_email")
    assert approve("send_email", system=system).category == "dangerous"


def test_lists_of_one_system_are_not_those_of_another():
    ToolApprovalSystem().safe_operations.add("x")
    assert not approve("x").approved


@pytest.mark.parametrize(
    "name",
    [
        *("Drop_Table", "DROP_TABLE", "\uff44rop_table", "drop\uff3ftable", "drop\u200b_table"),
        *(" drop_table", "drop_table\n", "\u017ftop"),
    ],
)
def test_no_spelling_of_a_dangerous_name_is_safe(name):
    system = ToolApprovalSystem(safe_operations=[name])
    system.dangerous_operations.add("stop")
    assert approve(name, system=system).category == "dangerous"


@pytest.mark.parametrize(
    "name",
    [
        *("READ_DATABASE", "Read_Database", "\uff52ead_database", "read\u200b_database"),
        *(" read_database", "", "r\u0435ad_database"),
    ],
)
def test_a_look_alike_of_a_safe_name_is_unknown(name):
    assert approve(name).category == "unknown"


def test_a_disguised_name_is_not_safe_even_where_it_is_listed():
    name = "\uff52ead_database"
    assert approve(name, system=ToolApprovalSystem(safe_operations=[name])).category == "unknown"


def test_folding_is_stable():
    for name in ("Drop_Table", "\uff24rop", "Stra\u00dfe", "\u0130x", "a\u200db", "\u01c4"):
        assert fold_name(fold_name(name)) == fold_name(name)


def test_hostile_names_and_parameters_are_answered():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert len(approve("x" * 1_000_000).blocked_reason) < 300
    assert approve("noop", deep).risk_score == 1.0
    assert "\n" not in approve("a\nb").blocked_reason
    assert approve(None).category == approve(["read_database"]).category == "unknown"


def test_the_published_names_are_the_same_class():
    assert qwed_sdk.ToolApprovalSystem is ToolApprovalSystem
    assert qwed_new.core.tool_approval.ToolApprovalSystem is ToolApprovalSystem
