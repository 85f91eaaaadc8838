"""Pages: how many, and from where."""

import re

from qwed.api.http import Call
from qwed.kernel.answer import Problem, problem
from qwed.words import ErrorCode

MOST = 1_000
_WHOLE = re.compile(r"[0-9]{1,6}")
_CURSOR = re.compile(r"[0-9]{1,18}")


def limit_of(call: Call) -> int | Problem:
    """`limit` of the query: 100 where it is not given."""
    text = call.query.get("limit", "100")
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= MOST:
        return problem(ErrorCode.BAD_OPTION, f"`limit` must be a whole number from 1 to {MOST}")
    return int(text)


def sequence_of(call: Call) -> int | Problem | None:
    """`cursor` of the query, where pages follow the log."""
    text = call.query.get("cursor")
    if text is None:
        return None
    if not _CURSOR.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, "`cursor` must be the `next_cursor` of an earlier page")
    return int(text)
