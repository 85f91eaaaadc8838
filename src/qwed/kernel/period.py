"""The period a question is about: from inclusive, to exclusive; shared by whatever looks back."""

from datetime import UTC, datetime
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.words import ErrorCode
from qwed.words.clock import rfc3339


class Span(NamedTuple):
    """Two moments in seconds; None is open."""

    since: float | None
    until: float | None


def read_span(since: str | None, until: str | None) -> Span | Problem:
    """The span between two texts: RFC 3339, or a bare date for the start of that UTC day."""
    try:
        span = Span(_moment(since), _moment(until))
        shown(span.since), shown(span.until)
    except (ValueError, OverflowError, OSError):
        return problem(ErrorCode.BAD_OPTION, "`from` and `to` must be RFC 3339 times or dates such as 2025-12-01")
    return span


def shown(moment: float | None) -> str | None:
    """A moment as it is written."""
    return None if moment is None else rfc3339(moment)


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
