"""W3C Trace Context: a caller's span is taken over where it is one, and anything else is as if nothing were there."""

from typing import Any

from qwed.tracing.parent import Parent, parent_of
from tests.support.tables import each, rows


@each("row", rows("traceparent.jsonl"), ids=lambda row: row["name"])
def test_a_traceparent_is_read_or_ignored(row: dict[str, Any]) -> None:
    told = row["parent"]
    meant = told and Parent(bytes.fromhex(told["trace"]), bytes.fromhex(told["span"]), told["sampled"])
    assert parent_of(row["header"].encode()) == meant


def test_no_header_is_no_parent() -> None:
    assert parent_of(None) is None


def test_a_header_of_a_megabyte_is_looked_at_no_further_than_it_can_be_honest() -> None:
    assert parent_of(b"01-" + b"4" * 32 + b"-" + b"4" * 16 + b"-01-" + b"x" * (1 << 20)) is None
