"""Files that are written atomically; private ones may be read by their owner only."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def read_private(file: Path) -> bytes:
    """Return the content of the file; raise PermissionError if others can read it."""
    mode = file.stat().st_mode
    if mode & 0o077:
        raise PermissionError(f"{file} is readable by others (mode {mode & 0o777:o}): run chmod 600 on it")
    if not stat.S_ISREG(mode):
        # Reading a pipe would block for ever.
        raise PermissionError(f"{file} is not a regular file: restore it from a backup")
    return file.read_bytes()


def write_private(file: Path, data: bytes, *, durable: bool = True) -> None:
    """Write the file atomically with mode 0600; unless `durable`, a power cut may lose it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.new")
    # A file left by a crash, or planted, may have another mode or be a link.
    unfinished.unlink(missing_ok=True)
    with _create(unfinished, 0o600, durable=durable) as out:
        out.write(data)
    unfinished.rename(file)
    if durable:
        _sync_directory(file.parent)


@contextmanager
def atomic_file(path: Path, *, private: bool) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces the file at the end; on failure the old file stays.

    A private file is readable by its owner only. Devices and pipes are written directly. Raises OSError if the file
    cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    file = path.resolve()
    unfinished = file.with_name(f".qwed.{os.urandom(8).hex()}")
    try:
        with _create(unfinished, 0o600 if private else 0o666) as stream:
            yield stream
        unfinished.rename(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _create(file: Path, mode: int, *, durable: bool = True) -> Iterator[BinaryIO]:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as out:
        yield out
        if durable:
            out.flush()
            os.fsync(out.fileno())


def _sync_directory(directory: Path) -> None:
    """Sync a directory, to make a rename durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
