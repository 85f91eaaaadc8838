"""Transaction blocks: one action with the effects of all their statements, or a refusal that says what to send."""

import sqlite3
from typing import Any

from qwed.engines import shell
from qwed.engines._sql.block_verdict import CHECKS
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.sql import verify
from qwed.engines.sql_findings import classify_sql
from qwed.engines.sql_guard import SQLGuard
from qwed.model import EffectKind, Status, Verdict, canonical, risk_of
from tests.support.case_tables import each, rows

TABLE = rows("sql_transactions.jsonl")
HONEST = [row for row in TABLE if row["status"] == "VERIFIED"]
REFUSED = [row for row in TABLE if row["status"] != "VERIFIED"]
WRITE = "UPDATE orders SET status = 'x' WHERE id = 1"


def verdict_on(case: dict[str, Any]) -> Verdict:
    limits: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in case.get("policy", {}).items()
    }
    parameters = case.get("parameters", {})
    return verify(EngineRequest(query=case["query"], parameters=parameters, policy=DataPolicy(**limits)))


def ask(query: str, **policy: Any) -> Verdict:
    return verify(EngineRequest(query=query, policy=DataPolicy(**policy)))


@each("case", HONEST)
def test_a_block_is_one_action_with_the_effects_of_all_its_statements(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert (verdict.status, verdict.violations, verdict.checks_failed) == (Status.VERIFIED, (), ()), verdict.message
    assert risk_of(verdict.effects).word == case["risk"]
    assert "tables" not in case or verdict.result["tables"] == case["tables"]
    assert "single_statement" in verdict.checks_passed


@each("case", REFUSED)
def test_a_refused_block_says_which_statement_and_why(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert verdict.status == case["status"], verdict.message
    assert case["says"] in verdict.message, verdict.message
    assert "check" not in case or case["check"] in verdict.checks_failed
    assert verdict.violations == () if "violation" not in case else case["violation"] in verdict.violations
    assert verdict.corrected is None


@each("case", TABLE)
def test_the_verdict_on_a_block_is_json_and_its_checks_keep_their_order(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert canonical(verdict.result)
    for checks in (verdict.checks_passed, verdict.checks_failed):
        assert list(checks) == sorted(checks, key=CHECKS.index)
    assert not set(verdict.checks_passed) & set(verdict.checks_failed)
    assert (verdict.status is Status.BLOCKED) is bool(verdict.violations)


def test_what_a_verified_block_of_sqlite_reads_changes_nothing_there() -> None:
    for case in HONEST:
        if risk_of(verdict_on(case).effects).word == "low" and case.get("policy") in (None, {"dialect": "sqlite"}):
            connection = sqlite3.connect(":memory:", isolation_level=None)
            connection.executescript("CREATE TABLE orders (id, total); CREATE TABLE users (id, name)")
            before = list(connection.iterdump())
            connection.executescript(case["query"])
            assert (list(connection.iterdump()), connection.in_transaction) == (before, False)


def test_a_guard_that_permits_reads_only_refuses_a_write_inside_a_block() -> None:
    assert SQLGuard().verify_query("BEGIN; SELECT id FROM orders; COMMIT").verified
    assert not SQLGuard().verify_query(f"BEGIN; SELECT id FROM orders; {WRITE}; COMMIT").verified
    assert SQLGuard(allow_mutation=True).verify_query(f"BEGIN; {WRITE}; COMMIT").verified


def test_a_block_for_a_database_client_has_the_effects_of_its_statements() -> None:
    findings = shell.findings(f'psql -c "BEGIN; {WRITE}; COMMIT"')
    assert {effect.kind for effect in findings.effects} == {EffectKind.READ, EffectKind.WRITE}
    findings = shell.findings('psql -c "BEGIN; DROP TABLE orders; COMMIT; SELECT 1"')
    assert {EffectKind.DELETE, EffectKind.ADMIN} <= {effect.kind for effect in findings.effects}


def test_a_block_in_a_command_has_the_effects_of_its_statements() -> None:
    findings = classify_sql(f"BEGIN; {WRITE}; COMMIT", "postgres")
    assert {effect.kind for effect in findings.effects} == {EffectKind.WRITE}
    assert findings.verified


def test_a_block_is_as_risky_as_its_statements_one_by_one() -> None:
    for statement in (WRITE, "DELETE FROM orders", "SELECT id FROM orders", "INSERT INTO orders (id) VALUES (1)"):
        alone, inside = ask(statement), ask(f"BEGIN; {statement}; COMMIT")
        assert (inside.status, inside.effects) == (alone.status, alone.effects)


@each(
    "part",
    ["SELECT 1;", "SAVEPOINT a;", "BEGIN;", ";", "COMMIT;", "'", "UPDATE t SET a = 1 WHERE b = 2;", "/*;*/;", "END;("],
)
def test_a_block_of_100_000_characters_is_refused(part: str) -> None:
    assert not ask(f"BEGIN; {part * (90_000 // len(part))} COMMIT").verified
