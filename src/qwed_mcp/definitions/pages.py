"""The file that holds a book: one for each server, its owner's alone, written whole, and never begun anew by itself."""

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

from qwed.ledger.files import read_private, write_private
from qwed_mcp.definitions.wire import TooLarge, digest_of

MAX_FILE = 64 << 20
ENDING = ".tools.json"
_PATIENCE = 10.0
_BETWEEN = 0.02
_T = TypeVar("_T")
_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class BookError(RuntimeError):
    """The pins of a server cannot be used; the message says why and what to do."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One definition that clients are shown, and who said so: the first sight of the server, or a person."""

    digest: str
    by: str
    definition: dict[str, Any]


class Pages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one server."""

    server: str
    listed: bool = False
    pins: dict[str, Pin] = {}
    version: int = 1


class _Beside(msgspec.Struct, frozen=True):
    server: str
    pins: dict[str, msgspec.Raw] = {}


_decoder = msgspec.json.Decoder(Pages)
_beside_decoder = msgspec.json.Decoder(_Beside)


def place_of(directory: Path, server: str) -> Path:
    """The file of a server; BookError for a name that is no name."""
    if not _SERVER.fullmatch(server):
        raise BookError("a server's name is made of letters, digits, `-`, `.` and single `_`, 64 at most")
    return directory / f"{server}{ENDING}"


def read_pages(file: Path, server: str) -> Pages | None:
    """What the file holds, None where there is none yet; BookError where it cannot be believed."""
    pages = _read(file, _decoder)
    if pages is None or (pages.server == server and pages.version == 1 and all(map(_is_whole, pages.pins.values()))):
        return pages
    raise _damaged(file)


def names_beside(file: Path) -> Iterator[tuple[str, str]]:
    """The server and the name of every tool that is pinned in the books beside this one."""
    for other in sorted(file.parent.glob(f"*{ENDING}")):
        book = _read(other, _beside_decoder) if other != file else None
        if book is not None:
            yield from ((book.server, name) for name in book.pins)


def _read(file: Path, decoder: msgspec.json.Decoder[_T]) -> _T | None:
    try:
        if file.lstat().st_size > MAX_FILE or file.is_symlink():
            raise BookError(f"{file} is no book of pins: {_REMEDY}")
        return decoder.decode(read_private(file))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise BookError(f"{file} cannot be read: {problem}") from problem
    except (msgspec.DecodeError, RecursionError):
        raise _damaged(file) from None


def _damaged(file: Path) -> BookError:
    return BookError(f"{file} is damaged: {_REMEDY}")


_REMEDY = "restore it from a backup, or remove it to pin the server's tools anew as they are now"


def _is_whole(pin: Pin) -> bool:
    try:
        return digest_of(pin.definition) == pin.digest
    except TooLarge:
        return False


def write_pages(file: Path, pages: Pages) -> None:
    """Keep the pages, or leave what was there; BookError where neither could be made sure of."""
    data = msgspec.json.encode(pages)
    if len(data) > MAX_FILE:
        raise BookError(f"{file} would be too large: the server changes its tools too often, remove it to begin anew")
    try:
        write_private(file, data)
    except OSError as problem:
        raise BookError(f"{file} cannot be written: {problem}") from problem


def private(directory: Path) -> None:
    """Make the directory, or make sure that nobody else may put anything there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as problem:
        raise BookError(f"{directory} cannot be used: {problem}") from problem
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise BookError(f"{directory} is open to others: run chmod 700 on it as its owner")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Alone with the file among all processes; BookError where another one does not let go."""
    try:
        handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise BookError(f"{file}.lock cannot be opened: {problem}") from problem
    try:
        _take(handle, file)
        yield
    finally:
        os.close(handle)


def _take(handle: int, file: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise BookError(f"{file} is in use by another process") from None
        time.sleep(_BETWEEN)
