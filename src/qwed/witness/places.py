"""Where heads are published: the standard output, a file that only grows, a receiver on the network."""

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
from qwed.settings import Settings, SettingsError
from qwed.store.protocol import Delivery
from qwed.webhooks.address import refuse_url
from qwed.webhooks.sender import Sender
from qwed.witness.lines import NAMED
from qwed.words.clock import Clock
from qwed.words.home import from_home

STDOUT, FILE, HTTPS = "stdout", "file", "https"
KINDS = (STDOUT, FILE, HTTPS)
_FILE = "file:"
EVENT = "head"
AT_ONCE = 8
"""Heads on their way to one receiver."""
READER_SECONDS = 1.0
"""How long whoever reads the standard output may keep a line waiting."""

_encode = msgspec.json.Encoder().encode


class Outcome(NamedTuple):
    """How many of the heads, from the first on, were published, and what stopped the rest."""

    published: int
    why: str | None = None


class Place(Protocol):
    """One of them; `name` is for the log, and holds no secret."""

    kind: str
    name: str

    async def publish(self, heads: Sequence[Head]) -> Outcome:
        """Publish these; a failure is an outcome."""


def require_places(settings: Settings) -> None:
    """SettingsError where the settings name a place that cannot be used."""
    for text in settings.witness:
        why = None if text == STDOUT else _refuse(text, settings)
        if why is not None:
            raise SettingsError(f"QWED_WITNESS: `{text}` cannot be used: {why}")


def _refuse(text: str, settings: Settings) -> str | None:
    if not text.startswith(_FILE):
        return refuse_url(text, settings.webhook_allow_private)
    inside = _file_of(text).resolve().is_relative_to(settings.directory.resolve())
    return "it lies in the data directory, and whoever changes the one changes the other" if inside else None


def _file_of(text: str) -> Path:
    return from_home(text.removeprefix(_FILE))


def places_of(settings: Settings, clock: Clock) -> list[Place]:
    """The places the settings name, each once."""
    require_places(settings)
    return [_place(text, settings, clock) for text in dict.fromkeys(settings.witness)]


def _place(text: str, settings: Settings, clock: Clock) -> Place:
    if text == STDOUT:
        return StandardOutput()
    if text.startswith(_FILE):
        return WitnessFile(_file_of(text))
    return Receiver(text, Sender(allow_private=settings.webhook_allow_private), clock)


class StandardOutput:
    """One line for each head, between whatever else the process prints."""

    kind = STDOUT
    name = STDOUT

    def __init__(self, descriptor: int | None = None) -> None:
        # A process that was started without one may have the database open under that number.
        self._descriptor = descriptor if descriptor is not None else _standard_output()

    async def publish(self, heads: Sequence[Head]) -> Outcome:
        if self._descriptor is None:
            return Outcome(0, "there is no standard output")
        for count, head in enumerate(heads):
            why = await _say(self._descriptor, _encode({NAMED: head}) + b"\n")
            if why is not None:
                return Outcome(count, why)
        return Outcome(len(heads))


def _standard_output() -> int | None:
    return None if sys.__stdout__ is None else sys.__stdout__.fileno()


async def _say(descriptor: int, line: bytes) -> str | None:
    """None, or why not. Never through a buffer: a reader who stopped would hold up the end of the process."""
    try:
        if not await _has_room(descriptor):
            return "nobody reads the standard output"
        # A pipe that has room takes so short a line whole.
        os.write(descriptor, line)
    except OSError as error:
        return f"the standard output cannot be written: {error.strerror}"
    return None


async def _has_room(descriptor: int) -> bool:
    for wait in (0.0, READER_SECONDS):
        await asyncio.sleep(wait)
        if select.select([], [descriptor], [], 0)[1]:
            return True
    return False


class WitnessFile:
    """A file to which heads are appended, and which is never written anew. Opened each time, so it may be moved."""

    kind = FILE

    def __init__(self, file: Path) -> None:
        self.file = file
        self.name = f"file:{file}"

    async def publish(self, heads: Sequence[Head]) -> Outcome:
        try:
            append(self.file, b"".join(_encode(head) + b"\n" for head in heads))
        except OSError as error:
            return Outcome(0, error.strerror or str(error))
        return Outcome(len(heads))


def append(file: Path, lines: bytes) -> None:
    """Add the lines durably; a file that is new is readable by its owner alone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    handle = os.open(file, flags, 0o600)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        # A crash, or a full disk, may have left half a line.
        torn = found.st_size > 0 and os.pread(handle, 1, found.st_size - 1) != b"\n"
        _write(handle, b"\n" + lines if torn else lines)
        os.fsync(handle)
    finally:
        os.close(handle)
    if found.st_size == 0:
        _sync_directory(file.parent)


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _sync_directory(directory: Path) -> None:
    # Not every file system can; the lines themselves are safe.
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Receiver:
    """A URL that is sent each head as a notice, by the rules of webhooks. The head is its own signature."""

    kind = HTTPS

    def __init__(self, url: str, sender: Sender, clock: Clock) -> None:
        parts = urlsplit(url)
        # What follows the host may hold the secret of whoever receives it.
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._sender = sender
        self._clock = clock

    async def publish(self, heads: Sequence[Head]) -> Outcome:
        done = 0
        for begin in range(0, len(heads), AT_ONCE):
            some = heads[begin : begin + AT_ONCE]
            failures = await asyncio.gather(*(self._send(head) for head in some))
            why = next((failure for failure in failures if failure is not None), None)
            if why is not None:
                return Outcome(done + failures.index(why), why)
            done += len(some)
        return Outcome(done)

    async def _send(self, head: Head) -> str | None:
        now = self._clock.now()
        notice_id = f"head_{head.log_id}_{head.size}"
        body = _encode(head).decode()
        return await self._sender.send(Delivery(notice_id, head.log_id, self._url, "", EVENT, body, now, 0), now)
