"""Thread pool that parses large messages, shared fairly between senders."""

from qwed.fair_executor import FairExecutor

LARGE_BYTES = 8_192
"""Size from which a message is parsed in a thread; smaller ones take a few milliseconds whatever they contain."""
THREADS = 2


def new_parsing_pool(threads: int = THREADS) -> FairExecutor:
    """Return a pool that runs messages below LARGE_BYTES inline."""
    return FairExecutor(threads, "a2a-parse", inline_below=LARGE_BYTES)
