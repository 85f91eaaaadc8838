"""Someone who listens to `/events`, written from the HTML standard: lines, fields, and an event at each empty line."""

import json
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx


class Heard(NamedTuple):
    """One event as it was dispatched."""

    id: int
    type: str
    data: dict[str, Any]


class Ear:
    """A stream that is open from when it is made until it is closed; reading it waits."""

    def __init__(self, base_url: str, key: str, last: int | None = None, **query: str) -> None:
        # Without certificates, which nobody shows here: reading them takes longer than all the rest.
        self._client = httpx.Client(base_url=base_url, timeout=60, verify=False, trust_env=False)
        headers = {"X-API-Key": key} | ({} if last is None else {"Last-Event-ID": str(last)})
        request = self._client.build_request("GET", "/events", headers=headers, params=query)
        self.response = self._client.send(request, stream=True)
        self.last_id = "" if last is None else str(last)
        self.retry: int | None = None
        self.text = ""
        """All that came."""
        self._lines = self._read_lines() if self.response.status_code == 200 else iter(())
        if self.response.status_code == 200:
            # The first block tells where the stream begins; it holds no event.
            assert self._dispatched() is None
        else:
            self.response.read()

    def _read_lines(self) -> Iterator[str]:
        for line in self.response.iter_lines():
            self.text += line + "\n"
            yield line

    def _dispatched(self) -> Heard | None:
        """What the next block holds; StopIteration where the stream has ended."""
        kind, data = "message", []
        while line := next(self._lines):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif name == "retry":
                self.retry = int(value)
            else:
                assert name == "", line
        return Heard(int(self.last_id), kind, json.loads("\n".join(data))) if data else None

    def __iter__(self) -> Iterator[Heard]:
        """Every event until the server ends the stream; a stream that breaks off raises."""
        while True:
            try:
                heard = self._dispatched()
            except StopIteration:
                return
            if heard is not None:
                yield heard

    def hear(self, count: int) -> list[Heard]:
        """So many events, as they come."""
        return [event for _, event in zip(range(count), self, strict=False)]

    def until(self, last: int) -> list[Heard]:
        """Every event up to the one with this id, which must come."""
        found: list[Heard] = []
        for event in self:
            found.append(event)
            if event.id >= last:
                return found
        raise AssertionError(f"the stream ended before {last}: {found}")

    def close(self) -> None:
        """Hang up."""
        self.response.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
