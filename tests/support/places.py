"""Where tests keep what nobody looks for on a disk: a server waits for a disk at every decision, and not for memory.

A process that is killed leaves the same behind in both; only a machine that loses its power would not.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 1 << 30


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A directory in memory, or in the other place where there is no such memory or not enough."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ENOUGH
    with tempfile.TemporaryDirectory(prefix="qwed-tests-", dir=MEMORY if roomy else otherwise) as made:
        yield Path(made)


def room_in(place: Path) -> Path:
    """A new directory that is empty."""
    return Path(tempfile.mkdtemp(dir=place))
