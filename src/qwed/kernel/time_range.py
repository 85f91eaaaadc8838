"""Parsing of a time range: from inclusive, to exclusive."""

from datetime import UTC, datetime
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode
from qwed.model.clock import rfc3339


class TimeRange(NamedTuple):
    """Start and end in seconds; None is open."""

    since: float | None
    until: float | None


def read_time_range(since: str | None, until: str | None) -> TimeRange | Problem:
    """Parse two texts in RFC 3339, or a bare date for the start of that UTC day."""
    try:
        time_range = TimeRange(_parse_time(since), _parse_time(until))
        format_time(time_range.since), format_time(time_range.until)
    except (ValueError, OverflowError, OSError):
        return problem(ErrorCode.BAD_OPTION, "`from` and `to` must be RFC 3339 times or dates such as 2025-12-01")
    return time_range


def format_time(seconds: float | None) -> str | None:
    """Format a time in RFC 3339; None stays None."""
    return None if seconds is None else rfc3339(seconds)


def _parse_time(text: str | None) -> float | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
