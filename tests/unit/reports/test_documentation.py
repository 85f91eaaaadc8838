"""The page about reports documents every member of the JSON and every column of the CSV."""

from pathlib import Path

import pytest

from qwed.kernel.reports.builder import FORMATS, MAX_ACTIVITIES, MAX_DAYS
from qwed.reports.csv_format import CsvRow
from qwed.reports.report_data import (
    MAX_LIST_ENTRIES,
    ContentStatistics,
    DecisionStatistics,
    ExecutionStatistics,
    ReportData,
)

_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reports.md").read_text()
_MEMBERS = (
    *ReportData.__struct_fields__,
    *DecisionStatistics.__struct_fields__,
    *ExecutionStatistics.__struct_fields__,
    *ContentStatistics.__struct_fields__,
    "activities",
)


@pytest.mark.parametrize("name", [*_MEMBERS, *CsvRow._fields, *FORMATS])
def test_it_is_named(name: str) -> None:
    assert f"`{name}`" in _PAGE


@pytest.mark.parametrize("number", [MAX_ACTIVITIES, MAX_DAYS, MAX_LIST_ENTRIES])
def test_the_limits_are_those_of_the_code(number: int) -> None:
    assert f"{number:,}" in _PAGE
