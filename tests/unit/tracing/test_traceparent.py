"""W3C Trace Context: a valid parent span is used, anything else is ignored."""

from typing import Any

from opentelemetry.trace import get_current_span

from qwed.tracing.tracer import parse_traceparent
from tests.support.case_tables import each, rows


@each("row", rows("traceparent.jsonl"), ids=lambda row: row["name"])
def test_a_traceparent_is_read_or_ignored(row: dict[str, Any]) -> None:
    context = parse_traceparent(row["header"].encode())
    span = None if context is None else get_current_span(context).get_span_context()
    assert (span and (f"{span.trace_id:032x}", f"{span.span_id:016x}", span.trace_flags.sampled)) == (
        row["parent"] and (row["parent"]["trace"], row["parent"]["span"], row["parent"]["sampled"])
    )


def test_no_header_is_no_parent() -> None:
    assert parse_traceparent(None) is None


def test_a_header_of_a_megabyte_is_looked_at_no_further_than_it_can_be_honest() -> None:
    assert parse_traceparent(b"01-" + b"4" * 32 + b"-" + b"4" * 16 + b"-01-" + b"x" * (1 << 20)) is None
