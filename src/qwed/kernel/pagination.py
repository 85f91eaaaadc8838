"""Parsing of `limit` and `cursor` of a page."""

import re

from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode

MAX_LIMIT = 1_000
LOG_CURSOR = re.compile(r"[0-9]{1,18}")
"""Cursor of pages that follow the log."""
_DEFAULT_LIMIT = 100
_WHOLE = re.compile(r"[0-9]{1,6}")


def read_limit(text: str | None) -> int | Problem:
    """Return the number of rows of a page; the default is 100."""
    if text is None:
        return _DEFAULT_LIMIT
    limit = int(text) if _WHOLE.fullmatch(text) else 0
    return refuse_limit(limit) or limit


def refuse_limit(limit: int) -> Problem | None:
    """Return the problem with a limit that is out of range, or None."""
    if 1 <= limit <= MAX_LIMIT:
        return None
    return problem(ErrorCode.BAD_OPTION, f"`limit` must be a whole number from 1 to {MAX_LIMIT}")


def read_cursor(text: str | None, shape: re.Pattern[str]) -> str | Problem | None:
    """Return the cursor of the page, or the problem with it; None is the first page."""
    if text is not None and not shape.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, "`cursor` must be the `next_cursor` of an earlier page")
    return text


def read_log_cursor(text: str | None) -> int | Problem | None:
    """Return the log index from a cursor, or the problem with it; None is the first page."""
    cursor = read_cursor(text, LOG_CURSOR)
    return int(cursor) if isinstance(cursor, str) else cursor
