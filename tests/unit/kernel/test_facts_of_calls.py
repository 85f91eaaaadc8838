"""Facts of an action in its answer and its approval: requests, messages, claims and what is inside a call."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from qwed.gate import Gate
from tests.support.case_tables import each, rows
from tests.support.gate_factory import open_gate

TOOLS = [
    *("mcp__web__fetch", "mcp__web__download", "mcp__mail__send_mail", "http_post", "http_request", "delete_page"),
    *("run_command", "query_db", "post_message", "execute", "note", "send_email", "api_call", "log_message"),
    *("file_read", "shell_command"),
]
KEY = "sk_live_51H8abcdefghijklmnopqrstuv"
EMAIL = {"type": "send_email", "parameters": {"to": "Ann <Ann@Example.com>", "body": "x"}}
_steps = count(1)


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


def new_agent(gate: Gate, **fields: Any) -> str:
    agent = gate.register_agent(name="a", principal_id="p", permissions={"allowed_tools": TOOLS}, **fields)
    return str(agent.agent_id)


def ask(gate: Gate, agent: str, action: dict[str, Any], **options: Any) -> Any:
    context = {"conversation_id": f"c{next(_steps)}", "step_number": 1}
    return gate.verify_action(agent, action, context, options)


def facts_of(answer: Any) -> dict[str, Any]:
    """Return the groups that are present, with commands and effects as short lists."""
    groups = {name: group for name, group in (answer.facts or {}).items() if group is not None}
    if "shell" in groups:
        groups["shell"]["commands"] = [list(command.values()) for command in groups["shell"]["commands"]]
    if "code" in groups:
        groups["code"]["effects"] = [[effect["kind"], effect["target"]] for effect in groups["code"]["effects"]]
    return groups


@each("row", rows("facts_calls.jsonl"))
def test_the_facts_of_a_call_are_those_of_the_table(row):
    with open_gate() as gate:
        assert facts_of(ask(gate, new_agent(gate), row["action"], include_facts=True)) == row["facts"]


def test_facts_are_shown_on_request_only(gate):
    agent = new_agent(gate)
    assert ask(gate, agent, EMAIL).facts is None
    assert ask(gate, agent, EMAIL, include_facts=False).facts is None
    shown = ask(gate, agent, EMAIL, include_facts=True).facts
    assert shown["email"] == {"complete": True, "recipients": ["ann@example.com"], "domains": ["example.com"]}
    assert shown["sql"] is None


@pytest.mark.parametrize("value", ["true", 1, None, [], "yes"])
def test_the_option_is_true_or_false_and_nothing_else(gate, value):
    answer = ask(gate, new_agent(gate), EMAIL, include_facts=value)
    assert (answer.decision, answer.error["message"]) == ("DENIED", "`options.include_facts` must be true or false")


def test_facts_are_the_same_when_an_action_comes_again(gate):
    agent, action = new_agent(gate), {"type": "shell_command", "query": "ls -l /srv"}
    first, second = (ask(gate, agent, action, include_facts=True).facts for _ in range(2))
    assert first == second
    assert first["shell"]["paths_read"] == ["/srv"]


def test_a_repaired_query_has_the_facts_of_the_repair(gate):
    agent = gate.register_agent(
        name="a", principal_id="p", permissions={"allowed_columns": ["id", "name"], "dialect": "postgres"}
    ).agent_id
    answer = ask(gate, agent, {"type": "execute_sql", "query": "SELECT id, name, total FROM t"}, include_facts=True)
    assert answer.verification["status"] == "CORRECTED"
    assert "total" not in answer.facts["sql"]["columns"]


def test_a_person_sees_the_facts_of_what_waits(gate):
    pending = ask(gate, new_agent(gate), EMAIL)
    assert pending.decision == "PENDING"
    approval = gate.get_approval(pending.approval_id)
    assert approval.facts["email"]["recipients"] == ["ann@example.com"]
    assert all(group is None for name, group in approval.facts.items() if name != "email")


def test_an_approval_of_an_action_without_facts_has_none(gate):
    pending = ask(gate, new_agent(gate), {"type": "file_read", "target": "/srv/x", "parameters": {}})
    assert pending.decision in {"PENDING", "APPROVED"}
    if pending.approval_id is not None:
        assert gate.get_approval(pending.approval_id).facts is None


SECRETS: list[dict[str, Any]] = [
    {"type": "shell_command", "query": f"curl -H 'Authorization: Bearer {KEY}' https://api.example.com/"},
    {"type": "shell_command", "query": f"curl https://api.example.com/{KEY}"},
    {"type": "shell_command", "query": f"touch /srv/{KEY}"},
    {"type": "api_call", "target": f"https://api.example.com/{KEY}"},
    {"type": "send_email", "parameters": {"to": f"{KEY}@example.com", "body": "x"}},
    {"type": "execute_sql", "query": f"SELECT id AS {KEY} FROM {KEY}"},
    {"type": "execute_code", "code": f"open('/srv/{KEY}')"},
    {"type": "shell_command", "query": f"psql -c 'SELECT {KEY} FROM t'"},
]


@pytest.mark.parametrize("action", SECRETS)
def test_a_secret_is_not_shown_in_facts_in_any_spelling(gate, action):
    answer = ask(gate, new_agent(gate), action, include_facts=True)
    assert KEY.lower() not in str(answer.facts).lower()
    assert any(group is not None for group in answer.facts.values())


def test_facts_in_the_stored_answer_of_a_key_are_the_same(gate):
    agent, context = new_agent(gate), {"conversation_id": "k", "step_number": 1}
    first, again = (
        gate.verify_action(agent, EMAIL, context, {"include_facts": True}, idempotency_key="key-1") for _ in range(2)
    )
    assert first.facts == again.facts


@pytest.mark.parametrize(
    ("parameters", "groups"),
    [
        ({"command": "rm -rf /srv"}, {"shell"}),
        ({"sql": "DROP TABLE t"}, {"sql"}),
        ({"code": "import os", "language": "python"}, {"code"}),
        ({"room": "Fjord"}, set()),
    ],
)
def test_what_a_registered_tool_might_execute_is_not_read_and_not_complete(gate, parameters, groups):
    gate.put_tool("book_room", "low", effect="READ")
    agent = gate.register_agent(name="a", principal_id="p").agent_id
    action = {"type": "tool_call", "tool": "book_room", "parameters": parameters}
    facts = facts_of(ask(gate, agent, action, include_facts=True))
    assert set(facts) == groups
    assert not any(group["complete"] for group in facts.values())
