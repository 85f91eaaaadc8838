"""Files that a command writes: whole, or not there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(named: Path, *, private: bool) -> Iterator[BinaryIO]:
    """A place to write to that becomes the file at the end; until then, and where that fails, stays what was there.

    A private one can be read by its owner alone. A device or a pipe is written to as it is. OSError where it cannot be
    written.
    """
    if named.exists() and not named.is_file():
        with named.open("wb") as stream:
            yield stream
        return
    file = named.resolve()
    unfinished = file.with_name(f".qwed.{secrets.token_hex(8)}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
