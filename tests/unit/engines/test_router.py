"""Engine detection for a text."""

import pytest

from qwed.engines.registry import ENGINES
from qwed.engines.router import MAX_CHARACTERS, route
from tests.support.case_tables import each, rows


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


def test_a_message_says_of_which_family_it_is_however_long_it_is() -> None:
    opening = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09">'
    routed = route(opening + "<a/>" * MAX_CHARACTERS)
    assert routed is not None
    assert routed.parameters == {"operation": "payment_message", "msg_type": "pain.001"}
    assert route(" " * 4_000 + opening) is None


def test_a_checkout_is_one_however_long_it_is() -> None:
    routed = route('{"ucp": {}, "line_items": [' + "1," * MAX_CHARACTERS + "1]}")
    assert routed is not None
    assert routed.parameters == {"operation": "checkout"}


@pytest.mark.parametrize("piece", ['{"ucp":', '["ucp"', "[", '{"ucp": {}, "line_items": ['])
def test_what_is_nested_without_end_is_no_checkout(piece: str) -> None:
    assert route((piece * MAX_CHARACTERS)[:MAX_CHARACTERS]) is None
    assert route('{"ucp": ' + (piece * MAX_CHARACTERS)[:MAX_CHARACTERS]) is None


NASTY = ["(", "/*", "a ", "\n", "select ", "```", "--\n", "\\", "x:", " ->", "function ", "if ", "1 km ", "echo "]


@pytest.mark.parametrize("piece", NASTY)
def test_the_longest_text_of_one_piece_is_answered(piece: str) -> None:
    text = (piece * MAX_CHARACTERS)[:MAX_CHARACTERS]
    route(text)
    assert route(text + "x") is None


SLOW = [
    ("", " "),
    ("", "\n"),
    ("--\n", "\n"),
    ("", "/**/"),
    ("", "/*/"),
    ("/*", "*/ /*"),
    ("<?xml ", " "),
    ("", "<!---->"),
    ("<!--", "-"),
    ("<Document ", "xmlns"),
    ("<Document ", " xmlns ="),
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
def test_no_pattern_backtracks(begin: str, piece: str) -> None:
    route((begin + piece * MAX_CHARACTERS)[: MAX_CHARACTERS - 1] + "x")


@pytest.mark.parametrize(
    "text", ["/* a */ -- b\n ((SELECT 1))", "( /**//* * */ select a from t)", "--\n\n--x\nDELETE FROM t"]
)
def test_comments_and_brackets_before_a_query_hide_nothing(text: str) -> None:
    routed = route(text)
    assert routed is not None
    assert routed.engine == "sql"
