"""The processes that another one has started, and their end."""

import os
import select
from contextlib import suppress
from pathlib import Path


def children(process: int) -> set[int]:
    """Every process below one."""
    found: set[int] = set()
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        # A thread may be gone again, and its children are another's.
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text().split()):
                found |= {child} | children(child)
    return found


def begun(process: int) -> list[int]:
    """Handles of the processes below, once there are some."""
    for _ in range(1_000_000):
        if found := children(process):
            return [os.pidfd_open(each) for each in found]
        os.sched_yield()
    raise AssertionError("nothing was started")


def dead(handles: list[int]) -> None:
    """Wait until they all are."""
    for handle in handles:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        assert waiting.poll(60_000)
        os.close(handle)
