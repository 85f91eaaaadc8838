"""Ruling 4.23: verification of a query without a schema."""

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import said
from tests.spec.sections import spec

SENSITIVE = """
password passwd pwd secret token api_key private_key ssn credit_card card_number cvv pin
""".split()  # noqa: SIM905 - reads as the ruling has it


def _sql(query: str) -> dict[str, str]:
    return {"type": "execute_sql", "query": query}


@spec("4.2")
def test_a_star_passes(ask: AgentConversation) -> None:
    answer = ask(_sql("SELECT * FROM users"), 1)
    assert (said(answer), answer["verified_query"]) == (("APPROVED", None), "SELECT * FROM users")
    assert "schema_valid" in answer["verification"]["checks_passed"]


@spec("4.2")
def test_schema_valid_means_that_it_parses_in_the_dialect(ask: AgentConversation) -> None:
    unheard_of = ask(_sql("SELECT whatever FROM nobody_knows WHERE nothing = 1"), 1)
    assert "schema_valid" in unheard_of["verification"]["checks_passed"]
    quoted = {**_sql("SELECT `id` FROM `users`"), "parameters": {"dialect": "mysql"}}
    assert "schema_valid" in ask(quoted, 2)["verification"]["checks_passed"]
    for refused in (_sql("SELECT FROM WHERE"), {**quoted, "parameters": {"dialect": "oracle"}}):
        answer = ask(refused, 3)
        assert said(answer) == ("DENIED", "QWED-AGENT-005")
        assert "schema_valid" not in answer["verification"]["checks_passed"]


@spec("4.2")
@pytest.mark.parametrize("column", SENSITIVE)
def test_these_columns_are_sensitive_by_default(ask: AgentConversation, column: str) -> None:
    for query in (f"SELECT {column} FROM users", f"SELECT id FROM users WHERE {column.upper()} = 'x'"):
        answer = ask(_sql(query), 1)
        assert (said(answer), answer["error"]["check"]) == (("DENIED", "QWED-AGENT-005"), "no_sensitive_columns")


@spec("4.2", "B")
def test_they_are_the_same_without_an_agent(api: httpx.Client) -> None:
    for column in SENSITIVE:
        found = api.post("/verify/sql", json={"query": f"SELECT {column} FROM users"}).json()
        assert {"name": "no_sensitive_columns", "passed": False} in found["checks"], column
    assert api.post("/verify/sql", json={"query": "SELECT * FROM users"}).json()["status"] == "VERIFIED"
