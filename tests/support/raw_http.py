"""Concurrent HTTP/1.1 clients over raw sockets, so that the server races and not the client."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple
from urllib.parse import urlsplit

CONNECTION_ERRORS = (ConnectionError, asyncio.IncompleteReadError, OSError)
"""Errors raised when the server is gone."""


class RawResponse(NamedTuple):
    """One response as received."""

    status: int
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.body)
        return read


class RawConnection:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, message: bytes) -> RawResponse:
        self._writer.write(message)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        length = next(int(line[15:]) for line in headers if line.lower().startswith("content-length:"))
        return RawResponse(int(status.split()[1]), await self._reader.readexactly(length))

    def close(self) -> None:
        self._writer.close()


ServerUrls = str | Sequence[str]
"""URL of a server, or of several that share the load; connections are distributed among them."""


async def connect(base_url: str) -> RawConnection:
    place = urlsplit(base_url)
    assert place.hostname is not None
    return RawConnection(*await asyncio.open_connection(place.hostname, place.port))


def message(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    """Return a POST request as bytes."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def send_concurrently(
    places: ServerUrls, messages: Sequence[bytes], lines: int, on_answer: Callable[[int], None] | None = None
) -> list[RawResponse | None]:
    """Return every response in the order of the messages, over `lines` connections; None if the server was gone. All
    connections are open before the first message is sent. `on_answer` receives the number of responses so far, on the
    event loop, starting at 0."""
    urls = [places] if isinstance(places, str) else places
    return asyncio.run(_ask_all(urls, messages, lines, on_answer))


async def _ask_all(
    urls: Sequence[str], messages: Sequence[bytes], count: int, on_answer: Callable[[int], None] | None
) -> list[RawResponse | None]:
    lines = [await connect(urls[number % len(urls)]) for number in range(min(count, len(messages)))]
    heard: list[RawResponse | None] = [None] * len(messages)
    answers = itertools.count()

    def tell() -> None:
        if on_answer is not None:
            on_answer(next(answers))

    async def keep_asking(number: int) -> None:
        for place in range(number, len(messages), len(lines)):
            try:
                heard[place] = await lines[number].ask(messages[place])
            except CONNECTION_ERRORS:
                return
            tell()

    tell()
    await asyncio.gather(*(keep_asking(number) for number in range(len(lines))))
    for line in lines:
        line.close()
    return heard


class ClientProcesses:
    """Several processes that send requests at the same time, each over its own connections."""

    def __init__(self, processes: ProcessPoolExecutor, count: int, lines: int) -> None:
        self._processes = processes
        self._count = count
        self._lines = lines

    def ask(self, places: ServerUrls, messages: Sequence[bytes]) -> list[RawResponse | None]:
        """Return every response in the order of the messages; None if the server was gone."""
        count = self._count
        shares = [messages[client::count] for client in range(count)]
        heard: list[RawResponse | None] = [None] * len(messages)
        answers = self._processes.map(send_concurrently, [places] * count, shares, [self._lines] * count)
        for client, share in enumerate(answers):
            heard[client::count] = share
        return heard


@contextmanager
def clients(count: int, lines: int) -> Iterator[ClientProcesses]:
    """Start `count` client processes with `lines` connections each."""
    with ProcessPoolExecutor(count, get_context("spawn")) as processes:
        yield ClientProcesses(processes, count, lines)
