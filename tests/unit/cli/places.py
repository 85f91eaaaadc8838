"""Which processes have to do with a place."""

import os
from contextlib import suppress
from pathlib import Path


def processes_of(place: Path) -> list[int]:
    """The processes whose command line names the place; those that have ended and are not yet collected have none."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(place).encode() in Path("/proc", name, "cmdline").read_bytes():
                found.append(int(name))
    return found
