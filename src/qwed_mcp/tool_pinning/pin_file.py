"""Pin file of a server: private to its owner, written atomically, and never recreated automatically."""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qwed.model.private_files import read_private, write_private
from qwed_mcp.tool_pinning.digest import DefinitionTooLargeError, digest_of

MAX_FILE = 64 << 20
SUFFIX = ".tools.json"
LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02
_T = TypeVar("_T")
_SERVER_NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class PinFileError(RuntimeError):
    """The pins of a server cannot be used; the message says why and what to do."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Definition that clients may see, and who accepted it: the first listing or a person."""

    digest: str
    by: str
    definition: dict[str, Any]


class PinFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a server's pin file."""

    server: str
    listed: bool = False
    pins: dict[str, Pin] = {}
    version: int = 1


class _OtherPinFile(msgspec.Struct, frozen=True):
    server: str
    pins: dict[str, msgspec.Raw] = {}


_decoder = msgspec.json.Decoder(PinFile)
_other_decoder = msgspec.json.Decoder(_OtherPinFile)


def pin_file_path(directory: Path, server: str) -> Path:
    """Return the pin file of a server; raise PinFileError for an invalid name."""
    if not _SERVER_NAME.fullmatch(server):
        raise PinFileError("a server's name is made of letters, digits, `-`, `.` and single `_`, 64 at most")
    return directory / f"{server}{SUFFIX}"


def read_pin_file(file: Path, server: str) -> PinFile | None:
    """Read the pin file, or return None if there is none; raise PinFileError if it is damaged."""
    content = _read(file, _decoder)
    if content is None or (
        content.server == server and content.version == 1 and all(map(_has_valid_digest, content.pins.values()))
    ):
        return content
    raise _damaged_error(file)


def other_pinned_names(file: Path) -> Iterator[tuple[str, str]]:
    """Yield server and name of every tool pinned in the other files of the directory."""
    for path in sorted(file.parent.glob(f"*{SUFFIX}")):
        content = _read(path, _other_decoder) if path != file else None
        if content is not None:
            yield from ((content.server, name) for name in content.pins)


def _read(file: Path, decoder: msgspec.json.Decoder[_T]) -> _T | None:
    try:
        if file.lstat().st_size > MAX_FILE or file.is_symlink():
            raise PinFileError(f"{file} is not a pin file: {_REMEDY}")
        return decoder.decode(read_private(file))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise PinFileError(f"{file} cannot be read: {problem}") from problem
    except (msgspec.DecodeError, RecursionError):
        raise _damaged_error(file) from None


def _damaged_error(file: Path) -> PinFileError:
    return PinFileError(f"{file} is damaged: {_REMEDY}")


_REMEDY = "restore it from a backup, or remove it to pin the server's current tools"


def _has_valid_digest(pin: Pin) -> bool:
    try:
        return digest_of(pin.definition) == pin.digest
    except DefinitionTooLargeError:
        return False


def write_pin_file(file: Path, content: PinFile) -> None:
    """Write the file atomically; raise PinFileError if that fails."""
    data = msgspec.json.encode(content)
    if len(data) > MAX_FILE:
        raise PinFileError(
            f"{file} would be too large: the server changes its tools too often, remove it to start over"
        )
    try:
        write_private(file, data)
    except OSError as problem:
        raise PinFileError(f"{file} cannot be written: {problem}") from problem


def ensure_private_directory(directory: Path) -> None:
    """Create the directory, or check that only its owner can access it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as problem:
        raise PinFileError(f"{directory} cannot be used: {problem}") from problem
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise PinFileError(f"{directory} is open to others: run chmod 700 on it as its owner")


@contextmanager
def lock_pin_file(file: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file among processes; raise PinFileError after a timeout."""
    try:
        handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise PinFileError(f"{file}.lock cannot be opened: {problem}") from problem
    try:
        _acquire_lock(handle, file)
        yield
    finally:
        os.close(handle)


def _acquire_lock(handle: int, file: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise PinFileError(f"{file} is in use by another process") from None
        time.sleep(_POLL_SECONDS)
