"""Spec 5.1, Tool Call Request; ruling 4.4, which tools an agent may call; ruling 4.20, context."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed_new.core.tool_approval import ToolApprovalSystem
from tests.conftest import AgentConversation
from tests.spec.requests import Json, said
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.server import Server

PARAMETERS: Json = {
    "to": "user@example.com",
    "subject": "Your order status",
    "body": "Your order #12345 has shipped...",
}
HERE: Json = {"conversation_id": "conv_123", "step_number": 1}
NOT_ALLOWED = ("DENIED", "QWED-AGENT-004")

# The guide's table of tool categories.
SAFE = ["read_database", "query_data", "search_web", "send_email", "log_message", "get_weather"]
DANGEROUS = ["delete_database", "drop_table", "send_money", "delete_files", "shutdown_server", "revoke_access"]


def _call(ask: AgentConversation, tool: str, body: Json | None = None) -> httpx.Response:
    return ask.api.post(f"/agents/{ask.agent_id}/tools/{tool}", json={"context": HERE} if body is None else body)


@spec("5.1")
def test_every_field_of_the_request_is_read(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="autonomous")
    body = {
        "agent_id": ask.agent_id,
        "tool_call": {"tool_name": "send_email", "parameters": PARAMETERS},
        "justification": "User requested order status update",
        "context": HERE,
    }
    response = _call(ask, "send_email", body)
    assert response.status_code == 200
    assert response.json()["decision"] == "APPROVED"
    (activity,) = ask.activity()["activities"]
    assert activity["action"] == {"type": "tool_call", "tool": "send_email", "parameters": PARAMETERS}


@spec("5.1")
def test_the_context_is_required_here_too(ask: AgentConversation) -> None:
    response = _call(ask, "get_weather", {"tool_call": {"tool_name": "get_weather", "parameters": {}}})
    assert (response.status_code, said(response.json())) == (400, ("DENIED", "QWED-AGENT-CTX-001"))


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(
        Path(tmp_path_factory.mktemp("loose")) / "data", QWED_REQUIRE_TOOL_CONTEXT="false", QWED_COLOUR="red"
    )
    yield server
    assert server.stop() == 0


@spec("5.1")
def test_an_operator_may_loosen_the_context_of_tools_alone(loose: Server) -> None:
    with httpx.Client(base_url=loose.base_url, headers={"X-API-Key": loose.owner_key}, timeout=30) as api:
        agent = api.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()
        ask = AgentConversation(api, agent)
        body = {"tool_call": {"tool_name": "get_weather", "parameters": {"city": "Rome"}}}
        assert [_call(ask, "get_weather", body).json()["decision"] for _ in range(4)] == ["APPROVED"] * 4
        half = {**body, "context": {"conversation_id": "c"}}
        assert said(_call(ask, "get_weather", half).json()) == ("DENIED", "QWED-AGENT-CTX-001")
        bare = ask.send({"action": {"type": "calculate", "query": "2+2"}})
        assert said(bare.json()) == ("DENIED", "QWED-AGENT-CTX-001")


@spec("5.1")
def test_a_slip_of_the_pen_in_a_setting_only_warns(loose: Server) -> None:
    assert "QWED_COLOUR" in loose.log.read_text()
    assert httpx.get(f"{loose.base_url}/health").status_code == 200


BAD: list[tuple[Any, str]] = [
    ({"tool_call": []}, "`tool_call`"),
    ({"tool_call": "send_email"}, "`tool_call`"),
    ({"tool_call": {"tool_name": "send_money"}}, "tool_name"),
    ({"tool_call": {"tool_name": "get_weather", "args": {}}}, "`tool_call`"),
    ({"tool_call": {"parameters": []}}, "parameters"),
    ({"parameters": "x"}, "parameters"),
    ({"extra": 1}, "`extra`"),
    ({"agent_id": "agent_other"}, "`agent_id`"),
    ({"action": {"type": "calculate", "query": "2+2"}}, "`action`"),
]


@spec("5.1")
@pytest.mark.parametrize(("fields", "named"), BAD, ids=lambda value: str(value)[:50])
def test_what_does_not_fit_is_refused_by_name(ask: AgentConversation, fields: Json, named: str) -> None:
    response = _call(ask, "get_weather", {"context": HERE, **fields})
    assert response.status_code == 400
    assert said(response.json())[0] == "DENIED"
    assert named in response.json()["error"]["message"]
    assert said(_call(ask, "get_weather").json()) == ("APPROVED", None)


@spec("5.1")
def test_two_sets_of_parameters_are_one_too_many(ask: AgentConversation) -> None:
    body = {"context": HERE, "tool_call": {"parameters": {"city": "Rome"}}, "parameters": {"city": "Paris"}}
    assert _call(ask, "get_weather", body).status_code == 400


@spec("5.1")
def test_parameters_may_stand_at_the_top(ask: AgentConversation) -> None:
    assert said(_call(ask, "get_weather", {"context": HERE, "parameters": {"city": "Rome"}}).json())[0] == "APPROVED"
    assert ask.activity()["activities"][0]["action"]["parameters"] == {"city": "Rome"}


@spec("5.1", "guide/Tool approval")
@pytest.mark.parametrize("tool", SAFE)
def test_a_safe_tool_passes_the_tool_check_and_trust_decides(
    asking: Callable[..., AgentConversation], tool: str
) -> None:
    answer = _call(asking(type="autonomous"), tool).json()
    assert answer["decision"] == "APPROVED"
    assert "tool_allowed" in answer["verification"]["checks_passed"]
    assert ToolApprovalSystem().approve_tool_call("agent", tool, {})["approved"] is True


@spec("5.1", "guide/Tool approval")
@pytest.mark.parametrize("tool", DANGEROUS)
def test_a_dangerous_tool_needs_a_person_at_every_trust_level(
    asking: Callable[..., AgentConversation], tool: str
) -> None:
    decisions = [_call(asking(trust_level=level), tool).json()["decision"] for level in range(4)]
    assert decisions == ["DENIED", "DENIED", "DENIED", "PENDING"]
    verdict = ToolApprovalSystem().approve_tool_call("agent", tool, {})
    assert verdict["blocked_reason"] == f"Dangerous operation '{tool}' requires manual approval"


@spec("5.1", "guide/Tool approval")
@pytest.mark.parametrize("tool", DANGEROUS)
def test_naming_a_dangerous_tool_among_the_allowed_does_not_disarm_it(
    asking: Callable[..., AgentConversation], tool: str
) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": [tool]})
    assert _call(ask, tool).json()["decision"] == "PENDING"


@spec("5.1", "guide/Tool approval")
@pytest.mark.parametrize(
    ("tool", "parameters", "score"),
    [
        ("my_custom_tool", {}, "0.0"),
        ("my_custom_tool", {"on": "the database"}, "0.2"),
        ("my_custom_tool", {"on": "the database", "as": "admin"}, "0.4"),
        ("drop_cache", {}, "0.5"),
        ("make_payment", {}, "0.4"),
        ("delete_payment", {"on": "database", "as": "admin"}, "1.0"),
    ],
)
def test_an_unknown_tool_is_denied_whatever_its_score(
    asking: Callable[..., AgentConversation], tool: str, parameters: Json, score: str
) -> None:
    answer = _call(asking(type="trusted"), tool, {"context": HERE, "parameters": parameters}).json()
    assert said(answer) == NOT_ALLOWED
    message = f"Unknown tool '{tool}' requires explicit allowlisting (risk_score={score})"
    assert answer["error"]["message"] == message
    verdict = ToolApprovalSystem().approve_tool_call("agent", tool, parameters)
    assert (verdict["approved"], verdict["blocked_reason"]) == (False, message)


@spec("guide/Tool approval")
def test_every_tool_is_of_one_of_three_categories() -> None:
    system = ToolApprovalSystem()
    categories = {
        tool: system.approve_tool_call("agent", tool, {})["category"] for tool in [*SAFE, *DANGEROUS, "my_custom_tool"]
    }
    assert categories == dict.fromkeys(SAFE, "safe") | dict.fromkeys(DANGEROUS, "dangerous") | {
        "my_custom_tool": "unknown"
    }


@spec("5.1", "guide/Tool approval")
def test_a_custom_tool_is_allowed_by_adding_it_to_the_safe_operations() -> None:
    system = ToolApprovalSystem()
    system.safe_operations.add("my_custom_tool")
    assert system.approve_tool_call("agent", "my_custom_tool", {})["approved"] is True


@spec("5.1", "guide/Tool approval")
def test_allowed_tools_make_custom_tools_known_and_are_the_whole_list(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="autonomous", permissions={"allowed_tools": ["check_my_tool", "fetch_report"]})
    assert said(_call(ask, "check_my_tool").json()) == ("APPROVED", None)
    assert said(ask({"type": "tool_call", "tool": "fetch_report"}, 1, conversation="c2")) == ("APPROVED", None)
    for tool in ("get_weather", "send_email", "my_other_tool"):
        assert said(ask({"type": "tool_call", "tool": tool}, 1, conversation=tool)) == NOT_ALLOWED


@spec("5.1", "guide/Tool approval")
@pytest.mark.parametrize(
    ("tool", "risk"),
    [
        ("fetch_report", "low"),
        ("listOrders", "low"),
        ("search-docs", "low"),
        ("my_custom_tool", "high"),
        ("make_coffee", "high"),
        ("ask_expert", "medium"),
        ("delete_report", "critical"),
        ("get_and_delete_report", "critical"),
        ("fetchAndDelete", "critical"),
        ("issue_refund", "critical"),
    ],
)
def test_a_custom_tools_base_risk_is_read_off_its_verbs(
    asking: Callable[..., AgentConversation], tool: str, risk: str
) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": [tool]})
    answer = ask({"type": "tool_call", "tool": tool}, 1)
    assert answer["risk_assessment"]["final_risk"] == risk


@spec("5.1")
@pytest.mark.parametrize(
    "spelling",
    ["execute_code", "EXECUTE_CODE", "Execute_Code", "\uff45xecute_code", "execute_code\u200b", " execute_code"],
)
def test_no_spelling_gets_past_a_block(asking: Callable[..., AgentConversation], spelling: str) -> None:
    ask = asking(type="trusted", permissions={"blocked_tools": ["execute_code"], "allowed_tools": [spelling]})
    answer = ask({"type": "tool_call", "tool": spelling, "parameters": {"code": "print(1)"}}, 1)
    assert said(answer) == NOT_ALLOWED
    assert answer["error"]["check"] == "tool_not_blocked"


@spec("5.1")
def test_a_block_matches_tools_and_action_types_alike_and_beats_the_allowed_list(
    asking: Callable[..., AgentConversation],
) -> None:
    permissions = {"blocked_tools": ["send_email", "tool_call", "calculate"], "allowed_tools": ["send_email"]}
    ask = asking(type="trusted", permissions=permissions)
    for action in ({"type": "send_email"}, {"type": "calculate", "query": "1"}, {"type": "tool_call", "tool": "x"}):
        answer = ask(action, 1)
        assert said(answer) == NOT_ALLOWED
        assert answer["error"]["check"] == "tool_not_blocked"


@spec("5.1")
@pytest.mark.parametrize("spelling", ["Get_Weather", "GET_WEATHER"])
def test_the_case_of_a_name_does_not_matter(asking: Callable[..., AgentConversation], spelling: str) -> None:
    ask = asking(type="trusted")
    answer = ask({"type": "tool_call", "tool": spelling}, 1)
    assert (said(answer), answer["tool_name"]) == (("APPROVED", None), "get_weather")
    blocked = asking(type="trusted", permissions={"blocked_tools": ["get_weather"]})
    assert said(blocked({"type": "tool_call", "tool": spelling}, 1)) == NOT_ALLOWED


@spec("5.1")
@pytest.mark.parametrize("tool", ["DROP_TABLE", "Send_Money"])
def test_a_dangerous_tool_is_dangerous_in_any_case(asking: Callable[..., AgentConversation], tool: str) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": [tool]})
    assert _call(ask, tool).json()["decision"] == "PENDING"


@spec("5.1")
@pytest.mark.parametrize("spelling", ["\uff47et_weather", "get_weather\u200b", "get weather"])
def test_a_name_that_only_resembles_a_known_tool_is_unknown(
    asking: Callable[..., AgentConversation], spelling: str
) -> None:
    assert said(asking(type="trusted")({"type": "tool_call", "tool": spelling}, 1)) == NOT_ALLOWED


@spec("5.1")
def test_an_engine_judges_the_query_a_tool_carries(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    read = ask({"type": "tool_call", "tool": "database_read", "parameters": {"query": "SELECT id FROM users"}}, 1)
    assert (read["decision"], read["verification"]["engine"]) == ("APPROVED", "sql")
    drop = ask({"type": "tool_call", "tool": "database_read", "parameters": {"query": "DROP TABLE users"}}, 2)
    assert drop["verification"]["risk_level"] == "critical"


@spec("5.1")
def test_an_engine_outside_the_list_is_denied_through_a_tool_as_well(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted", permissions={"allowed_engines": ["math"]})
    answer = ask({"type": "tool_call", "tool": "database_read", "parameters": {"query": "SELECT 1"}}, 1)
    assert said(answer) == NOT_ALLOWED


ONE_SITE, ONE_ROOT = {"allowed_domains": ["example.com"]}, {"allowed_paths": ["/srv/data"]}
SAID_TWICE: list[tuple[str, Json, Json]] = [
    (
        "trusted",
        ONE_SITE,
        {"type": "api_call", "target": "https://example.com", "parameters": {"url": "https://evil.com"}},
    ),
    ("trusted", ONE_ROOT, {"type": "file_read", "target": "/srv/data/a", "parameters": {"path": "/etc/shadow"}}),
    (
        "trusted",
        ONE_ROOT,
        {"type": "tool_call", "tool": "file_read", "parameters": {"target": "/srv/data/a", "path": "/etc/shadow"}},
    ),
    (
        "supervised",
        {},
        {
            "type": "tool_call",
            "tool": "database_read",
            "query": "SELECT id FROM users",
            "parameters": {"query": "DROP TABLE users"},
        },
    ),
    (
        "supervised",
        {},
        {
            "type": "tool_call",
            "tool": "database_read",
            "parameters": {"query": "SELECT id FROM users", "sql": "DROP TABLE users"},
        },
    ),
    ("supervised", {}, {"type": "shell_command", "query": "ls", "parameters": {"command": "rm x"}}),
    ("trusted", {}, {"type": "execute_code", "code": "print(1)", "parameters": {"code": "eval(input())"}}),
]


@spec("5.1")
@pytest.mark.parametrize(("kind", "permissions", "action"), SAID_TWICE, ids=lambda value: str(value)[:70])
def test_an_input_said_twice_is_not_judged_by_the_harmless_half(
    asking: Callable[..., AgentConversation], kind: str, permissions: Json, action: Json
) -> None:
    assert asking(type=kind, permissions=permissions)(action, 1)["decision"] != "APPROVED"


@spec("5.1")
def test_an_input_said_twice_alike_is_fine(asking: Callable[..., AgentConversation]) -> None:
    query = "SELECT id FROM users"
    action = {"type": "tool_call", "tool": "database_read", "query": query, "parameters": {"query": query}}
    assert said(asking()(action, 1)) == ("APPROVED", None)
