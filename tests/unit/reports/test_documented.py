"""Every member of the JSON and every column of the CSV stands on the page about reports."""

from pathlib import Path

import pytest

from qwed.kernel.report.gathering import FORMATS, MOST_ACTIVITIES, MOST_DAYS
from qwed.reports.csv_format import CsvRow
from qwed.reports.data import MOST_LISTED, Contents, Decisions, Executions, ReportData

_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reports.md").read_text()
_MEMBERS = (
    *ReportData.__struct_fields__,
    *Decisions.__struct_fields__,
    *Executions.__struct_fields__,
    *Contents.__struct_fields__,
    "activities",
)


@pytest.mark.parametrize("name", [*_MEMBERS, *CsvRow._fields, *FORMATS])
def test_it_is_named(name: str) -> None:
    assert f"`{name}`" in _PAGE


@pytest.mark.parametrize("number", [MOST_ACTIVITIES, MOST_DAYS, MOST_LISTED])
def test_the_limits_are_those_of_the_code(number: int) -> None:
    assert f"{number:,}" in _PAGE
