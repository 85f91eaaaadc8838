"""Files that only their owner may read, written whole or not at all."""

import os
import stat
from pathlib import Path


def read_private(file: Path) -> bytes:
    """What the file holds; PermissionError where others could have read it too."""
    mode = file.stat().st_mode
    if mode & 0o077:
        raise PermissionError(f"{file} is readable by others (mode {mode & 0o777:o}): run chmod 600 on it")
    if not stat.S_ISREG(mode):
        # A pipe would be waited for without end.
        raise PermissionError(f"{file} is no file: restore it from a backup")
    return file.read_bytes()


def write_private(file: Path, data: bytes) -> None:
    """Put the data into the file with mode 0600: a crash leaves what was there before, or all of it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.new")
    # What a crash has left there, or somebody has put there, may have another mode or lead elsewhere.
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    unfinished.rename(file)
    _sync_directory(file.parent)


def _sync_directory(directory: Path) -> None:
    """A rename is durable when its directory is."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
