"""Report data independent of its format: the id covers all of it."""

from typing import Any

import msgspec
import pytest

from qwed.reports.report_data import (
    AttestationEntry,
    BoundedList,
    ContentStatistics,
    ReportData,
    ReportSummary,
    with_report_id,
)
from tests.unit.reports.sample_reports import empty, sample, subject


def _changed(**parts: Any) -> ReportData:
    return with_report_id(msgspec.structs.replace(sample(), **parts))


def test_the_same_data_has_the_same_id() -> None:
    assert sample().report_id == sample().report_id
    assert with_report_id(sample()).report_id == sample().report_id
    assert sample().report_id.startswith("rpt_")


@pytest.mark.parametrize(
    "parts",
    [
        {"generated_at": "2025-12-20T00:30:00.126Z"},
        {"summary": ReportSummary(total_actions=1)},
        {"agent": subject(status="suspended")},
        {"refusals": BoundedList(total=1)},
        {"contents": ContentStatistics(kept=1, erased=1)},
        {"attestations": (AttestationEntry(1, "att_1"),)},
        {"activity_count": 1},
    ],
    ids=lambda parts: next(iter(parts)),
)
def test_whatever_differs_gives_another_id(parts: dict[str, Any]) -> None:
    assert _changed(**parts).report_id != sample().report_id


def test_an_attestation_that_is_one_of_thousands_counts_for_the_id() -> None:
    many = sample(attestations=2_500)
    last = (*many.attestations[:-1], AttestationEntry(1, "att_other"))
    assert with_report_id(msgspec.structs.replace(many, attestations=last)).report_id != many.report_id


def test_an_empty_report_is_a_report() -> None:
    assert msgspec.json.decode(msgspec.json.encode(empty()))["summary"]["total_actions"] == 0
