"""W3C Trace Context: parses the `traceparent` header."""

import re
from typing import NamedTuple

_FORMAT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]{0,201})?")
_SAMPLED = 1


class ParentSpan(NamedTuple):
    """Span of the caller, and whether it is sampled."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def parse_traceparent(header: bytes | None) -> ParentSpan | None:
    """Return the parent span, or None if the header is missing, malformed or too long."""
    match = None if header is None else _FORMAT.fullmatch(header)
    if match is None:
        return None
    version, trace, span, flags, rest = match.groups()
    # Version 00 ends with the flags; a later version may append fields.
    if version == b"ff" or (version == b"00" and rest is not None):
        return None
    trace_id, span_id = (bytes.fromhex(part.decode()) for part in (trace, span))
    if not any(trace_id) or not any(span_id):
        return None
    return ParentSpan(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))
