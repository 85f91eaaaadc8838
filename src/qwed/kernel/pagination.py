"""Types of the `limit` and `cursor` of a page."""

from typing import Annotated

from msgspec import Meta

from qwed.kernel.request_schema import FieldRule, RequestStruct, matching
from qwed.model import ErrorCode

MAX_LIMIT = 1_000
DEFAULT_LIMIT = 100
_BEFORE = "The `next_cursor` of the previous page; omit it for the first page."
_CURSOR = FieldRule("must be the `next_cursor` of an earlier page", ErrorCode.BAD_OPTION)

Limit = Annotated[
    int,
    Meta(ge=1, le=MAX_LIMIT, description="Largest number of items to return."),
    FieldRule(f"must be a whole number from 1 to {MAX_LIMIT}", ErrorCode.BAD_OPTION),
]
LogIndex = Annotated[
    int,
    Meta(ge=0, le=10**18 - 1),
    FieldRule("must be a whole number of at most 18 digits", ErrorCode.BAD_OPTION),
]
LogCursor = Annotated[
    str,
    Meta(description=_BEFORE, extra_json_schema={"pattern": "^[0-9]{1,18}$"}),
    _CURSOR._replace(refuse=matching("[0-9]{1,18}")),
]
"""Cursor of pages that follow the log: the index of the entry before which the page begins."""


class LogPageRequest(RequestStruct):
    """Page of entries that follow the log."""

    limit: Limit = DEFAULT_LIMIT
    cursor: LogCursor | None = None

    @property
    def before(self) -> int | None:
        """Index in the log before which the page begins; None for the first page."""
        return None if self.cursor is None else int(self.cursor)


CURSOR = Meta(description=_BEFORE)


def cursor_rule(shape: str) -> FieldRule:
    """Return the rule of a cursor with this pattern."""
    return _CURSOR._replace(refuse=matching(shape))


def one_of(names: tuple[str, ...]) -> FieldRule:
    """Return the rule of a parameter with a closed set of values."""
    return FieldRule(
        f"must be one of {', '.join(names)}",
        ErrorCode.BAD_OPTION,
        refuse=lambda name: None if name in names else "",
    )


FROM = Meta(
    description="Start of the period, inclusive; a date without a time is the start of that UTC day.",
    extra_json_schema={"anyOf": [{"format": "date-time"}, {"format": "date"}]},
)
TO = Meta(
    description="End of the period, exclusive; a date without a time is the start of that UTC day.",
    extra_json_schema={"anyOf": [{"format": "date-time"}, {"format": "date"}]},
)
