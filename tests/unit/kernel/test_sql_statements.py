"""Recognition of SQL statements in texts other than the query."""

import time
from contextlib import suppress

import pytest

from qwed.kernel.analysis.addresses import TooManyAddressesError, recipients_in, whole_host
from qwed.kernel.analysis.embedded_values import embedded_value
from qwed.kernel.analysis.query_mutations import mutations_in
from qwed.kernel.analysis.sql_statements import is_statement
from qwed.kernel.analysis.text_forms import has_code, is_command
from qwed.kernel.analysis.unjudged_queries import is_unproven_query
from qwed.model import EffectKind

STATEMENTS = [
    "DROP TABLE users",
    "\ufeffDROP TABLE users",
    "COPY users TO PROGRAM 'id'",
    "ATTACH DATABASE 'x' AS y",
    "BEGIN; DROP TABLE users",
    "SET ROLE admin",
    "DO $$ begin delete from users; end $$",
    "LOCK TABLE users",
    "EXPLAIN (ANALYZE) DELETE FROM users",
    "explain analyze delete from users",
    "VACUUM FULL",
    "PRAGMA writable_schema=1",
    "LOAD DATA INFILE 'x' INTO TABLE y",
    "/* a *//* b */ -- c\n # d\n (DROP TABLE users",
    "/*!50000 DROP TABLE users*/",
    "CREATE UNIQUE INDEX a ON b (c)",
    "CREATE GLOBAL TEMPORARY TABLE a (b int)",
    "CREATE OR REPLACE FUNCTION f() RETURNS int",
    "CREATE EXTENSION dblink",
    "DROP MATERIALIZED VIEW a",
    "ALTER SYSTEM SET a = 1",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY users (id, name) FROM '/tmp/x'",
    "DECLARE @a int",
    "UPDATE users AS u SET admin = 1",
    'UPDATE "my users" u SET admin=1',
    "DELETE users WHERE 1 = 1",
    "MERGE users USING others",
    "SHUTDOWN",
    "RENAME TABLE a TO b",
    "/*!DROP TABLE users*/",
    "/** a ** / b **/DELETE FROM users",
    f"/*{'a' * 10_000}*/DELETE FROM users",
    "/**/" * 200_000 + "DELETE FROM users",
    " -- x\n" * 100_000 + "DELETE FROM users",
]
PROSE = [
    "update the sales report",
    "copy of the report to finance",
    "attach the file",
    "do it by Friday",
    "set role models for the team",
    "explain the update to me",
    "explain select steps",
    "vacuum the office",
    "begin; then rest",
    "load the data",
    "commit early",
    "create a user guide",
    "create extensions of the house",
    "delete everything where possible",
    "update the team and set a date",
    "shutdown the old office",
    "merge the lists",
    "declare it at the border",
    "/**/" * 200_000 + "x",
    "/*" * 200_000,
    "/* DROP TABLE users",
    "explain analyze select x " * 10_000,
    "select " + " x" * 10_000,
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_recognised(text: str) -> None:
    assert is_statement(text)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_not_a_statement(text: str) -> None:
    assert not is_statement(text)


LATE = [
    "MATCH (n) DETACH DELETE n",
    "mutation { deleteUser(id: 1) { id } }",
    f"mutation M({'$a: Int, ' * 3_000}) {{ deleteUser }}",
]


@pytest.mark.parametrize("text", LATE)
def test_a_change_is_found_wherever_it_begins(text: str) -> None:
    for before in (
        ("", " " * 30_000, "\n" * 30_000, "// note\n", "/* note */ ") if "MATCH" in text else ("", ", " * 15_000)
    ):
        assert EffectKind.DELETE in set(mutations_in(before + text))


@pytest.mark.parametrize("text", ["g.V().drop()", "db.users.drop()", ".drop table T", "FLUSHALL"])
def test_a_statement_after_others_is_not_proven(text: str) -> None:
    for before in ("", " " * 30_000, "\n\t" * 15_000, "// note\n", "x = 1;\n"):
        assert is_unproven_query(before + text, frozenset())


@pytest.mark.parametrize(
    "text", ["# mutation { x }\n{ a }", '{ a(s: "mutation { x }") { b } }', "query A { mutation { id } }"]
)
def test_a_word_in_a_query_is_no_mutation(text: str) -> None:
    assert list(mutations_in(text)) == []


HOSTILE = [
    piece * (65_000 // len(piece)) for piece in ("a", "-", "{", "a-b", "document.", "host=", "a@", "(", "x:", ";rm ")
]
QUERIES = [
    piece * (200_000 // len(piece))
    for piece in (
        "\n",
        " ",
        "\t\n",
        "|",
        "(",
        "}",
        "//",
        '"',
        "#\n",
        "for a in b\n",
        "let a =\n",
        "select a\n",
        "match (",
        "mutation {",
    )
]


@pytest.mark.parametrize("text", QUERIES, ids=lambda text: repr(text[:9]))
def test_a_hostile_query_is_read_in_time(text: str) -> None:
    began = time.process_time()
    is_unproven_query(text, frozenset())
    list(mutations_in(f"mutation {{ match {text}", is_query=True))
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:9])
def test_a_hostile_text_is_read_in_time(text: str) -> None:
    began = time.process_time()
    for reads in (is_command, has_code, whole_host, embedded_value):
        reads(text)
    is_unproven_query(text[:19_999], frozenset({"sparql"}))
    is_unproven_query(text[:19_999], frozenset())
    with suppress(TooManyAddressesError):
        list(recipients_in(text[:19_999]))
    assert time.process_time() - began < 2
