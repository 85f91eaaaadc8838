"""Known injection payloads, inserted where a program would insert a name or a number."""

from itertools import product

import pytest

from qwed.engines.protocol import EngineRequest
from qwed.engines.sql import verify
from qwed.engines.sql_guard import SQLGuard
from qwed.model import Status
from tests.support.case_tables import each, rows

PAYLOADS = rows("sql_payloads.jsonl")
TEMPLATES = {
    "text": (
        "SELECT * FROM users WHERE name = '{}'",
        "SELECT id, name FROM products WHERE category = '{}' AND released = 1",
    ),
    "number": (
        "SELECT * FROM users WHERE id = {}",
        "SELECT name, price FROM products WHERE id = {} AND active = 1 LIMIT 1",
    ),
}


def fill_templates(case: dict[str, str]) -> list[str]:
    return [template.replace("{}", case["payload"]) for template in TEMPLATES[case["at"]]]


@each("case", PAYLOADS)
def test_a_payload_in_a_query_is_a_violation_in_the_dialect_it_was_made_for(case: dict[str, str]) -> None:
    for query in fill_templates(case):
        verdict = verify(EngineRequest(query=query, parameters={"dialect": case.get("dialect", "")}))
        assert (verdict.status, bool(verdict.violations)) == (Status.BLOCKED, True), query


@each("case", PAYLOADS)
def test_a_payload_in_a_query_is_refused_without_a_stated_dialect(case: dict[str, str]) -> None:
    assert [query for query in fill_templates(case) if SQLGuard().verify_query(query).verified] == []


BROKEN = [
    "SELECT FROM WHERE",
    "SELEC * FROM t",
    "SELECT * FROM t WHERE name = 'x",
    "SELECT * FROM t WHERE (a = 1",
    "SELECT * FORM users WHERE id = 5",
    "SELECT name FROM a UNION SELECT name FROM",
    "SELECT * FROM t WHERE a = 1 AND",
    "INSERT INTO t (a, b VALUES (1, 2)",
    "SELECT 'it's' FROM t",
    "please show me all users",
    "SELECT * FROM t ORDER id",
]


@each(("query", "dialect"), product(BROKEN, ["", "postgres", "mysql"]))
def test_plainly_broken_sql_costs_no_trust(query: str, dialect: str) -> None:
    verdict = verify(EngineRequest(query=query, parameters={"dialect": dialect}))
    assert (verdict.status, verdict.violations) == (Status.FAILED, ())
    assert verdict.checks_failed == ("syntax_valid",)


@pytest.mark.parametrize("payload", ["' OR 1=1 --", "'", "';", "admin'--", "1) OR (1=1", "' UNION SELECT NULL --"])
def test_a_payload_sent_alone_is_a_violation(payload: str) -> None:
    verdict = verify(EngineRequest(query=payload))
    assert verdict.status is Status.BLOCKED
    assert verdict.violations
