"""Metamorphic tests of the SQL engine: changes without meaning preserve the verdict."""

import re
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.protocol import EngineRequest
from qwed.engines.sql import verify
from qwed.model import Verdict
from tests.support.case_tables import each

QUERIES = [
    "SELECT u.id , u.name FROM users AS u WHERE u.id = 5 AND u.name = 'x' ORDER BY u.name LIMIT 3",
    "SELECT u.name , o.total FROM users AS u JOIN orders AS o ON o.uid = u.id WHERE o.total > 10 OR o.total IS NULL",
    "SELECT u.id FROM users AS u WHERE u.id = 1 OR 1 = 1",
    "SELECT u.id FROM users AS u WHERE u.id = 1 AND 'a' = 'a'",
    "SELECT u.id FROM users AS u WHERE 1 = 1 AND u.id = 5",
    "SELECT u.id FROM users AS u WHERE u.id = u.id",
    "SELECT u.id FROM users AS u WHERE u.id = 1 OR u.id IS NOT NULL",
    "SELECT u.name FROM users AS u WHERE u.id = 1 UNION SELECT t.table_name FROM information_schema.tables AS t",
    "SELECT u.name FROM users AS u WHERE u.id = 1 UNION SELECT NULL",
    "SELECT u.id FROM users AS u WHERE u.id = 1 AND ( SELECT count(*) FROM orders AS o ) > 0",
    "SELECT u.id FROM users AS u WHERE u.id = 1 AND u.n > ( SELECT count(*) FROM orders AS o WHERE o.uid = u.id )",
    "SELECT u.id FROM users AS u WHERE u.id = 1 AND sleep(5) = 0",
    "SELECT u.id FROM users AS u WHERE u.id = 1 AND substr(version(), 1, 1) = '8'",
    "SELECT u.id FROM users AS u ORDER BY ( SELECT o.id FROM orders AS o )",
    "SELECT u.password FROM users AS u",
    "SELECT u.id FROM users AS u WHERE u.n = 1 / 0",
    "UPDATE users SET name = 'x' WHERE id = 7",
    "DELETE FROM users WHERE id = 7 OR 1 = 1",
    "DROP TABLE users",
    "SELECT 1 ; DROP TABLE users",
    "SELECT unheard_of(5) FROM users AS u",
]
KEYWORDS = frozenset(
    """
    select from as where and or order by limit join on is not null union count update set delete drop table
    """.split()  # noqa: SIM905 - reads better than a list of literals
)
GAPS = st.sampled_from([" ", "  ", "\n", "\t", " /* note */ ", " -- note\n", "/**/", "\r\n"])
DIALECTS = st.sampled_from(["", "postgres", "mysql", "sqlite", "tsql", "snowflake"])


def ask(query: str, dialect: str) -> Verdict:
    return verify(EngineRequest(query=query, parameters={"dialect": dialect}))


def is_same_verdict(first: Verdict, second: Verdict) -> bool:
    return (first.status, set(first.violations), first.effects) == (
        second.status,
        set(second.violations),
        second.effects,
    )


@given(st.data(), st.sampled_from(QUERIES), DIALECTS)
@settings(max_examples=150, deadline=None)
def test_the_case_of_keywords_changes_nothing(data: st.DataObject, query: str, dialect: str) -> None:
    words = [
        data.draw(st.sampled_from([word.upper(), word.lower(), word.title()])) if word.lower() in KEYWORDS else word
        for word in query.split(" ")
    ]
    assert is_same_verdict(ask(query, dialect), ask(" ".join(words), dialect))


@given(st.data(), st.sampled_from(QUERIES), DIALECTS)
@settings(max_examples=150, deadline=None)
def test_blanks_and_comments_between_tokens_change_nothing(data: st.DataObject, query: str, dialect: str) -> None:
    words = query.split(" ")
    text = words[0] + "".join(_gap(data, before, word) + word for before, word in pairwise(words))
    assert is_same_verdict(ask(query, dialect), ask(text, dialect))


def _gap(data: st.DataObject, before: str, word: str) -> str:
    # A gap inside a quoted text would be part of it, and after a slash it would form another token.
    return " " if "/" in (before, word) else data.draw(GAPS)


@each(("query", "dialect"), product(QUERIES, ["", "postgres", "mysql", "tsql"]))
def test_renaming_aliases_changes_nothing(query: str, dialect: str) -> None:
    renamed = query
    for old, new in (("u", "people_1"), ("o", "Sales"), ("t", "zz")):
        renamed = re.sub(rf"\bAS {old}\b", f"AS {new}", renamed)
        renamed = re.sub(rf"\b{old}\.(?=\w)", f"{new}.", renamed)
    assert is_same_verdict(ask(query, dialect), ask(renamed, dialect))


@each(
    ("query", "dialect"), product([query for query in QUERIES if " WHERE " in query], ["", "postgres", "mysql", "tsql"])
)
def test_parentheses_around_a_condition_change_nothing(query: str, dialect: str) -> None:
    head, _, condition = query.partition(" WHERE ")
    ends = [condition.find(word) for word in (" ORDER BY", " UNION") if word in condition]
    cut = min(ends, default=len(condition))
    wrapped = f"{head} WHERE (({condition[:cut]})){condition[cut:]}"
    assert is_same_verdict(ask(query, dialect), ask(wrapped, dialect))


@each("query", [query for query in QUERIES if ";" not in query])
def test_a_semicolon_and_blanks_around_change_nothing(query: str) -> None:
    assert is_same_verdict(ask(query, ""), ask(f"\n  {query} ;  \n", ""))


@each("query", QUERIES)
def test_a_comment_in_front_changes_nothing(query: str) -> None:
    assert is_same_verdict(ask(query, ""), ask(f"-- report\n/* by the planner */ {query}", ""))
