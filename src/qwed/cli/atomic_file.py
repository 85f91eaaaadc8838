"""Atomic writing of output files."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


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
    temporary = file.with_name(f".qwed.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
