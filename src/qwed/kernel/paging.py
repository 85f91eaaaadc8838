"""Pages, for whoever asks over HTTP or in process: how many rows, and from where."""

import re

from qwed.kernel.answer import Problem, problem
from qwed.words import ErrorCode

MOST = 1_000
PLACE = re.compile(r"[0-9]{1,18}")
"""The cursor of pages that follow the log."""
_NOT_SAID = 100
_WHOLE = re.compile(r"[0-9]{1,6}")


def read_limit(text: str | None) -> int | Problem:
    """How many rows a page has: a hundred where that is not said."""
    if text is None:
        return _NOT_SAID
    limit = int(text) if _WHOLE.fullmatch(text) else 0
    return refuse_limit(limit) or limit


def refuse_limit(limit: int) -> Problem | None:
    """Why no page has so many rows, or None."""
    if 1 <= limit <= MOST:
        return None
    return problem(ErrorCode.BAD_OPTION, f"`limit` must be a whole number from 1 to {MOST}")


def read_cursor(text: str | None, shape: re.Pattern[str]) -> str | Problem | None:
    """Where the page begins, as an earlier one said; None is the first."""
    if text is not None and not shape.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, "`cursor` must be the `next_cursor` of an earlier page")
    return text


def read_place(text: str | None) -> int | Problem | None:
    """The same, where pages follow the log."""
    cursor = read_cursor(text, PLACE)
    return int(cursor) if isinstance(cursor, str) else cursor
