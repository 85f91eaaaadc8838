"""Wall clock and monotonic clock, replaceable in tests."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

HOUR = 3_600
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Clock:
    """Time source: `now` dates records and budget windows, `monotonic` measures leases."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


def rfc3339(seconds: float) -> str:
    """Format a timestamp as RFC 3339 in UTC, with milliseconds if it has any."""
    moment = datetime.fromtimestamp(seconds, UTC)
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=spec).removesuffix("+00:00") + "Z"
