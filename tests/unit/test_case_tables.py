"""Tables tested in groups hide no row: each row is tested, and each failure is reported."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.case_tables import CaseRow, each, split_for_drill

NUMBERS = [2, 4, 5, 6, 9]


def _rows(test: Callable[..., None]) -> tuple[CaseRow, ...]:
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    rows: tuple[CaseRow, ...] = mark.args[0]
    return rows


def _failure(test: Callable[..., None], rows: Sequence[CaseRow]) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        test(rows)
    return str(caught.value)


def _require_even(number: int) -> None:
    assert number % 2 == 0, "odd"


def test_every_row_is_asked_once_and_in_order() -> None:
    asked: list[int] = []

    @each("number", NUMBERS)
    def gather(number: int) -> None:
        asked.append(number)

    gather(_rows(gather))
    assert asked == NUMBERS


def test_every_row_that_fails_is_told_with_its_number_its_name_and_what_differs() -> None:
    test = each("number", NUMBERS, ids=lambda number: f"number {number}")(_require_even)
    told = _failure(test, _rows(test))
    assert told.startswith("2 of 5 rows failed\n")
    assert "row 3: number 5\n5\n" in told
    assert "row 5: number 9\n9\n" in told
    assert told.count("AssertionError: odd") == 2
    assert "test_case_tables.py" in told
    assert "row 1" not in told


def test_a_row_that_raises_does_not_hide_the_rows_behind_it() -> None:
    @each(("of", "by"), [(6, 3), (6, 0), (6, 4)])
    def divides(of: int, by: int) -> None:
        assert of % by == 0

    told = _failure(divides, _rows(divides))
    assert told.startswith("2 of 3 rows failed\n")
    assert "ZeroDivisionError" in told
    assert "row 3: 6-4\n(6, 4)\n" in told


def test_a_row_alone_fails_like_any_other_test() -> None:
    test = each("number", NUMBERS)(_require_even)
    with pytest.raises(AssertionError, match="odd"):
        test(_rows(test)[2:3])


def test_whoever_interrupts_is_obeyed() -> None:
    @each("number", NUMBERS)
    def interrupted(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(_rows(interrupted))


def test_a_long_row_is_cut_in_what_is_told() -> None:
    @each("text", ["x" * 100_000, "y"])
    def short(text: str) -> None:
        assert len(text) < 5

    assert len(_failure(short, _rows(short))) < 5_000


@pytest.mark.parametrize("table", [[], iter(())])
def test_a_table_without_rows_is_refused(table: Any) -> None:
    with pytest.raises(AssertionError, match="without rows"):
        each("row", table)


def test_a_test_that_takes_more_than_its_row_is_refused() -> None:
    def with_a_fixture(row: int, tmp_path: object) -> None: ...

    with pytest.raises(AssertionError, match="takes its row and nothing else"):
        each("row", [1])(with_a_fixture)


def test_a_row_that_is_too_short_is_refused() -> None:
    with pytest.raises(AssertionError, match="row 2 has 1 values, the test takes 2"):
        each(("a", "b"), [(1, 2), (3,)])


def test_a_table_is_parted_without_losing_a_row_or_a_kind() -> None:
    some, others = split_for_drill(["aa", "ab", "aab", "c", "abc", "ba"], 4, set)
    assert (some, others) == (["aa", "ab", "c", "abc"], ["aab", "ba"])
