"""The positive model of SQL: only what every possible database understands in the same way is verified."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.engines._sql.function_names import pure_names
from qwed.engines._sql.functions import STATEFUL_NAMES
from qwed.engines._sql.lexer import other_readings, rules_by_dialect, spans_of
from qwed.engines._sql.secret_columns import is_sensitive
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, DataPolicy, EngineRequest
from qwed.engines.sql import verify
from qwed.engines.sql_findings import classify_sql
from qwed.model import EffectKind, Risk, Status, Verdict, risk_of
from tests.support.case_tables import each, rows

SENSITIVE = frozenset(DEFAULT_SENSITIVE_COLUMNS)
BACKSLASH = r"SELECT '\'; DELETE FROM users; --' AS note"


def verdict_on(case: dict[str, Any]) -> Verdict:
    limits = {key: tuple(value) if isinstance(value, list) else value for key, value in case.get("policy", {}).items()}
    policy = DataPolicy(**limits)
    return verify(EngineRequest(query=case["query"], parameters=case.get("parameters", {}), policy=policy))


def ask(query: str, stated: str | None = None, **policy: Any) -> Verdict:
    parameters = {"dialect": stated} if stated else {}
    return verify(EngineRequest(query=query, parameters=parameters, policy=DataPolicy(**policy)))


@each("case", rows("sql_unsafe.jsonl"))
def test_what_may_do_more_than_a_permitted_read_is_not_verified_as_one(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert not verdict.verified or risk_of(verdict.effects) > Risk.LOW


@each("case", rows("sql_everyday.jsonl"))
def test_an_everyday_query_is_verified_as_a_read(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert (verdict.verified, risk_of(verdict.effects)) == (True, Risk.LOW), verdict.message


def test_an_action_may_name_only_the_dialect_of_its_database() -> None:
    refused = ask("SELECT 1", "mysql", dialect="postgres")
    assert refused.status is Status.BLOCKED
    assert "`mysql`" in refused.message
    assert "`postgres`" in refused.message
    assert ask("SELECT 1", "PostgreSQL", dialect="postgres").verified


def test_the_dialect_of_the_database_decides_how_the_text_is_read() -> None:
    assert ask(BACKSLASH, dialect="mysql").verified
    assert ask(BACKSLASH, dialect="postgres").status is Status.BLOCKED
    assert ask(BACKSLASH, "mysql").status is Status.INCONCLUSIVE


def test_another_reading_may_be_a_read_of_no_more() -> None:
    assert not ask("SELECT a # nextval('s')\nFROM t", "mysql").verified
    assert not ask("SELECT a --1 , b\nFROM t").verified
    assert ask("SELECT data #>> '{a,b}' FROM t", "postgres").verified
    assert ask("SELECT a -- total\nFROM t").verified


def test_functions_of_the_database_itself_are_allowed_by_name() -> None:
    query = "SELECT my_schema.fiscal_quarter(order_date) FROM orders"
    assert ask(query, "postgres").status is Status.INCONCLUSIVE
    assert ask(query, "postgres", allowed_functions=("my_schema.fiscal_quarter",)).verified
    assert not ask(query, "postgres", allowed_functions=("fiscal_quarter",)).verified
    assert ask("SELECT public.f(a) FROM t", allowed_functions=("F",)).verified
    assert not ask("SELECT pg_sleep(5)", allowed_functions=("pg_sleep",)).verified


def test_a_function_of_another_dialect_is_one_of_the_users_own() -> None:
    assert ask("SELECT group_concat(a) FROM t", dialect="mysql").verified
    assert not ask("SELECT group_concat(a) FROM t", dialect="postgres").verified


@pytest.mark.parametrize("dialect", sorted(rules_by_dialect()))
def test_no_function_with_an_effect_is_on_a_list(dialect: str) -> None:
    assert not pure_names(dialect) & STATEFUL_NAMES
    assert not pure_names(dialect) & {"pg_sleep", "sleep", "load_file", "dblink", "pg_read_file", "set_config", "url"}


def test_a_star_passes_unless_the_permissions_name_columns() -> None:
    assert ask("SELECT * FROM users").verified
    assert "no_sensitive_columns" in ask("SELECT * FROM users", sensitive_columns=("salary",)).checks_failed
    assert ask("SELECT * FROM (SELECT id FROM users) u", sensitive_columns=("salary",)).verified


@pytest.mark.parametrize(
    "name", ["aws_secret_access_key", "jwt_secret", "user_password_hash", "recovery_codes", "totp_seed"]
)
def test_a_secret_is_known_by_the_words_of_its_name(name: str) -> None:
    assert is_sensitive(name, SENSITIVE)


@pytest.mark.parametrize("name", ["token_count", "secretary", "tokenized_text", "passport", "pin_code", "public_key"])
def test_an_everyday_name_is_no_secret(name: str) -> None:
    assert not is_sensitive(name, SENSITIVE)


@pytest.mark.parametrize(
    ("before", "inner", "after"),
    [("(", "1", ")"), ("NOT ", "a", ""), ("- ", "1", ""), ("CASE WHEN a THEN ", "1", " END"), ("abs(", "1", ")")],
)
def test_nesting_is_counted_and_leans_on_no_limit_of_the_interpreter(before: str, inner: str, after: str) -> None:
    assert ask(f"SELECT {before * 60}{inner}{after * 60} FROM t").verified
    deep = ask(f"SELECT {before * 150}{inner}{after * 150} FROM t")
    assert deep.status is Status.INCONCLUSIVE
    assert "nested too deeply" in deep.message


def test_embedded_statements_are_judged_one_by_one_and_together() -> None:
    findings = classify_sql("select 1; delete from users where id = 1", "postgres")
    assert {effect.kind for effect in findings.effects} == {EffectKind.DELETE}
    assert findings.verified
    assert not classify_sql("select 1; select evil()", "postgres").verified
    assert not classify_sql(rf"SELECT 1; {BACKSLASH}").verified
    assert not classify_sql("-- nothing").verified
    assert not classify_sql("select id from salaries", permissions=DataPolicy(allowed_tables=("orders",))).verified


@given(st.text(alphabet="'\"`[]#-/*\\$qE \n;ab", max_size=40), st.sampled_from(sorted(rules_by_dialect())))
def test_spans_are_in_order_and_within_the_text(text: str, dialect: str) -> None:
    spans = spans_of(text, dialect) or ()
    assert all(span.start < span.end <= len(text) for span in spans)
    assert all(first.end <= second.start for first, second in pairwise(spans))
    assert all(len(reading.text) == len(text) for reading in other_readings(text, dialect))


def test_a_plain_text_has_one_reading() -> None:
    assert list(other_readings(json.dumps("SELECT a FROM t WHERE b = 'it''s'")[1:-1], "")) == []
