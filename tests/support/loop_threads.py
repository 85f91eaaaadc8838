"""Threads of background jobs, for tests that look whether one has ended."""

import threading
from typing import Any


def thread_of(job: Any) -> threading.Thread:
    """Return the thread that a job runs in."""
    thread: threading.Thread = job._thread
    return thread
