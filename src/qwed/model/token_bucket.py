"""Token bucket: a rate limit that refills over time; each message takes one token."""

from typing import NamedTuple

MINUTE = 60.0
_ROUNDING_SECONDS = 1e-6
"""Tolerance for rounding of times; the token taken early is paid back."""


class TokenBucket(NamedTuple):
    """Tokens left at one moment, and the time at which it is full again."""

    tokens: float
    at: float
    full_at: float


def take_token(bucket: TokenBucket | None, per_minute: int, now: float) -> tuple[TokenBucket | None, float]:
    """Return the bucket after taking one token, and 0.0; or None and the seconds until there is a token.

    No bucket means a full one. It is returned only where it has changed.
    """
    bucket = bucket or TokenBucket(per_minute, now, now)
    tokens = min(per_minute, bucket.tokens + max(now - bucket.at, 0.0) * per_minute / MINUTE)
    wait = (1 - tokens) * MINUTE / per_minute
    if wait <= _ROUNDING_SECONDS:
        tokens, wait = tokens - 1, 0.0
    elif bucket.at - now <= MINUTE:
        return None, wait + max(bucket.at - now, 0.0)
    # A clock that was set back must not stop a pair for long; but clocks of two machines differ a little, and tokens
    # that one has counted are not counted again by the other.
    at = bucket.at if 0 < bucket.at - now <= MINUTE else now
    return TokenBucket(tokens, at, at + (per_minute - tokens) * MINUTE / per_minute), wait
