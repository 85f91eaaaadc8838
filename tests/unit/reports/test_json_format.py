"""The report as JSON: one object, in any number of chunks."""

import json
from typing import Any

import pytest

from qwed.reports.json_format import CHUNK, json_chunks
from tests.unit.reports.sample_reports import empty, sample


def _read(chunks: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(b"".join(chunks))
    return read


def test_the_members_are_those_of_the_page() -> None:
    report = _read(json_chunks(sample(), [b'{"activity_id":"act_1"}']))
    assert list(report) == [
        "report_id",
        "report_version",
        "generated_at",
        "agent_id",
        "period",
        "summary",
        "activity_count",
        "agent",
        "trust",
        "decisions",
        "refusals",
        "approvals",
        "executions",
        "standing",
        "revocations",
        "contents",
        "log",
        "verification",
        "mapping",
        "attestations",
        "activities",
    ]
    assert list(report["period"]) == ["from", "to"]


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1_000, 1_001, 2_500])
def test_every_attestation_and_every_activity_is_there(count: int) -> None:
    report = _read(json_chunks(sample(attestations=count), (b'{"n":%d}' % n for n in range(count))))
    assert [row["n"] for row in report["activities"]] == list(range(count))
    expected = [row.attestation_id for row in sample(attestations=count).attestations]
    assert [row["attestation_id"] for row in report["attestations"]] == expected


def test_activities_are_read_as_they_are_sent() -> None:
    """Reading one chunk consumes about one chunk of activities, not all of them."""
    consumed = []

    def activities() -> Any:
        for number in range(10_000):
            consumed.append(number)
            yield b'{"filler":"%s"}' % (b"x" * 1_000)

    chunks = json_chunks(sample(attestations=0), activities())
    for chunk in chunks:
        if chunk.startswith(b"\n"):
            break
    assert len(consumed) < 2 * CHUNK // 1_000


def test_an_empty_report_has_empty_lists() -> None:
    report = _read(json_chunks(empty(), []))
    assert (report["activities"], report["attestations"], report["log"]["head"]) == ([], [], None)
