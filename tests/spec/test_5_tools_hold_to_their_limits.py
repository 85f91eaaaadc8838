"""Ruling 4.22: path and domain limits apply to every tool, whatever its parameters are called."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]


def _call(tool: str, **parameters: object) -> dict[str, object]:
    return {"type": "tool_call", "tool": tool, "parameters": parameters}


@spec("5.1")
@pytest.mark.parametrize("name", ["url", "uri", "endpoint", "webhook"])
def test_a_custom_tool_is_held_to_the_allowed_domains(asking: Make, name: str) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": ["http_get"], "allowed_domains": ["example.com"]})
    assert ask(_call("http_get", **{name: "https://api.example.com/v1"}), 1)["decision"] == "APPROVED"
    refused = ask(_call("http_get", **{name: "https://evil.com/v1"}), 2)
    assert (refused["decision"], refused["error"]["check"]) == ("DENIED", "domain_allowed")


@spec("5.1")
@pytest.mark.parametrize("name", ["path", "file", "filepath", "filename", "file_path"])
def test_a_custom_tool_is_held_to_the_allowed_paths(asking: Make, name: str) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": ["parse_report"], "allowed_paths": ["/srv/data"]})
    assert ask(_call("parse_report", **{name: "/srv/data/q3.csv"}), 1)["decision"] == "APPROVED"
    refused = ask(_call("parse_report", **{name: "/srv/data/../../etc/passwd"}), 2)
    assert (refused["decision"], refused["error"]["check"]) == ("DENIED", "path_allowed")


@spec("5.3")
@pytest.mark.parametrize("name", ["statement", "sql_query", "body", "stmt"])
@pytest.mark.parametrize("tool", ["database_read", "query_data", "read_database"])
def test_a_statement_is_found_under_any_name(asking: Make, tool: str, name: str) -> None:
    answer = asking(type="trusted")(_call(tool, **{name: "DROP TABLE users"}), 1)
    assert answer["verification"]["risk_level"] == "critical"
    assert asking(type="autonomous")(_call(tool, **{name: "DROP TABLE users"}), 1)["decision"] == "DENIED"


@spec("4.1")
def test_a_body_that_is_too_large_is_still_answered_with_a_decision(ask: AgentConversation) -> None:
    response = ask.api.post(f"/agents/{ask.agent_id}/verify", content=b" " * (1_048_577))
    assert (response.status_code, response.json()["decision"]) == (413, "DENIED")


@spec("B")
def test_a_path_with_a_slash_too_many_is_no_route(ask: AgentConversation) -> None:
    assert ask.api.post(f"/agents/{ask.agent_id}/verify/", json={}).status_code == 404


@spec("5.1")
@pytest.mark.parametrize(
    ("tool", "parameters", "effect"),
    [
        ("read_document", {"path": "/etc/shadow"}, "SECRET"),
        ("get_document", {"file": ".env"}, "SECRET"),
        ("fetch_page", {"url": "file:///etc/shadow"}, "SECRET"),
        ("list_files", {"dir": "~/.ssh"}, "SECRET"),
        ("send_report", {"attachments": ["/root/.ssh/id_rsa"]}, "SECRET"),
        ("save_document", {"path": "~/.bashrc", "content": "x"}, "EXECUTE"),
    ],
)
def test_a_file_is_as_grave_through_a_tool_as_through_a_shell(
    asking: Make, tool: str, parameters: dict[str, object], effect: str
) -> None:
    answer = asking(type="trusted", permissions={"allowed_tools": [tool]})(_call(tool, **parameters), 1)
    assert answer["verification"]["risk_level"] == "critical"
    assert effect in {each["effect"] for each in answer["verification"]["effects"]}


@spec("5.1", "5.2")
def test_a_tool_that_reads_from_an_address_talks_to_the_world(asking: Make) -> None:
    call = _call("fetch_page", url="https://example.com/v1/credentials")
    answer = asking(type="trusted", permissions={"allowed_tools": ["fetch_page"]})(call, 1)
    assert answer["verification"]["risk_level"] == "medium"


@spec("5.1")
@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("read_document", {"path": "/srv/notes/plan.md"}),
        ("search_docs", {"query": "how do I set up ~/.ssh/config for a bastion?"}),
        ("check_style", {"file": "tests/conftest.py"}),
    ],
)
def test_an_ordinary_file_address_or_sentence_raises_nothing(
    asking: Make, tool: str, parameters: dict[str, object]
) -> None:
    answer = asking(permissions={"allowed_tools": [tool]})(_call(tool, **parameters), 1)
    assert answer["verification"]["risk_level"] == "low"
