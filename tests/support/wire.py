"""Many callers at once: bare HTTP/1.1 over sockets, so that what races is the server and not the client."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_GONE = (ConnectionError, asyncio.IncompleteReadError, OSError)


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


def asked_at_once(base_url: str, messages: Sequence[bytes], lines: int) -> list[Heard | None]:
    """Every answer in the order of the messages, over so many connections; None where the server was gone.

    All connections are open before the first message leaves.
    """
    return asyncio.run(_ask_all(base_url, messages, lines))


async def _ask_all(base_url: str, messages: Sequence[bytes], count: int) -> list[Heard | None]:
    lines = [await dial(base_url) for _ in range(min(count, len(messages)))]
    heard: list[Heard | None] = [None] * len(messages)

    async def keep_asking(number: int) -> None:
        for place in range(number, len(messages), len(lines)):
            try:
                heard[place] = await lines[number].ask(messages[place])
            except _GONE:
                return

    await asyncio.gather(*(keep_asking(number) for number in range(len(lines))))
    for line in lines:
        line.close()
    return heard
