"""Client of `/events`, written from the HTML standard: lines, fields, and an event at each empty line."""

import json
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx


class ServerSentEvent(NamedTuple):
    """One dispatched event."""

    id: int
    type: str
    data: dict[str, Any]


class SseClient:
    """Event stream that is open from construction until `close`; reading blocks."""

    def __init__(self, base_url: str, key: str, last: int | None = None, **query: str) -> None:
        # No TLS here, and loading the certificates takes longer than all the rest.
        self._client = httpx.Client(base_url=base_url, timeout=60, verify=False, trust_env=False)
        headers = {"X-API-Key": key} | ({} if last is None else {"Last-Event-ID": str(last)})
        request = self._client.build_request("GET", "/events", headers=headers, params=query)
        self.response = self._client.send(request, stream=True)
        self.last_id = "" if last is None else str(last)
        self.retry: int | None = None
        self.text = ""
        """Everything received so far."""
        self._lines = self._read_lines() if self.response.status_code == 200 else iter(())
        if self.response.status_code == 200:
            # The first block says where the stream begins; it contains no event.
            assert self._dispatched() is None
        else:
            self.response.read()

    def _read_lines(self) -> Iterator[str]:
        for line in self.response.iter_lines():
            self.text += line + "\n"
            yield line

    def _dispatched(self) -> ServerSentEvent | None:
        """Return the event of the next block, or None; raise StopIteration at the end of the stream."""
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
        return ServerSentEvent(int(self.last_id), kind, json.loads("\n".join(data))) if data else None

    def __iter__(self) -> Iterator[ServerSentEvent]:
        """Yield every event until the server ends the stream; a broken stream raises."""
        while True:
            try:
                heard = self._dispatched()
            except StopIteration:
                return
            if heard is not None:
                yield heard

    def hear(self, count: int) -> list[ServerSentEvent]:
        """Return the next `count` events."""
        return [event for _, event in zip(range(count), self, strict=False)]

    def until(self, last: int) -> list[ServerSentEvent]:
        """Return every event up to the one with this id, which must come."""
        events: list[ServerSentEvent] = []
        for event in self:
            events.append(event)
            if event.id >= last:
                return events
        raise AssertionError(f"the stream ended before {last}: {events}")

    def close(self) -> None:
        """Close the stream."""
        self.response.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
