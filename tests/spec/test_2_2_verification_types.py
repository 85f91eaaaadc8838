"""Spec 2.2, Verification Types for Agents; risk follows from the action's effects (ruling 4.3)."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import Json
from tests.spec.sections import spec

# Action type, verification engine, risk level: each row of the table as one real action.
ROWS: list[tuple[Json, str, str]] = [
    ({"type": "calculate", "query": "6 * 7 = 42"}, "math", "low"),
    ({"type": "verify_math", "query": "6 * 7 = 42"}, "math", "low"),
    ({"type": "verify_logic", "query": "x > 1"}, "logic", "low"),
    ({"type": "execute_sql", "query": "SELECT id FROM customers"}, "sql", "low"),
    ({"type": "database_query", "query": "SELECT id FROM customers"}, "sql", "low"),
    ({"type": "execute_sql", "query": "UPDATE customers SET name = 'x' WHERE id = 1"}, "sql", "high"),
    ({"type": "execute_sql", "query": "INSERT INTO customers (id) VALUES (1)"}, "sql", "high"),
    ({"type": "execute_sql", "query": "UPDATE customers SET name = 'x'"}, "sql", "critical"),
    ({"type": "execute_sql", "query": "DELETE FROM customers WHERE id = 1"}, "sql", "critical"),
    ({"type": "execute_sql", "query": "DROP TABLE customers"}, "sql", "critical"),
    ({"type": "execute_sql", "query": "TRUNCATE TABLE customers"}, "sql", "critical"),
    ({"type": "execute_sql", "query": "ALTER TABLE customers ADD COLUMN x INT"}, "sql", "critical"),
    ({"type": "execute_sql", "query": "GRANT ALL ON customers TO bob"}, "sql", "critical"),
    ({"type": "execute_code", "code": "print(sum(range(10)))"}, "code", "critical"),
    ({"type": "api_call", "target": "https://example.com/v1/orders"}, "tool", "medium"),
    ({"type": "api_call", "parameters": {"url": "https://example.com/v1/orders"}}, "tool", "medium"),
    ({"type": "send_email", "parameters": {"to": "a@example.com", "body": "hello"}}, "tool", "medium"),
    ({"type": "file_read", "target": "notes.txt"}, "path", "low"),
    ({"type": "read_file", "target": "notes.txt"}, "path", "low"),
    ({"type": "file_write", "target": "notes.txt"}, "path", "high"),
    ({"type": "file_delete", "target": "notes.txt"}, "path", "critical"),
    ({"type": "file_read", "target": "/home/user/.ssh/id_rsa"}, "path", "critical"),
    ({"type": "shell_command", "query": "ls -l"}, "shell", "low"),
    ({"type": "shell_command", "query": "rm notes.txt"}, "shell", "critical"),
    ({"type": "database_read"}, "tool", "low"),
    ({"type": "database_write"}, "tool", "high"),
]


@spec("2.2", "guide/Risk assessment")
@pytest.mark.parametrize(("action", "engine", "risk"), ROWS, ids=lambda value: str(value)[:60])
def test_each_type_is_verified_by_its_engine_at_its_risk(
    asking: Callable[..., AgentConversation], action: Json, engine: str, risk: str
) -> None:
    answer = asking(type="trusted")(action, 1)
    found = answer["verification"]
    assert (found["status"], found["engine"], found["risk_level"]) == ("VERIFIED", engine, risk)
    assert answer["decision"] == "APPROVED"


@spec("2.2", "guide/Risk assessment")
@pytest.mark.parametrize(
    ("action", "effect"),
    [
        ({"type": "shell_command", "query": "rm x"}, "DELETE"),
        ({"type": "execute_code", "code": "import os\nos.remove('x')"}, "DELETE"),
        ({"type": "execute_sql", "query": "DELETE FROM x WHERE id = 1"}, "DELETE"),
        ({"type": "file_delete", "target": "x"}, "DELETE"),
        ({"type": "tool_call", "tool": "delete_files", "parameters": {"path": "x"}}, "DELETE"),
    ],
)
def test_one_deed_is_one_effect_in_every_language(
    asking: Callable[..., AgentConversation], action: Json, effect: str
) -> None:
    found = asking(type="trusted")(action, 1)["verification"]
    assert effect in [each["effect"] for each in found["effects"]]
    assert found["risk_level"] == "critical"


@spec("2.2")
@pytest.mark.parametrize("action_type", ["verify_fact", "verify_stats", "verify_image"])
def test_an_engine_that_is_given_nothing_to_look_at_denies(ask: AgentConversation, action_type: str) -> None:
    answer = ask({"type": action_type, "query": "the sky is blue"}, 1)
    assert answer["decision"] == "DENIED"
    assert answer["error"]["code"] == "QWED-AGENT-005"


@spec("2.2")
@pytest.mark.parametrize(("claim", "decision"), [("1998", "APPROVED"), ("1999", "DENIED")])
def test_a_fact_is_verified_against_its_context(ask: AgentConversation, claim: str, decision: str) -> None:
    context = {"context": "The plant opened in 1998."}
    action = {"type": "verify_fact", "query": f"The plant opened in {claim}", "parameters": context}
    assert ask(action, 1)["decision"] == decision


# Ruling 4.21: an unknown name is refused with the list of known ones.
UNKNOWN: list[tuple[Json, str, str]] = [
    ({"type": "execute_code", "code": "DISPLAY 'HELLO'", "parameters": {"language": "cobol"}}, "cobol", "python"),
    ({"type": "execute_sql", "query": "SELECT 1", "parameters": {"dialect": "klingon"}}, "klingon", "postgres"),
]


@spec("2.2")
@pytest.mark.parametrize(("action", "name", "known"), UNKNOWN)
def test_an_unknown_language_or_dialect_is_refused_by_name(
    asking: Callable[..., AgentConversation], action: Json, name: str, known: str
) -> None:
    answer = asking(type="trusted")(action, 1)
    assert answer["decision"] == "DENIED"
    assert name in answer["error"]["message"]
    assert known in str(answer["error"])
