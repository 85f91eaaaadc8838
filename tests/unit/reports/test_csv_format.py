"""The report as CSV: a spreadsheet reads back the values, and executes none of them."""

import csv
import io
from typing import Any

import pytest

from qwed.reports.csv_format import CsvRow, csv_chunks, escape_formula

_PLAIN = CsvRow(*(f"value {number}" for number in range(len(CsvRow._fields))))


def _read(*rows: CsvRow) -> list[list[str]]:
    text = b"".join(csv_chunks(rows)).decode()
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_the_first_line_names_the_columns() -> None:
    assert _read() == [list(CsvRow._fields)]


def test_rows_come_back_as_they_went_in() -> None:
    awkward = _PLAIN._replace(reason='said "no", twice\r\nand left', action="a,b", approver="Jürgen 中文")
    assert _read(_PLAIN, awkward)[1:] == [list(_PLAIN), list(awkward)]


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        '=HYPERLINK("https://example.com","click")',
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-1+1",
        "-2",
        "@SUM(A1)",
        "\t=1+1",
        "\r=1+1",
        "\n=1+1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20SUM(A1)",
        "=",
        "==1",
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_text(cell: str) -> None:
    (_, row) = _read(_PLAIN._replace(reason=cell))
    assert row[CsvRow._fields.index("reason")] == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "a", "1", "0.05", "'quoted", "a=b", "a-b", " leading", '"', "act_01a1"])
def test_any_other_cell_is_left_as_it_is(cell: str) -> None:
    assert escape_formula(cell) == cell


def test_no_row_is_lost_between_chunks() -> None:
    rows = [_PLAIN._replace(log_index=str(number), action="x" * 900) for number in range(500)]
    read = _read(*rows)[1:]
    assert [row[CsvRow._fields.index("log_index")] for row in read] == [str(number) for number in range(500)]


def test_half_of_a_surrogate_pair_does_not_end_the_file() -> None:
    assert len(_read(_PLAIN._replace(reason="\ud800"), _PLAIN)) == 3


def test_rows_are_read_as_they_are_sent() -> None:
    consumed: list[Any] = []

    def rows() -> Any:
        for number in range(10_000):
            consumed.append(number)
            yield _PLAIN._replace(action="x" * 1_000)

    chunks = csv_chunks(rows())
    next(chunks)
    next(chunks)
    assert len(consumed) < 100
