"""SQLGuard: reads only, bounded, and an answer for every input."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qwed_new.guards.sql_guard
from qwed.engines.sql_guard import MAX_CHARACTERS, SQLGuard
from tests.support.case_tables import each, rows

WRITES = [
    "DROP TABLE users",
    "TRUNCATE users",
    "DELETE FROM users WHERE id = 1",
    "UPDATE users SET name = 'x' WHERE id = 1",
    "INSERT INTO users (id) VALUES (1)",
    "ALTER TABLE users ADD COLUMN x INT",
    "CREATE TABLE copy AS SELECT id FROM users",
    "SELECT id INTO copy FROM users",
    "GRANT SELECT ON users TO bob",
    "CREATE USER bob",
    "SET ROLE admin",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x",
    "WITH gone AS (DELETE FROM users RETURNING id) SELECT id FROM gone",
    "EXPLAIN ANALYZE DELETE FROM users",
    "SELECT nextval('numbers')",
    "SELECT pg_advisory_lock(1)",
    "VACUUM users",
    "BEGIN",
]


def plain_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows that need only a query and a dialect."""
    selected = [row for row in rows(name) if not set(row) & {"policy", "parts"} and "query" in row]
    selected = [row for row in selected if set(row.get("parameters", {})) <= {"dialect"}]
    selected = [row for row in selected if row.get("risk", "low") == "low"]
    # A row that is INCONCLUSIVE without a dialect may be decided in the guard's default dialect.
    return [row for row in selected if row.get("status") != "INCONCLUSIVE" or "parameters" in row]


@each("case", plain_rows("sql_honest.jsonl"))
def test_an_honest_read_is_verified_and_printed_anew(case: dict[str, Any]) -> None:
    answer = SQLGuard().verify_query(case["query"], case.get("parameters", {}).get("dialect", "postgres"))
    assert (answer.verified, answer.risk, answer.violations) == (True, "low", ())
    assert answer.normalized_query


@each("case", plain_rows("sql_attacks.jsonl"))
def test_an_attack_is_never_verified(case: dict[str, Any]) -> None:
    dialect = case.get("parameters", {}).get("dialect", "postgres")
    assert not SQLGuard().verify_query(case["query"], dialect).verified
    assert not SQLGuard(allow_mutation=True).verify_query(case["query"], dialect).verified


@pytest.mark.parametrize("query", WRITES)
def test_a_write_is_refused_unless_mutation_is_allowed(query: str) -> None:
    refused, allowed = SQLGuard().verify_query(query), SQLGuard(allow_mutation=True).verify_query(query)
    assert (refused.verified, allowed.verified) == (False, True)
    assert "only reads are allowed" in refused.message
    assert allowed.risk in {"high", "critical"}


def test_an_injection_is_refused_where_mutation_is_allowed() -> None:
    guard = SQLGuard(allow_mutation=True)
    for query in ("DELETE FROM users WHERE id = 1 OR 1=1", "DROP TABLE a; DROP TABLE b", "EXEC xp_cmdshell 'dir'"):
        answer = guard.verify_query(query)
        assert (answer.verified, answer.risk) == (False, "critical")
        assert answer.violations


def test_the_answer_reads_both_ways() -> None:
    answer = SQLGuard().verify_query("select  ID from  users -- all of them")
    assert answer["verified"] is answer.verified is True
    assert set(answer) == {"verified", "message", "risk", "normalized_query", "violations"}
    assert answer.normalized_query == "SELECT ID FROM users"


@pytest.mark.parametrize(
    ("query", "tables", "verified"),
    [
        ("SELECT id FROM users", ["users"], True),
        ("SELECT id FROM Users", ["USERS"], True),
        ('SELECT id FROM "users"', ["users"], True),
        ("SELECT id FROM public.users", ["users"], True),
        ("SELECT id FROM users", ["public.users"], True),
        ("SELECT id FROM users", ("users",), True),
        ("SELECT id FROM sales.users", ["users"], False),
        ("SELECT id FROM sales.users", ["sales.users"], True),
        ("SELECT id FROM orders", ["users"], False),
        ("SELECT id FROM users u JOIN orders o ON o.uid = u.id", ["users"], False),
        ("WITH orders AS (SELECT id FROM users) SELECT id FROM orders", ["users"], True),
        ("WITH users AS (SELECT id FROM orders) SELECT id FROM users", ["users"], False),
        ("SELECT id FROM users", [], False),
        ("SELECT 1", [], True),
        ("SHOW TABLES", ["users"], False),
    ],
)
def test_only_the_listed_tables_are_read(query: str, tables: Any, verified: bool) -> None:
    assert SQLGuard().verify_query(query, allowed_tables=tables).verified is verified


@pytest.mark.parametrize("query", ["SELECT `id` FROM `users`", "SELECT TOP 5 [id] FROM [users]", "SUMMARIZE users"])
def test_a_query_of_another_database_is_read_where_the_default_cannot(query: str) -> None:
    assert SQLGuard().verify_query(query).verified


def test_a_named_dialect_is_believed() -> None:
    assert not SQLGuard().verify_query("SELECT `id` FROM `users`", "oracle").verified
    assert SQLGuard().verify_query("SELECT id FROM users WHERE a = '\\' OR 1=1 -- '", "mysql").verified


def test_a_text_that_backslashes_turn_into_an_attack_elsewhere_is_refused() -> None:
    assert not SQLGuard().verify_query("SELECT id FROM t WHERE a = '\\' AND b = ' OR 1=1 -- '").verified


ODD: list[Any] = [
    None,
    5,
    b"SELECT 1",
    [],
    {},
    object(),
    "",
    "   ",
    "\0",
    "\ud800",
    "x" * 60_000,
    "(" * 40_000,
    "'" * 999,
]


@pytest.mark.parametrize("query", ODD, ids=range(len(ODD)))
def test_no_input_makes_it_raise(query: Any) -> None:
    answer = SQLGuard().verify_query(query)
    assert not answer.verified
    assert answer.message


@pytest.mark.parametrize("dialect", ["klingon", "", None, 5, "POSTGRES", "PostgreSQL"])
@pytest.mark.parametrize("tables", [None, 5, "users", [1], {"users"}])
def test_no_option_makes_it_raise(dialect: Any, tables: Any) -> None:
    assert SQLGuard().verify_query("SELECT id FROM users", dialect, tables).message


def test_a_text_over_the_bound_is_refused_by_its_length() -> None:
    assert "longer than" in SQLGuard().verify_query("SELECT 1" + " " * MAX_CHARACTERS).message


@given(st.text(max_size=80), st.sampled_from(["postgres", "mysql", "sqlite", "tsql", "oracle", ""]))
@settings(max_examples=100, deadline=None)
def test_any_text_gets_an_answer(text: str, dialect: str) -> None:
    assert SQLGuard().verify_query(text, dialect).risk in {"low", "medium", "high", "critical"}


def test_it_goes_by_its_published_name() -> None:
    assert qwed_new.guards.sql_guard.SQLGuard is SQLGuard
