"""Files that only their owner may read, written atomically."""

import os
import stat
from pathlib import Path


def read_private(file: Path) -> bytes:
    """Return the content of the file; raise PermissionError if others can read it."""
    mode = file.stat().st_mode
    if mode & 0o077:
        raise PermissionError(f"{file} is readable by others (mode {mode & 0o777:o}): run chmod 600 on it")
    if not stat.S_ISREG(mode):
        # Reading a pipe would block for ever.
        raise PermissionError(f"{file} is not a regular file: restore it from a backup")
    return file.read_bytes()


def write_private(file: Path, data: bytes) -> None:
    """Write the file atomically with mode 0600."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.new")
    # A file left by a crash, or planted, may have another mode or be a link.
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    unfinished.rename(file)
    _sync_directory(file.parent)


def _sync_directory(directory: Path) -> None:
    """Sync a directory, to make a rename durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
