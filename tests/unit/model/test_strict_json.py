"""Strict JSON parser: what is ambiguous, or nested more deeply than counted levels allow, is refused."""

import json
from decimal import Decimal

import pytest

from qwed.model.strict_json import MAX_DEPTH, StrictJsonError, parse_strict_json


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the member `a` occurs twice"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[1", "the plan is not valid JSON"),
        ("", "the plan is not valid JSON"),
    ],
)
def test_what_readers_take_differently_is_refused(text: str, says: str) -> None:
    with pytest.raises(StrictJsonError, match=says):
        parse_strict_json(text.encode(), "the plan")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(StrictJsonError, match="not valid UTF-8"):
        parse_strict_json(b'"\xff"', "the plan")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 500, 1_200, 5_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_counted_and_not_left_to_the_interpreter(levels: int, opening: str, closing: str) -> None:
    with pytest.raises(StrictJsonError, match="the plan is nested too deeply"):
        parse_strict_json((opening * levels + "1" + closing * levels).encode(), "the plan")


def test_brackets_in_texts_and_beside_each_other_are_no_nesting() -> None:
    value = ["[" * 2 * MAX_DEPTH, *([] for _ in range(2 * MAX_DEPTH))]
    assert parse_strict_json(json.dumps(value).encode(), "the plan") == value
    deepest = "[" * MAX_DEPTH + "0.10" + "]" * MAX_DEPTH
    assert "0.10" in str(parse_strict_json(deepest.encode(), "the plan", exact=True))
    assert parse_strict_json(b"0.10", "the plan", exact=True) == Decimal("0.10")
