"""What a limiter answers, whichever one it is."""

from typing import NamedTuple


class LimiterError(Exception):
    """The limiter could not count, so the request is not let through."""


class Allowance(NamedTuple):
    """Whether one more request may pass, and what is left after it."""

    limit: int
    remaining: int
    reset_seconds: int
    """Whole seconds until `remaining` grows again, if nothing more is asked until then."""
    allowed: bool
