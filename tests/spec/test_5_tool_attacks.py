"""Ruling 4.4: what a call does is found in its name, under any parameter and at any depth; everyday calls pass."""

from collections.abc import Callable, Iterator

import pytest

from qwed.gate import Gate
from tests.conftest import AgentConversation
from tests.spec.requests import Json, tool_call
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.case_tables import rows
from tests.support.gate_factory import open_gate

ATTACKS, HONEST = rows("tool_call_attacks.jsonl"), rows("tool_call_honest.jsonl")
AT = {"conversation_id": "c", "step_number": 1}


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


def _decision(gate: Gate, row: Json) -> str:
    permissions = {"allowed_tools": [row["tool"]], **row.get("permissions", {})}
    agent = gate.register_agent(name=unique_name(), principal_id="p", trust_level=row["trust"], permissions=permissions)
    return str(gate.verify_tool_call(agent.agent_id, row["tool"], row["parameters"], AT).decision)


@spec("5.2")
def test_no_harmful_call_is_approved(gate: Gate) -> None:
    assert [row for row in ATTACKS if _decision(gate, row) not in ("DENIED", "PENDING")] == []


@spec("5.2")
def test_an_everyday_call_is_decided_by_what_it_does(gate: Gate) -> None:
    assert [row for row in HONEST if _decision(gate, row) not in row["decisions"]] == []


Make = Callable[..., AgentConversation]


@spec("5.1", "3.1")
@pytest.mark.parametrize(
    ("blocked", "call"),
    [
        ("database_write", tool_call("execute_sql", query="SELECT id FROM orders")),
        ("file_write", tool_call("mcp__fs__read_text_file", path="a.txt")),
        ("send_email", tool_call("slack_post_message", text="hello")),
        ("shell_command", tool_call("mcp__pg__query", sql="SELECT id FROM orders")),
    ],
)
def test_a_block_leaves_what_is_another_deed(asking: Make, blocked: str, call: Json) -> None:
    permissions = {"blocked_tools": [blocked], "allowed_tools": [call["tool"]]}
    assert asking(type="trusted", permissions=permissions)(call, 1)["decision"] == "APPROVED"


@spec("3.1", "5.2")
@pytest.mark.parametrize(
    "parameters",
    [
        {"to": "ann@example.com", "body": "see https://docs.example.com/a."},
        {"to": ["ann@example.com", "Bob <bob@mail.example.com>"], "text": "at 10:30, file a.py and os.remove"},
        {"channel": "#general", "text": "version 1.2.3.4567 of x.y"},
        {"url": "https://b\u00fccher.example.com/"},
    ],
    ids=str,
)
def test_recipients_and_addresses_of_the_allowed_domains_pass(asking: Make, parameters: Json) -> None:
    permissions = {"allowed_tools": ["send_note"], "allowed_domains": ["example.com"]}
    answer = asking(type="trusted", permissions=permissions)(tool_call("send_note", **parameters), 1)
    assert "error" not in answer, answer["error"]
