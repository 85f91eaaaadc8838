"""Detection of personal data in text."""

import pytest

from qwed.guards.pii import MAX_CANDIDATES, find_pii
from qwed.guards.text_scan import MAX_SCANNED, UNSCANNED, TextFinding
from tests.support.case_tables import each, rows


@each("row", rows("pii_attacks.jsonl"), ids=lambda row: ascii(row["text"]))
def test_personal_data_is_found(row):
    assert [finding.kind for finding in find_pii(row["text"])] == row["kinds"]


@each("text", [row["text"] for row in rows("pii_honest.jsonl")])
def test_honest_text_holds_no_personal_data(text):
    assert find_pii(text) == ()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("Mail bob@example.com.", "bob@example.com"),
        ("call +1 (415) 555-2671 now", "+1 (415) 555-2671"),
        ("pay 4111 1111 1111 1111, thanks", "4111 1111 1111 1111"),
        ("to GB82 WEST 1234 5698 7654 32 please", "GB82 WEST 1234 5698 7654 32"),
        ("ssn 536904399!", "536904399"),
    ],
)
def test_the_span_is_exactly_the_data(text, data):
    (finding,) = find_pii(text)
    assert text[finding.start : finding.end] == data


def test_text_past_the_bound_is_reported_as_unscanned():
    text = "a" * MAX_SCANNED + " bob@example.com"
    assert find_pii(text) == (TextFinding(UNSCANNED, MAX_SCANNED, len(text)),)


def test_more_addresses_than_are_weighed_are_reported_as_unscanned():
    kinds = [finding.kind for finding in find_pii("bob@example.com " * (MAX_CANDIDATES + 5))]
    assert kinds == ["email"] * MAX_CANDIDATES + [UNSCANNED]


HOSTILE = ("a", "1", "[", "@", "1 1 ", "1-", "4111 1111 ", "DE89 ", "+1 ", "x.com@", "@a.a.", "415-555-", "\uff11")


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_near_misses_is_answered_with_spans_of_the_text(unit):
    text = (unit * MAX_SCANNED)[:MAX_SCANNED]
    assert all(0 <= start < end <= len(text) for _, start, end in find_pii(text))
