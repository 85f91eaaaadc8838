"""Ruling 4.4: `allowed_tools` applies to tools and to types without an engine."""

from collections.abc import Callable

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, said, tool_call
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]
NOT_ALLOWED = ("DENIED", "QWED-AGENT-004")

# INTERFACES 1: the types bound to an engine, and the others.
WITH_ENGINE: list[Json] = [
    SUM,
    {"type": "verify_math", "query": "1 = 1"},
    {"type": "verify_logic", "query": "x > 1"},
    {"type": "execute_sql", "query": "SELECT id FROM t"},
    {"type": "database_query", "query": "SELECT id FROM t"},
    {"type": "execute_code", "code": "print(1)"},
    {
        "type": "verify_fact",
        "query": "The plant opened in 1998",
        "parameters": {"context": "The plant opened in 1998."},
    },
]
WITHOUT_ENGINE: list[Json] = [
    {"type": "database_read"},
    {"type": "database_read", "query": "SELECT id FROM t"},
    {"type": "database_write"},
    {"type": "file_read", "target": "a.txt"},
    {"type": "read_file", "target": "a.txt"},
    {"type": "file_write", "target": "a.txt"},
    {"type": "file_delete", "target": "a.txt"},
    {"type": "send_email", "parameters": {"body": "hello"}},
    {"type": "api_call", "target": "https://example.com"},
    {"type": "shell_command", "query": "ls"},
]


def _name(action: Json) -> str:
    return str(action["type"])


@spec("5.1", "3.1")
@pytest.mark.parametrize("action", WITH_ENGINE, ids=_name)
def test_the_allowed_tools_do_not_bind_types_with_an_engine(asking: Make, action: Json) -> None:
    assert said(asking(type="trusted", permissions={"allowed_tools": []})(action, 1)) == ("APPROVED", None)


@spec("5.1", "3.1")
@pytest.mark.parametrize("action", WITHOUT_ENGINE, ids=_name)
def test_the_allowed_tools_are_the_whole_list_of_types_without_an_engine(asking: Make, action: Json) -> None:
    refused = asking(type="trusted", permissions={"allowed_tools": ["get_weather"]})(action, 1)
    assert (said(refused), refused["error"]["check"]) == (NOT_ALLOWED, "tool_allowed")
    assert refused["error"]["details"]["allowed"] == ["get_weather"]
    named = asking(type="trusted", permissions={"allowed_tools": [action["type"]]})(action, 1)
    assert said(named) == ("APPROVED", None)


@spec("5.1", "3.1")
@pytest.mark.parametrize("tool", ["calculate", "execute_sql", "verify_logic"])
def test_a_type_with_an_engine_that_is_called_as_a_tool_is_a_tool(asking: Make, tool: str) -> None:
    answer = asking(type="trusted", permissions={"allowed_tools": []})(tool_call(tool, query="1 = 1"), 1)
    assert said(answer) == NOT_ALLOWED


@spec("4.1", "5.1")
@pytest.mark.parametrize("permissions", [{}, {"allowed_tools": ["stamp_letter"]}], ids=str)
def test_a_tool_that_is_registered_and_allowed_is_still_no_type(
    api: httpx.Client, asking: Make, permissions: Json
) -> None:
    assert api.put("/tools/stamp_letter", json={"risk_level": "low"}).status_code == 200
    ask = asking(type="trusted", permissions=permissions)
    refused = ask({"type": "stamp_letter"}, 1)
    assert said(refused) == ("DENIED", "QWED-AGENT-ACTION-001")
    assert "tool_call" in refused["error"]["suggestion"]
    assert said(ask(tool_call("stamp_letter"), 1)) == ("APPROVED", None)
    door = ask.api.post(
        f"/agents/{ask.agent_id}/tools/stamp_letter", json={"context": {"conversation_id": "d", "step_number": 1}}
    )
    assert said(door.json()) == ("APPROVED", None)


GRAVE = {"note": "for the admin: write to bob@example.com", "url": "https://example.com"}
"""Weights 0.2 and 0.5; with the 0.3 of what leaves they are 1.0."""


@spec("5.2")
@pytest.mark.parametrize(("parameters", "final"), [({"note": "hello"}, "medium"), (GRAVE, "high")])
def test_the_parameters_of_a_custom_tool_can_raise_its_risk(asking: Make, parameters: Json, final: str) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": ["post_update"]})
    assessed = ask(tool_call("post_update", **parameters), 1)["risk_assessment"]
    assert (assessed["base_risk"], assessed["final_risk"]) == ("medium", final)


@spec("5.2", "5.3")
def test_the_parameters_of_a_described_tool_can_raise_its_risk_and_never_lower_it(
    api: httpx.Client, asking: Make
) -> None:
    assert api.put("/tools/run_lookup", json={"risk_level": "low", "verification_engine": "sql"}).status_code == 200
    ask = asking(type="trusted")
    risks = [
        ask(tool_call("run_lookup", query=query), step)["risk_assessment"]["final_risk"]
        for step, query in enumerate(("SELECT id FROM t", "UPDATE t SET a = 1 WHERE id = 1", "DROP TABLE t"), start=1)
    ]
    assert risks == ["low", "high", "critical"]
    assert api.put("/tools/run_report", json={"risk_level": "high", "verification_engine": "sql"}).status_code == 200
    assert ask(tool_call("run_report", query="SELECT id FROM t"), 4)["risk_assessment"]["final_risk"] == "high"
