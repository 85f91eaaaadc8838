"""Result and error of the rate limiters."""

from typing import NamedTuple


class LimiterError(Exception):
    """The limiter could not count, so the request is refused."""


class RateLimitStatus(NamedTuple):
    """Verdict on one request, and how many requests remain after it."""

    limit: int
    remaining: int
    reset_seconds: int
    """Whole seconds until `remaining` grows again, without further requests."""
    allowed: bool
