"""Processes that use a directory."""

import os
from contextlib import suppress
from pathlib import Path


def processes_of(path: Path) -> list[int]:
    """Return the ids of processes whose command line names the path; a zombie has none."""
    pids = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(path).encode() in Path("/proc", name, "cmdline").read_bytes():
                pids.append(int(name))
    return pids
