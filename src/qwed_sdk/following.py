"""`GET /events` as a client follows it: what happens, in the order of the log, across whatever breaks in between."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from qwed.words.strict import NotStrict, read_json
from qwed_sdk.errors import QWEDArgumentError, QWEDConnectionError, QWEDError, QWEDProtocolError
from qwed_sdk.records import Known
from qwed_sdk.wire import Policy, Request, in_query

SILENCE = 45.0
"""Seconds after which nobody is there any more: a server that has nothing to tell says so every 15."""
LARGEST_LINE = 1 << 20
_FIRST = -1
_LONGEST_PLACE = 20
_PAUSE = 1.0
_COME_BACK = frozenset({429, 502, 503, 504})


class Event(Known):
    """One leaf of the log, as whoever listens is told of it: it names things, and shows nothing of what was asked."""

    type: str
    index: int
    at: str
    agent_id: str | None
    activity_id: str
    event: str | None
    about: str | None
    by: str | None
    action_type: str | None
    decision: str | None
    status: str | None
    engine: str | None
    risk_level: str | None
    error: str | None
    level_before: int | None
    level_after: int | None
    success: bool | None
    self_approved: bool | None
    repeats: int | None


class Following:
    """One who listens: what they want to hear, how far they have heard, and when they give up."""

    def __init__(self, types: str | Iterable[str] | None, last: int | None, policy: Policy) -> None:
        named = [types] if isinstance(types, str) else list(types or ())
        if not all(isinstance(each, str) and each for each in named):
            raise QWEDArgumentError("`types` are names of events, such as `decision`")
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < _FIRST):
            raise QWEDArgumentError("`last` is the index of the last event that was heard, -1 before the first")
        self._types = ",".join(named) or None
        self._last = last
        self._patience = policy.timeout
        self._heard = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._data: list[bytes] = []

    def request(self) -> Request:
        """What to ask for now."""
        self._begin()
        place = {} if self._last is None else {"Last-Event-ID": str(self._last)}
        headers = {"Accept": "text/event-stream", **place}
        return Request(method="GET", path="/events", query=in_query({"type": self._types}), headers=headers)

    def read(self, chunk: bytes) -> Iterator[Event]:
        """The events that are whole by now."""
        self._heard = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LARGEST_LINE:
            raise QWEDProtocolError(f"a line of an event is longer than {LARGEST_LINE} bytes")
        for line in lines:
            name, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"id":
                self._id = value.decode(errors="replace")
            elif name == b"data":
                self._data.append(value)
            elif not line.strip():
                yield from self._told()

    def _told(self) -> Iterator[Event]:
        """The event that an empty line ends; an id alone is none, and says how far the log has come."""
        place, data = self._id, b"\n".join(self._data)
        self._id, self._data = None, []
        if place is not None:
            self._advance(place, again=not data)
        if data:
            yield Event(self._members(data))

    def _advance(self, place: str, *, again: bool) -> None:
        """Note how far the log has come: an event is told once, only that there is none may be said again."""
        if not place.removeprefix("-").isdecimal() or len(place) > _LONGEST_PLACE:
            raise QWEDProtocolError("an event whose id is no place in the log: is this a qwed server?")
        if self._last is not None and int(place) < self._last + (not again):
            raise QWEDProtocolError("an event that was told already: is this a qwed server?")
        self._last = int(place)

    def _members(self, data: bytes) -> dict[str, Any]:
        try:
            members = read_json(data, "an event")
        except NotStrict as error:
            raise QWEDProtocolError(str(error)) from None
        if not isinstance(members, dict) or members.get("index") != self._last:
            raise QWEDProtocolError("an event that is none of the protocol: is this a qwed server?")
        return members

    def pause(self, error: QWEDError | None) -> float:
        """How long to wait before going on after the last event; the error where that would not help any more."""
        ended = error or QWEDConnectionError("the server ended the stream, and did not come back", sent=True)
        if not isinstance(ended, QWEDConnectionError) and ended.status not in _COME_BACK:
            raise ended
        seconds = min(max(ended.retry_after or 0.0, _PAUSE), self._patience / 4)
        if time.monotonic() + seconds > self._heard + self._patience:
            raise ended
        return seconds
