"""Verdicts of the SQL engine: effects, violations, access limits, repairs and hostile input."""

import json
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.sql import verify
from qwed.model import Effect, EffectKind, Status, Verdict, canonical, risk_of
from tests.support.case_tables import each, rows

ATTACKS, HONEST, REPAIRS = rows("sql_attacks.jsonl"), rows("sql_honest.jsonl"), rows("sql_repairs.jsonl")
DDL = "CREATE TABLE users (id INT, name TEXT, password TEXT); CREATE TABLE orders (id INT, user_id INT, total INT)"
ORDER = (
    "parameters_valid",
    "syntax_valid",
    "single_statement",
    "no_injection",
    "no_dangerous_functions",
    "tables_allowed",
    "columns_allowed",
    "no_sensitive_columns",
    "schema_valid",
    "within_max_rows",
    "no_destructive_operations",
)


def verdict_on(case: dict[str, Any]) -> Verdict:
    """Return the verdict on a row; cached, because it depends on nothing else."""
    return _cached_verdict(json.dumps(case))


@cache
def _cached_verdict(text: str) -> Verdict:
    case: dict[str, Any] = json.loads(text)
    limits: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in case.get("policy", {}).items()
    }
    query = case["query"] if "query" in case else "".join(text * times for text, times in case["parts"])
    return verify(EngineRequest(query=query, parameters=case.get("parameters", {}), policy=DataPolicy(**limits)))


def ask(query: str, dialect: str = "", **policy: Any) -> Verdict:
    return verify(EngineRequest(query=query, parameters={"dialect": dialect}, policy=DataPolicy(**policy)))


def effects(query: str, dialect: str = "") -> set[Effect]:
    return set(ask(query, dialect).effects)


