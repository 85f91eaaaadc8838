"""Which engine reads a text."""

import pytest

from qwed.engines.router import LONGEST, route
from qwed.engines.table import ENGINES
from tests.support.tables import each, rows


@each("row", rows("router.jsonl"), ids=lambda row: ascii(row["text"])[:50])
def test_the_shape_of_a_text_says_which_engine_reads_it(row: dict[str, str]) -> None:
    routed = route(row["text"])
    if row["engine"] is None:
        assert routed is None
        return
    assert routed is not None
    assert (routed.engine, routed.parameters.get("language")) == (row["engine"], row.get("language"))
    assert routed.engine in ENGINES
    assert routed.why


@pytest.mark.parametrize("language", ["python", "", "py"])
def test_what_stands_in_a_fence_is_read_without_it(language: str) -> None:
    routed = route(f"```{language}\nprint(1)\n```")
    assert routed is not None
    assert routed.text == "print(1)"


NASTY = ["(", "/*", "a ", "\n", "select ", "```", "--\n", "\\", "x:", " ->", "function ", "if ", "1 km ", "echo "]


@pytest.mark.parametrize("piece", NASTY)
def test_the_longest_text_of_one_piece_is_answered(piece: str) -> None:
    text = (piece * LONGEST)[:LONGEST]
    route(text)
    assert route(text + "x") is None


SLOW = [
    ("", " "),
    ("", "\n"),
    ("--\n", "\n"),
    ("", "/**/"),
    ("", "/*/"),
    ("/*", "*/ /*"),
    ("function", " "),
    ("function x", "\t"),
    ("all ", "\n"),
    ("if ", ". "),
    ("(", "( "),
    ("update a", " "),
    ("with a", " "),
    ("git a", " "),
]


@pytest.mark.parametrize(("begin", "piece"), SLOW)
def test_however_a_pattern_could_go_back_it_does_not(begin: str, piece: str) -> None:
    route((begin + piece * LONGEST)[: LONGEST - 1] + "x")


@pytest.mark.parametrize(
    "text", ["/* a */ -- b\n ((SELECT 1))", "( /**//* * */ select a from t)", "--\n\n--x\nDELETE FROM t"]
)
def test_comments_and_brackets_before_a_query_hide_nothing(text: str) -> None:
    routed = route(text)
    assert routed is not None
    assert routed.engine == "sql"
