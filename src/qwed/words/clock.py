"""Time as the kernel sees it, so that tests can hold it still and turn it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

HOUR = 3_600
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` dates records and budget windows; `monotonic` measures leases and never jumps."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


def rfc3339(seconds: float) -> str:
    """UTC with Z, to the millisecond where there is one."""
    moment = datetime.fromtimestamp(seconds, UTC)
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=spec).removesuffix("+00:00") + "Z"
