"""Polling for a condition without a notification."""

import time
from collections.abc import Callable


def wait_for_condition(what: Callable[[], object], seconds: float = 30) -> None:
    """Poll until the condition holds; raise AssertionError after a timeout."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)
