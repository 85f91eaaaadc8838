"""Which texts beside a query a database would take for a statement."""

import pytest

from qwed.kernel.judging.stray import is_statement

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
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_told_whatever_it_does(text: str) -> None:
    assert is_statement(text)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_statement(text: str) -> None:
    assert not is_statement(text)
