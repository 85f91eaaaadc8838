"""Queries checked against a schema: names, numbers of columns, and comparable types."""

from itertools import product

import pytest

from qwed.engines.protocol import EngineRequest
from qwed.engines.sql import verify
from qwed.model import Status, Verdict
from tests.support.case_tables import each

DDL = """
CREATE TABLE users (
    id SERIAL PRIMARY KEY, name VARCHAR(50), age INT, born DATE, created TIMESTAMP, active BOOLEAN,
    score NUMERIC(10, 2), data JSONB, uid UUID
);
CREATE TABLE orders (id INT, user_id INT REFERENCES users (id), total DECIMAL, note TEXT, placed DATE);
"""


def ask(query: str, dialect: str) -> Verdict:
    return verify(EngineRequest(query=query, parameters={"dialect": dialect, "schema_ddl": DDL}))


FITTING = [
    "SELECT * FROM users WHERE age = '30'",
    "SELECT * FROM users WHERE age > 5 AND name = 'x' AND born > '2020-01-01'",
    "SELECT * FROM users WHERE active = TRUE AND active = 1 AND active = 'true'",
    "SELECT * FROM users WHERE born BETWEEN '2020-01-01' AND '2021-01-01'",
    "SELECT age + 1, score * 2, age * score FROM users",
    "SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 5.5 AND o.placed = u.born",
    "SELECT * FROM users WHERE uid = '3f06af63-a93c-11e4-9797-00505690773f'",
    "SELECT * FROM users WHERE id IN (1, 2, '3')",
    "SELECT * FROM users WHERE age = ? AND name = ?",
    "SELECT * FROM users WHERE age = %s AND name = %(name)s",
    "SELECT * FROM users WHERE age = :age AND name = :name",
    "SELECT active, count(*) FROM users GROUP BY active HAVING count(*) > 5",
    "SELECT * FROM users WHERE length(name) > 5 AND upper(name) = 'X'",
    "SELECT * FROM users WHERE created > '2024-01-01 00:00:00'",
    "SELECT sum(total) + 5 FROM orders",
    "SELECT a.n FROM (SELECT count(*) AS n, name FROM users GROUP BY name) a WHERE a.n > 5 AND a.name = 'x'",
    "WITH c AS (SELECT id AS k, name AS nm FROM users) SELECT * FROM c WHERE k = 5 AND nm LIKE 'a%'",
    "SELECT * FROM users u WHERE EXISTS (SELECT 1 FROM orders WHERE user_id = u.id AND total > u.score)",
    "SELECT id FROM users JOIN orders USING (id)",
    "SELECT coalesce(age, 0) + 1, CASE WHEN age > 5 THEN 'a' ELSE 'b' END FROM users",
    "SELECT * FROM users WHERE age = (SELECT max(age) FROM users)",
    "SELECT name FROM users UNION ALL SELECT note FROM orders",
    "UPDATE users SET age = 5, name = 'x', born = '2020-01-01' WHERE id = 3",
    "INSERT INTO users (id, name, age) VALUES (1, 'x', 5), (2, 'y', NULL)",
    "INSERT INTO orders SELECT 1, 2, 3, 'x', CURRENT_DATE",
    "DELETE FROM users WHERE age > 5",
]
UNFIT = [
    "SELECT * FROM users WHERE age = 'abc'",
    "SELECT * FROM users WHERE 'abc' = age",
    "SELECT * FROM users WHERE born > 5",
    "SELECT * FROM users WHERE born = 'hello'",
    "SELECT * FROM users WHERE active = 'maybe'",
    "SELECT * FROM users WHERE age IN (1, 'x')",
    "SELECT * FROM users WHERE age BETWEEN 'a' AND 'b'",
    "SELECT * FROM (SELECT age AS a FROM users) s WHERE a = 'abc'",
    "WITH c AS (SELECT count(*) AS n FROM users) SELECT * FROM c WHERE n = 'many'",
    "SELECT * FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.placed > u.age)",
    "SELECT born + created FROM users",
    "UPDATE users SET age = 'abc' WHERE id = 1",
    "DELETE FROM users WHERE born > 5",
    "INSERT INTO users (id, name) VALUES (1)",
    "INSERT INTO users (id, name) VALUES (1, 'a', 3)",
    "INSERT INTO users (id, age) VALUES (1, 'abc')",
    "INSERT INTO orders VALUES (1, 2, 3, 'x', '2020-01-01', 7)",
    "INSERT INTO orders (id, user_id) SELECT id FROM users",
    "SELECT id, name FROM users UNION SELECT id FROM orders",
    "SELECT id FROM users, orders",
    "SELECT nme FROM users",
    "SELECT u.total FROM users u",
    "SELECT * FROM people",
]
STRICTLY_UNFIT = [
    "SELECT age + name FROM users",
    "SELECT * FROM users WHERE name = 5",
    "SELECT * FROM users u JOIN orders o ON o.note = u.id",
    "SELECT * FROM users WHERE age > (SELECT name FROM users LIMIT 1)",
    "SELECT age * 'x' FROM users",
]


@each(("query", "dialect"), product(FITTING, ["", "postgres", "mysql", "sqlite"]))
def test_a_query_that_fits_the_schema_is_verified(query: str, dialect: str) -> None:
    verdict = ask(query, dialect)
    assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ())


@each(("query", "dialect"), product(UNFIT, ["", "postgres", "mysql", "sqlite"]))
def test_a_query_that_does_not_fit_fails_the_schema_and_is_no_violation(query: str, dialect: str) -> None:
    verdict = ask(query, dialect)
    assert (verdict.status, verdict.checks_failed, verdict.violations) == (Status.FAILED, ("schema_valid",), ())


@pytest.mark.parametrize("query", STRICTLY_UNFIT)
def test_numbers_and_texts_are_compared_only_where_the_database_does(query: str) -> None:
    assert ask(query, "postgres").checks_failed == ("schema_valid",)
    assert ask(query, "sqlite").verified


def test_a_column_without_a_type_is_compared_with_anything() -> None:
    ddl = {"schema_ddl": "CREATE TABLE t (a, b)", "dialect": "sqlite"}
    assert verify(EngineRequest(query="SELECT a FROM t WHERE a = 'x' AND b = 5 AND a = b", parameters=ddl)).verified


def test_branches_of_different_width_fail_without_a_schema_too() -> None:
    assert verify(EngineRequest(query="SELECT a, b FROM t UNION SELECT a FROM u")).checks_failed == ("schema_valid",)
    assert verify(EngineRequest(query="SELECT a, b FROM t UNION SELECT * FROM u")).checks_failed == ()
