"""For what nobody tells when it is so."""

import time
from collections.abc import Callable


def wait_for(what: Callable[[], object], seconds: float = 30) -> None:
    """Look until it is so; AssertionError after a while."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)
