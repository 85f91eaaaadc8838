"""Publishers of log heads: standard output, an append-only file, an HTTPS receiver."""

import asyncio
import os
import select
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from qwed.ledger.sequencer import Head
from qwed.model.clock import Clock
from qwed.model.defaults import expand_home
from qwed.settings import Settings, SettingsError
from qwed.store.protocol import Delivery
from qwed.webhooks.sender import Sender
from qwed.webhooks.url_policy import url_error
from qwed.witness.head_file import HEAD_FIELD

STDOUT, FILE, HTTPS = "stdout", "file", "https"
KINDS = (STDOUT, FILE, HTTPS)
_FILE = "file:"
EVENT = "head"
MAX_CONCURRENT = 8
"""Concurrent requests to one receiver."""
STDOUT_WAIT_SECONDS = 1.0
"""Time to wait until standard output accepts a line."""

_encode = msgspec.json.Encoder().encode


class PublishResult(NamedTuple):
    """Number of heads published, from the first on, and the error that stopped the rest."""

    published: int
    error: str | None = None


class Publisher(Protocol):
    """Publisher of heads; `name` is for the log and contains no secret."""

    kind: str
    name: str

    async def publish(self, heads: Sequence[Head]) -> PublishResult:
        """Publish the heads; a failure is returned, not raised."""


def require_publishers(settings: Settings) -> None:
    """Raise SettingsError if the settings name a publisher that cannot be used."""
    for text in settings.witness:
        error = None if text == STDOUT else _publisher_error(text, settings)
        if error is not None:
            raise SettingsError(f"QWED_WITNESS: `{text}` cannot be used: {error}")


def _publisher_error(text: str, settings: Settings) -> str | None:
    if not text.startswith(_FILE):
        return url_error(text, settings.webhook_allow_private)
    inside = _file_of(text).resolve().is_relative_to(settings.directory.resolve())
    return "it is in the data directory, so both could be changed together: use another directory" if inside else None


def _file_of(text: str) -> Path:
    return expand_home(text.removeprefix(_FILE))


def create_publishers(settings: Settings, clock: Clock) -> list[Publisher]:
    """Return the publishers that the settings name, without duplicates."""
    require_publishers(settings)
    return [_create_publisher(text, settings, clock) for text in dict.fromkeys(settings.witness)]


def _create_publisher(text: str, settings: Settings, clock: Clock) -> Publisher:
    if text == STDOUT:
        return StdoutPublisher()
    if text.startswith(_FILE):
        return FilePublisher(_file_of(text))
    return HttpsPublisher(text, Sender(allow_private=settings.webhook_allow_private), clock)


class StdoutPublisher:
    """Prints one line per head between the other output of the process."""

    kind = STDOUT
    name = STDOUT

    def __init__(self, descriptor: int | None = None) -> None:
        # In a process started without standard output, descriptor 1 may be the database.
        self._descriptor = descriptor if descriptor is not None else _standard_output()

    async def publish(self, heads: Sequence[Head]) -> PublishResult:
        if self._descriptor is None:
            return PublishResult(0, "the process has no standard output")
        for count, head in enumerate(heads):
            error = await _write_line(self._descriptor, _encode({HEAD_FIELD: head}) + b"\n")
            if error is not None:
                return PublishResult(count, error)
        return PublishResult(len(heads))


def _standard_output() -> int | None:
    return None if sys.__stdout__ is None else sys.__stdout__.fileno()


async def _write_line(descriptor: int, line: bytes) -> str | None:
    """Write a line; return None or the error. Unbuffered: at exit, a buffered write could block on a stalled reader."""
    try:
        if not await _is_writable(descriptor):
            return "standard output is not being read"
        # A writable pipe accepts a line this short completely.
        os.write(descriptor, line)
    except OSError as error:
        return f"the standard output cannot be written: {error.strerror}"
    return None


async def _is_writable(descriptor: int) -> bool:
    for wait in (0.0, STDOUT_WAIT_SECONDS):
        await asyncio.sleep(wait)
        if select.select([], [descriptor], [], 0)[1]:
            return True
    return False


class FilePublisher:
    """Appends heads to a file. It is opened each time, so it may be moved."""

    kind = FILE

    def __init__(self, file: Path) -> None:
        self.file = file
        self.name = f"file:{file}"

    async def publish(self, heads: Sequence[Head]) -> PublishResult:
        try:
            append_lines(self.file, b"".join(_encode(head) + b"\n" for head in heads))
        except OSError as error:
            return PublishResult(0, error.strerror or str(error))
        return PublishResult(len(heads))


def append_lines(file: Path, lines: bytes) -> None:
    """Append the lines durably; a new file is readable by its owner only."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    handle = os.open(file, flags, 0o600)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        # A crash or a full disk may have left an incomplete line.
        is_torn = status.st_size > 0 and os.pread(handle, 1, status.st_size - 1) != b"\n"
        _write(handle, b"\n" + lines if is_torn else lines)
        os.fsync(handle)
    finally:
        os.close(handle)
    if status.st_size == 0:
        _sync_directory(file.parent)


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _sync_directory(directory: Path) -> None:
    # Not every file system supports it; the lines themselves are synced.
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class HttpsPublisher:
    """Sends each head to a URL as a webhook notice. The head carries its own signature."""

    kind = HTTPS

    def __init__(self, url: str, sender: Sender, clock: Clock) -> None:
        parts = urlsplit(url)
        # The path and query may contain a secret of the receiver.
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._sender = sender
        self._clock = clock

    async def publish(self, heads: Sequence[Head]) -> PublishResult:
        published = 0
        for begin in range(0, len(heads), MAX_CONCURRENT):
            chunk = heads[begin : begin + MAX_CONCURRENT]
            failures = await asyncio.gather(*(self._send(head) for head in chunk))
            error = next((failure for failure in failures if failure is not None), None)
            if error is not None:
                return PublishResult(published + failures.index(error), error)
            published += len(chunk)
        return PublishResult(published)

    async def _send(self, head: Head) -> str | None:
        now = self._clock.now()
        notice_id = f"head_{head.log_id}_{head.size}"
        body = _encode(head).decode()
        return await self._sender.send(Delivery(notice_id, head.log_id, self._url, "", EVENT, body, now, 0), now)
