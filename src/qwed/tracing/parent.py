"""W3C Trace Context: the span of the caller that a request is part of, as its `traceparent` header tells."""

import re
from typing import NamedTuple

_FORM = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]{0,201})?")
_SAMPLED = 1


class Parent(NamedTuple):
    """Whose child a request is, and whether the caller keeps its trace."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def parent_of(header: bytes | None) -> Parent | None:
    """What the header says; nothing, where it is missing, malformed or longer than any that is honest."""
    found = None if header is None else _FORM.fullmatch(header)
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    # The first version ends with its flags; a later one may go on.
    if version == b"ff" or (version == b"00" and more is not None):
        return None
    trace_id, span_id = (bytes.fromhex(part.decode()) for part in (trace, span))
    if not any(trace_id) or not any(span_id):
        return None
    return Parent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))
