"""Queries that share a cache entry differ by case and white space of prose only; code means the same to its readers."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress

import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from qwed_sdk.cache.normalize import normalize_query

often = settings(derandomize=True, database=None, deadline=None, max_examples=120)

NAMES = (
    "x",
    "X",
    "e",
    "E",
    "a",
    "A",
    "rate",
    "Rate",
    "RATE",
    "README",
    "readme",
    "Users",
    "users",
    "None",
    "True",
    "MW",
)
LITTLE = ("is", "IS", "Is", "the", "The", "of", "what", "What", "it's")
SYNTAX = (
    "in",
    "not",
    "if",
    "else",
    "return",
    "import",
    "cat",
    "rm",
    "echo",
    "SELECT",
    "select",
    "FROM",
    "and",
    "where",
)
WORDS = (*NAMES, *LITTLE, *SYNTAX, "1", "2", "1E5", "1e5")
MARKS = ["+", "=", "*", "/", "(", ")", ",", ".", ":", ";", "?", "-", "--", "#", "//", "'", '"', "`", '"""', "''", "\\"]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\n  ", ""]
texts = st.lists(
    st.tuples(st.sampled_from(WORDS) | st.sampled_from(MARKS), st.sampled_from(SPACES)), min_size=1, max_size=9
).map(lambda parts: "".join(word + space for word, space in parts))
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
statements = st.builds(
    "SELECT {} FROM {} WHERE {} {} {}".format,
    *(st.sampled_from(NAMES[:12]),) * 3,
    st.sampled_from(["=", "<", "LIKE", "IS NOT", "in"]),
    st.sampled_from(["'A  b'", "'it''s'", "1", "NULL", '"Rate"', "('a', 'B')", "x -- a"]),
)
VARIANTS = 12
NO_NAME = re.compile(r"(?i)what|is|the|of|from|where|select|and|in|not|else|like|null")
queries = texts | sentences | statements


@st.composite
def respelled_queries(draw: st.DrawFn, of: st.SearchStrategy[str] = queries) -> list[list[str]]:
    """Return a query with other capitals and spaces, grouped by cache entry."""
    query, chance = draw(of), draw(st.randoms(use_true_random=False))
    found: dict[str, list[str]] = {normalize_query(query): [query]}
    for _ in range(VARIANTS):
        other = re.sub(r"\w+", lambda word: chance.choice(_spellings(word[0])), query)
        if chance.random() < 0.5:
            other = re.sub(r"\s+", lambda _run: chance.choice(SPACES), other)
        found.setdefault(normalize_query(other), []).append(other)
    return list(found.values())


def _spellings(word: str) -> list[str]:
    return [word, word, word.lower(), word.upper(), word.capitalize()]


def _levelled(text: str) -> str:
    return " ".join(text.lower().split())


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'[^']*'|\"[^\"]*\"|`[^`]*`", re.sub(r"(?i)it's", "", text)))


def _names(text: str) -> list[str]:
    return [name for name in re.findall(r"\w+", text) if not NO_NAME.fullmatch(name)]


@often
@given(respelled_queries())
def test_a_plain_reader_finds_nothing_but_capitals_and_spaces_to_differ(variants: list[list[str]]) -> None:
    for group in variants:
        assert len({_levelled(text) for text in group}) == 1
        assert len({_quoted(text) for text in group}) == 1


@often
@given(respelled_queries())
def test_beside_an_operator_no_name_changes_so_that_two_variables_never_become_one(variants: list[list[str]]) -> None:
    for group in variants:
        if re.search(r"(?<!\S)[^\W\d]+\s*[=+*/^<>]", group[0]):
            assert len({tuple(_names(text)) for text in group}) == 1


@often
@given(respelled_queries())
def test_two_words_that_differ_only_by_case_stay_two(variants: list[list[str]]) -> None:
    for group in variants:
        assert len({_count_folded(text) for text in group}) == 1


def _count_folded(text: str) -> int:
    words = set(re.findall(r"\w+", text))
    return len(words) - len({word.lower() for word in words})


@often
@given(queries)
def test_the_normal_form_is_itself_normal(query: str) -> None:
    shape, _, text = normalize_query(query).partition("\0")
    if shape != "exact":
        assert normalize_query(text.replace("\u02bc", "'")) == normalize_query(query)


def _python(text: str) -> object:
    return ast.dump(ast.parse(text.strip()))


def _shell(text: str) -> object:
    return tuple(shlex.split(text, comments=True))


def _sql(text: str) -> object:
    return repr(sqlglot.parse(text, dialect="mysql"))


@often
@given(respelled_queries())
def test_what_is_one_to_the_cache_is_one_to_python(variants: list[list[str]]) -> None:
    for group in variants:
        if _keeps_case(group):
            assert len(set(_readings(_python, SyntaxError, group))) <= 1


@often
@given(respelled_queries(statements))
def test_what_is_one_to_the_cache_is_one_to_a_server_with_case_sensitive_names(variants: list[list[str]]) -> None:
    for group in variants:
        if _keeps_case(group):
            assert len(set(_readings(_sql, SqlglotError, group))) <= 1


@often
@given(respelled_queries())
def test_a_command_has_the_same_arguments_unless_it_reads_as_prose(variants: list[list[str]]) -> None:
    for group in variants:
        if _keeps_case(group):
            assert len(set(_readings(_shell, ValueError, group))) <= 1


def _keeps_case(group: list[str]) -> bool:
    return not normalize_query(group[0]).startswith("prose")


def _readings(read: Callable[[str], object], refusal: type[Exception], texts: list[str]) -> Iterator[object]:
    for text in texts:
        with suppress(refusal):
            yield read(text)
