"""Many callers at once: bare HTTP/1.1 over sockets, so that what races is the server and not the client."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple
from urllib.parse import urlsplit

GONE = (ConnectionError, asyncio.IncompleteReadError, OSError)
"""What is raised where whoever should answer is no more."""


class Heard(NamedTuple):
    """One answer as it stood on the wire."""

    status: int
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.body)
        return read


class Line:
    """One kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, message: bytes) -> Heard:
        self._writer.write(message)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        length = next(int(line[15:]) for line in headers if line.lower().startswith("content-length:"))
        return Heard(int(status.split()[1]), await self._reader.readexactly(length))

    def close(self) -> None:
        self._writer.close()


Places = str | Sequence[str]
"""Where a server listens, or several that are one to whoever asks: connections are shared out among them."""


async def dial(base_url: str) -> Line:
    place = urlsplit(base_url)
    assert place.hostname is not None
    return Line(*await asyncio.open_connection(place.hostname, place.port))


def message(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    """A POST as bytes."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def asked_at_once(
    places: Places, messages: Sequence[bytes], lines: int, on_answer: Callable[[int], None] | None = None
) -> list[Heard | None]:
    """Every answer in the order of the messages, over so many connections; None where the server was gone.

    All connections are open before the first message leaves. `on_answer` is told how many answers have come so far,
    on the event loop and from none on.
    """
    urls = [places] if isinstance(places, str) else places
    return asyncio.run(_ask_all(urls, messages, lines, on_answer))


async def _ask_all(
    urls: Sequence[str], messages: Sequence[bytes], count: int, on_answer: Callable[[int], None] | None
) -> list[Heard | None]:
    lines = [await dial(urls[number % len(urls)]) for number in range(min(count, len(messages)))]
    heard: list[Heard | None] = [None] * len(messages)
    answers = itertools.count()

    def tell() -> None:
        if on_answer is not None:
            on_answer(next(answers))

    async def keep_asking(number: int) -> None:
        for place in range(number, len(messages), len(lines)):
            try:
                heard[place] = await lines[number].ask(messages[place])
            except GONE:
                return
            tell()

    tell()
    await asyncio.gather(*(keep_asking(number) for number in range(len(lines))))
    for line in lines:
        line.close()
    return heard


class Clients:
    """Several processes that ask at the same time, each over connections of its own."""

    def __init__(self, processes: ProcessPoolExecutor, count: int, lines: int) -> None:
        self._processes = processes
        self._count = count
        self._lines = lines

    def ask(self, places: Places, messages: Sequence[bytes]) -> list[Heard | None]:
        """Every answer in the order of the messages; None where the server was gone."""
        count = self._count
        shares = [messages[client::count] for client in range(count)]
        heard: list[Heard | None] = [None] * len(messages)
        answers = self._processes.map(asked_at_once, [places] * count, shares, [self._lines] * count)
        for client, share in enumerate(answers):
            heard[client::count] = share
        return heard


@contextmanager
def clients(count: int, lines: int) -> Iterator[Clients]:
    """So many client processes, with so many connections each."""
    with ProcessPoolExecutor(count, get_context("spawn")) as processes:
        yield Clients(processes, count, lines)
