"""Temporary directories in memory: a server waits for the disk at every decision, and not for memory.

A killed process leaves the same files in both; only a power failure differs.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 1 << 30


@contextmanager
def memory_directory(otherwise: Path) -> Iterator[Path]:
    """Yield a directory in memory, or below the given one if there is not enough memory."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ENOUGH
    with tempfile.TemporaryDirectory(prefix="qwed-tests-", dir=MEMORY if roomy else otherwise) as made:
        yield Path(made)


def make_directory_in(place: Path) -> Path:
    """Create an empty directory."""
    return Path(tempfile.mkdtemp(dir=place))