@each("case", ATTACKS)
def test_an_attack_is_not_verified_and_says_why(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert verdict.status == case["status"]
    assert case.get("violation") is None or case["violation"] in verdict.violations
    assert case.get("says", "") in verdict.message
    assert not verdict.verified


@each("case", ATTACKS)
def test_only_a_violation_costs_trust_and_it_fails_no_injection(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert not verdict.violations or verdict.status is Status.BLOCKED
    assert not verdict.violations or "no_injection" in verdict.checks_failed
    assert not verdict.violations or verdict.corrected is None


@each("case", HONEST)
def test_an_honest_query_is_verified_at_the_risk_of_its_effects(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert (verdict.status, verdict.violations, verdict.checks_failed) == (Status.VERIFIED, (), ())
    assert risk_of(verdict.effects).word == case["risk"]
    assert "tables" not in case or verdict.result["tables"] == case["tables"]


@each("case", HONEST)
def test_a_query_with_nothing_wrong_is_never_rewritten(case: dict[str, Any]) -> None:
    assert verdict_on(case).corrected is None


@each("case", HONEST)
def test_only_a_query_that_changes_nothing_passes_no_destructive_operations(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    reads_only = all(effect.kind is EffectKind.READ for effect in verdict.effects)
    assert ("no_destructive_operations" in verdict.checks_passed) is reads_only
    assert bool(verdict.result["notes"]) is not reads_only


@each("case", REPAIRS)
def test_a_repair_is_the_narrower_query_or_none(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert verdict.status is not Status.VERIFIED
    assert verdict.corrected == (None if case["corrected"] is None else {"query": case["corrected"]})


@each("case", [row for row in REPAIRS if row["corrected"]])
def test_a_repaired_query_is_verified_and_left_alone(case: dict[str, Any]) -> None:
    again = verdict_on({**case, "query": case["corrected"]})
    assert (again.status, again.corrected) == (Status.VERIFIED, None)


@pytest.mark.parametrize("case", rows("sql_hostile.jsonl"))
def test_a_hostile_input_gets_an_answer(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert verdict.status in case["status"]
    assert canonical(verdict.result)


@each("case", [*ATTACKS, *HONEST, *REPAIRS])
def test_a_verdict_is_json_and_its_checks_keep_their_order(case: dict[str, Any]) -> None:
    verdict = verdict_on(case)
    assert canonical(verdict.result)
    for checks in (verdict.checks_passed, verdict.checks_failed):
        assert list(checks) == sorted(checks, key=ORDER.index)
    assert not set(verdict.checks_passed) & set(verdict.checks_failed)
    assert verdict.engine == "sql"
    assert verdict.message
    assert not verdict.message.endswith(".")


def test_a_plain_select_passes_the_checks_of_the_specification() -> None:
    verdict = ask("SELECT * FROM customers WHERE status = 'active'")
    assert {"no_destructive_operations", "no_sensitive_columns", "schema_valid"} <= set(verdict.checks_passed)
    assert verdict.effects == (Effect(EffectKind.READ, "customers"),)


QUOTED = [
    'SELECT "password" FROM users',
    'SELECT id, "PassWord" FROM users',
    "SELECT id FROM users WHERE \"password\" LIKE 'a%'",
    'SELECT id FROM users WHERE id IN (SELECT "password" FROM users)',
    'EXPLAIN SELECT "password" FROM users',
    'SELECT id FROM users ORDER BY "password"',
    'SELECT "users"."password" FROM users',
]
DIALECTS = ["mysql", "mariadb", "bigquery", "spark", "hive", "tsql", "postgres", ""]


@each(("query", "dialect"), product(QUOTED, DIALECTS))
def test_a_sensitive_column_in_double_quotes_is_one_in_every_dialect(query: str, dialect: str) -> None:
    verdict = ask(query, dialect)
    assert verdict.status is Status.FAILED
    assert "no_sensitive_columns" in verdict.checks_failed
    assert '"' not in (verdict.corrected or {"query": ""})["query"]


def test_a_column_that_only_the_policy_calls_sensitive_is_one_in_double_quotes_too() -> None:
    for column in ("salary", "users.salary"):
        verdict = ask('SELECT "salary" FROM users', "mysql", sensitive_columns=(column,))
        assert verdict.checks_failed == ("no_sensitive_columns",)
    assert ask('SELECT "salary" FROM users', "mysql", sensitive_columns=("staff.salary",)).verified


@pytest.mark.parametrize("dialect", ["mysql", "bigquery", "spark"])
@pytest.mark.parametrize(
    "query",
    [
        'SELECT id FROM users WHERE city = "Graz"',
        'SELECT id FROM users WHERE note = "my password is lost"',
        "SELECT id FROM users WHERE topic = 'password'",
        'SELECT id AS "token" FROM users',
    ],
)
def test_an_honest_text_in_quotes_stays_one(query: str, dialect: str) -> None:
    assert ask(query, dialect).verified


def test_checks_of_limits_appear_only_where_there_are_limits() -> None:
    free = ask("SELECT id FROM users")
    bound = ask("SELECT id FROM users LIMIT 1", allowed_tables=("users",), allowed_columns=("id",), max_rows=1)
    limits = {"tables_allowed", "columns_allowed", "within_max_rows"}
    assert not limits & set(free.checks_passed)
    assert limits <= set(bound.checks_passed)


def test_every_statement_reports_what_it_does_to_which_table() -> None:
    assert effects("INSERT INTO a SELECT x FROM b") == {Effect(EffectKind.WRITE, "a"), Effect(EffectKind.READ, "b")}
    assert effects("UPDATE a SET x = 1 WHERE y = 2") == {Effect(EffectKind.WRITE, "a")}
    assert effects("DELETE FROM a WHERE y = 2") == {Effect(EffectKind.DELETE, "a")}
    assert effects("DROP TABLE a") == {Effect(EffectKind.DELETE, "a")}
    assert effects("TRUNCATE TABLE a") == {Effect(EffectKind.DELETE, "a")}
    assert effects("ALTER TABLE a ADD COLUMN x INT") == {Effect(EffectKind.ADMIN, "a")}
    assert effects("CREATE TABLE a (x INT)") == {Effect(EffectKind.WRITE, "a")}
    assert effects("CREATE VIEW v AS SELECT x FROM a") == {Effect(EffectKind.ADMIN, "v"), Effect(EffectKind.READ, "a")}


@pytest.mark.parametrize("where", ["", " WHERE TRUE", " WHERE 1=1", " WHERE x = x", " WHERE x LIKE '%'", " WHERE 1"])
def test_a_write_that_every_row_meets_is_unbounded(where: str) -> None:
    assert Effect(EffectKind.WRITE, "a", unbounded=True) in effects(f"UPDATE a SET x = 1{where}")
    assert Effect(EffectKind.DELETE, "a", unbounded=True) in effects(f"DELETE FROM a{where}")


def test_a_write_that_rows_decide_is_bounded() -> None:
    assert effects("UPDATE a SET x = 1 WHERE 1=1 AND y = 2") == {Effect(EffectKind.WRITE, "a")}


def test_writes_inside_a_select_count() -> None:
    query = "WITH gone AS (DELETE FROM a WHERE id = 1 RETURNING id) SELECT id INTO kept FROM gone, b"
    assert effects(query, "postgres") == {
        Effect(EffectKind.DELETE, "a"),
        Effect(EffectKind.WRITE, "kept"),
        Effect(EffectKind.READ, "b"),
    }


def test_a_program_behind_copy_is_an_execution() -> None:
    assert Effect(EffectKind.EXECUTE, "PROGRAM") in effects("COPY users TO PROGRAM 'sh'", "postgres")


def test_a_statement_behind_explain_is_judged_by_what_it_runs() -> None:
    verdict = ask("EXPLAIN ANALYZE DELETE FROM a", "postgres")
    assert verdict.effects == (Effect(EffectKind.DELETE, "a", unbounded=True),)
    assert verdict.result["statement"] == "EXPLAIN"


def test_what_cannot_be_read_is_an_unresolved_effect() -> None:
    for query in ("CALL f()", "SELEC 1", "SELECT my_function(1)", ""):
        assert EffectKind.UNRESOLVED in {effect.kind for effect in ask(query).effects}


def test_stacked_statements_report_the_effects_of_all() -> None:
    verdict = ask("SELECT x FROM a; DROP TABLE b")
    assert verdict.effects == (Effect(EffectKind.READ, "a"), Effect(EffectKind.DELETE, "b"))
    assert verdict.checks_failed == ("single_statement", "no_injection")


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    verdict = ask("SELECT 1", "klingon")
    assert verdict.status is Status.BLOCKED
    assert all(name in verdict.message for name in ("postgres", "mysql", "sqlite", "tsql"))


@pytest.mark.parametrize("name", ["postgresql", "postgres", "MSSQL", "tsql", "sqlite", "mysql", "bigquery", "duckdb"])
def test_dialects_go_by_their_usual_names(name: str) -> None:
    assert ask("SELECT id FROM users", name).verified


def test_parameters_narrow_the_policy_and_never_widen_it() -> None:
    parameters = {"allowed_tables": ["users", "orders"], "schema_ddl": "CREATE TABLE orders (id INT)"}
    policy = DataPolicy(allowed_tables=("users",), schema_ddl=DDL)
    orders = verify(EngineRequest(query="SELECT id FROM orders", parameters=parameters, policy=policy))
    users = verify(EngineRequest(query="SELECT id FROM users", parameters=parameters, policy=policy))
    assert "tables_allowed" in orders.checks_failed
    assert users.verified


def test_an_empty_list_of_tables_allows_none() -> None:
    assert ask("SELECT id FROM users", allowed_tables=()).status is Status.FAILED
    assert ask("SELECT 1", allowed_tables=()).verified


def test_a_star_passes_without_a_schema_and_expands_with_one() -> None:
    assert ask("SELECT * FROM users").verified
    assert ask("SELECT * FROM users", schema_ddl=DDL).checks_failed == ("no_sensitive_columns",)


def test_counting_rows_reads_no_column() -> None:
    assert ask("SELECT count(*) FROM users", schema_ddl=DDL).verified


def test_a_view_has_columns_the_schema_does_not_list() -> None:
    ddl = f"{DDL}; CREATE VIEW totals AS SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id"
    assert ask("SELECT s FROM totals", schema_ddl=ddl).verified


def test_a_schema_that_cannot_be_read_refuses_every_query() -> None:
    for ddl in ("", "nonsense", "DROP TABLE x", "CREATE TABLE (", "CREATE TABLE t (x INT);" * 9_000):
        assert ask("SELECT 1", schema_ddl=ddl).status is Status.BLOCKED


def test_the_result_describes_the_query() -> None:
    query = "SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id WHERE o.id IN (SELECT id FROM old)"
    result = ask(query, "postgresql").result
    assert (result["statement"], result["dialect"]) == ("SELECT", "postgres")
    assert result["tables"] == ["users", "orders", "old"]
    assert set(result["columns"]) == {"name", "user_id", "id"}
    assert result["complexity"] == {"table_count": 3, "join_count": 1, "subquery_depth": 1, "estimated_cost": 21}


def test_a_harder_query_costs_more() -> None:
    plain = ask("SELECT id FROM a LIMIT 1").result["complexity"]["estimated_cost"]
    joined = ask("SELECT a.id FROM a JOIN b ON a.id = b.id LIMIT 1").result["complexity"]["estimated_cost"]
    nested = ask("SELECT id FROM (SELECT id FROM a JOIN b USING (id)) x").result["complexity"]["estimated_cost"]
    assert plain < joined < nested


def test_a_message_never_repeats_the_whole_query() -> None:
    assert "hunter2" not in ask("SELECT * FROM t WHERE name = 'hunter2' OR 1=1").message
    assert "hunter2" not in ask("SELECT 'hunter2' FROM FROM").message


def test_a_repair_keeps_limits_of_every_kind_at_once() -> None:
    verdict = ask("SELECT * FROM users", schema_ddl=DDL, max_rows=7, allowed_columns=("id", "password"))
    assert verdict.checks_failed == ("columns_allowed", "no_sensitive_columns", "within_max_rows")
    assert verdict.corrected == {"query": "SELECT id FROM users LIMIT 7"}


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("SELECT max(id, 0) FROM users", ""),
        ("SELECT min(name, 'x') FROM users", "postgres"),
        ("SELECT regr_valx(id, id) FROM users", "snowflake"),
        ("SELECT regexp_split_to_table(string_agg(name, ','), ',') FROM users", "postgres"),
        ("SELECT jsonb_array_elements_text(jsonb_agg(name)) FROM users", "postgres"),
        ("SELECT generate_subscripts(array_agg(name), 1) FROM users", "postgres"),
        ("UPDATE users SET id = id WHERE id > 0 RETURNING name", "postgres"),
        ("UPDATE users SET id = 1 OUTPUT inserted.name WHERE id > 0", "tsql"),
        ("DELETE FROM users WHERE id > 0 RETURNING name", "sqlite"),
        ("INSERT INTO users (name) SELECT name FROM users RETURNING name", "sqlite"),
        ("INSERT INTO users (name) VALUES ('a'), ('b'), ('c'), ('d') RETURNING name", "sqlite"),
        ("VALUES (1), (2), (3), (4)", ""),
    ],
)
def test_what_could_return_more_rows_than_allowed_does_not_pass(query: str, dialect: str) -> None:
    assert "within_max_rows" in ask(query, dialect, max_rows=3).checks_failed


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(id) FROM users",
        "SELECT name FROM users FETCH FIRST ROW ONLY",
        "INSERT INTO users (name) VALUES ('a'), ('b') RETURNING name",
        "INSERT INTO users (name) SELECT name FROM users LIMIT 3 RETURNING name",
        "UPDATE users SET id = 1 WHERE id > 0",
        "VALUES (1), (2), (3)",
    ],
)
def test_what_returns_few_rows_passes(query: str) -> None:
    assert "within_max_rows" in ask(query, "postgres", max_rows=3).checks_passed


def test_the_same_query_gets_the_same_verdict() -> None:
    query = "WITH c AS (SELECT id FROM users) SELECT * FROM c JOIN orders USING (id)"
    assert ask(query) == ask(query)


STEADY = [
    "SELECT id , name FROM users WHERE id = 5 AND name = 'x' ORDER BY name LIMIT 3",
    "SELECT u . name , count ( * ) FROM users AS u JOIN orders AS o ON o . uid = u . id GROUP BY u . name",
    "WITH c AS ( SELECT id FROM users ) SELECT id FROM c",
    "SELECT name FROM customers UNION ALL SELECT name FROM suppliers",
    "UPDATE orders SET status = 'shipped' WHERE id = 7",
    "UPDATE orders SET status = 'shipped'",
    "DELETE FROM orders WHERE id = 7",
    "INSERT INTO a ( x ) SELECT y FROM b",
    "DROP TABLE users",
    "SELECT password FROM users",
    "SELECT id FROM users WHERE id = 1 OR 1 = 1",
    "SELECT name FROM a WHERE id = -1 UNION SELECT email FROM information_schema . tables",
    "SELECT sleep ( 5 ) FROM users",
    "SELECT unheard_of ( 5 ) FROM users",
    "SELECT id FROM users ; DROP TABLE users",
]
KEYWORDS = """
select from where and or order by limit as join on group with union all update set delete insert into drop
""".split()  # noqa: SIM905 - reads better than a list of literals
SHARDS = """
SELECT * FROM t WHERE a = 1 ' OR AND -- /* */ ; ( ) , NOT UNION NULL 'x' # \\ JOIN ON IN
""".split()  # noqa: SIM905 - reads better than a list of literals
GAPS = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", " /* note */ ", " -- note\n", "/**/", "\n\n -- a\n -- b\n"])


@given(st.data(), st.sampled_from(STEADY))
@settings(max_examples=150, deadline=None)
def test_blanks_comments_and_the_case_of_keywords_change_nothing(data: st.DataObject, query: str) -> None:
    words = [
        data.draw(st.sampled_from([word.upper(), word.lower(), word.title()])) if word.lower() in KEYWORDS else word
        for word in query.split(" ")
    ]
    text = words[0] + "".join(_gap(data, word, before) + word for before, word in pairwise(words))
    plain, changed = ask(query), ask(text)
    assert (changed.status, changed.effects, changed.violations) == (plain.status, plain.effects, plain.violations)
    assert changed.checks_passed == plain.checks_passed


def _gap(data: st.DataObject, word: str, before: str) -> str:
    # A dot and a call bind to adjacent tokens, and `--` after a lone minus would be another token.
    return " " if {word, before} & {".", "("} else data.draw(GAPS)


@given(st.text(max_size=60), st.sampled_from(["", "postgres", "mysql", "tsql", "sqlite", "bigquery", "snowflake"]))
@settings(max_examples=150, deadline=None)
def test_any_text_gets_a_verdict(text: str, dialect: str) -> None:
    assert ask(text, dialect).status in set(Status)


@given(st.lists(st.sampled_from(SHARDS), max_size=14))
@settings(max_examples=200, deadline=None)
def test_any_shuffle_of_tokens_gets_a_verdict_and_verified_ones_only_read(words: list[str]) -> None:
    verdict = ask(" ".join(words))
    assert not verdict.verified or all(effect.kind is EffectKind.READ for effect in verdict.effects)


@given(st.text(max_size=12), st.sampled_from(["postgres", "sqlite", "tsql", "duckdb"]))
@settings(max_examples=100, deadline=None)
def test_text_inside_a_quoted_literal_never_matters(text: str, dialect: str) -> None:
    printable = "".join(character for character in text if character.isprintable() and character != "\\")
    literal = printable.replace("'", "''")
    assert ask(f"SELECT id FROM users WHERE name = '{literal}' AND id = 3", dialect).verified
