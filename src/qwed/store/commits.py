"""What the writer did, for whoever watches: how long commits took, how much was in them, which could not be made."""

import time

from qwed.words.timing import Timing


class Commits:
    """Numbers that only grow, kept by the one thread that writes."""

    def __init__(self) -> None:
        self.timing = Timing()
        self.leaves = 0
        self.failed = 0

    def count(self, leaves: int, since: float) -> None:
        """So many leaves are durable, which was begun at that moment of `time.monotonic`."""
        self.leaves += leaves
        self.timing.count(time.monotonic() - since)
