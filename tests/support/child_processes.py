"""Child processes of a process, and waiting for their end."""

import os
import select
from contextlib import suppress
from pathlib import Path


def children(process: int) -> set[int]:
    """Return all descendants of a process."""
    descendants: set[int] = set()
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        # A thread may have exited; its children then belong to another one.
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text().split()):
                descendants |= {child} | children(child)
    return descendants


def wait_for_children(process: int) -> list[int]:
    """Return pidfds of the descendants once there are some."""
    for _ in range(1_000_000):
        if descendants := children(process):
            return [os.pidfd_open(child) for child in descendants]
        os.sched_yield()
    raise AssertionError("nothing was started")


def wait_until_dead(handles: list[int]) -> None:
    """Wait until all processes have ended, and close their pidfds."""
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(60_000)
        os.close(handle)
