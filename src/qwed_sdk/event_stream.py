"""Client side of `GET /events`: parses server-sent events and resumes after a broken connection."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from qwed.model.strict_json import StrictJsonError, parse_strict_json
from qwed_sdk.errors import QWEDArgumentError, QWEDConnectionError, QWEDError, QWEDProtocolError
from qwed_sdk.http_request import Request, RetryPolicy, query_params
from qwed_sdk.models import ApiRecord

SILENCE_TIMEOUT = 45.0
"""Seconds without data after which the connection counts as dead; an idle server sends a comment every 15."""
MAX_LINE_BYTES = 1 << 20
_BEFORE_FIRST = -1
_MAX_INDEX_CHARS = 20
_RECONNECT_SECONDS = 1.0
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})


class Event(ApiRecord):
    """Event of the organisation's log. It contains ids and states, and no content of an action."""

    type: str
    """Type, such as `decision` or `approval`."""
    index: int
    """Index of its entry in the log."""
    at: str
    """Time."""
    agent_id: str | None
    """Id of the agent."""
    activity_id: str
    """Id of the activity."""
    event: str | None
    """Kind of the change."""
    about: str | None
    """Id of what the event is about."""
    by: str | None
    """Id of the key, or what caused it."""
    action_type: str | None
    """Type of the action."""
    decision: str | None
    """Decision."""
    status: str | None
    """Status of the verification."""
    engine: str | None
    """Engine that verified it."""
    risk_level: str | None
    """Risk of the action."""
    error: str | None
    """Error code of a refusal."""
    level_before: int | None
    """Trust level before."""
    level_after: int | None
    """Trust level after."""
    success: bool | None
    """Recorded outcome of an execution."""
    self_approved: bool | None
    """True if the key that requested it also approved it."""
    repeats: int | None
    """Further refusals that the entry stands for."""


class EventReader:
    """Parser and resume position of one event stream."""

    def __init__(self, types: str | Iterable[str] | None, last: int | None, policy: RetryPolicy) -> None:
        named = [types] if isinstance(types, str) else list(types or ())
        if not all(isinstance(name, str) and name for name in named):
            raise QWEDArgumentError("`types` must be names of events, such as `decision`")
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < _BEFORE_FIRST):
            raise QWEDArgumentError("`last` must be the index of the last received event, or -1 before the first")
        self._types = ",".join(named) or None
        self._last = last
        self._timeout = policy.timeout
        self._last_data_at = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._data: list[bytes] = []

    def request(self) -> Request:
        """Return the request that continues after the last event."""
        self._begin()
        resume = {} if self._last is None else {"Last-Event-ID": str(self._last)}
        headers = {"Accept": "text/event-stream", **resume}
        return Request(method="GET", path="/events", query=query_params({"type": self._types}), headers=headers)

    def read(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that are complete with this chunk."""
        self._last_data_at = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise QWEDProtocolError(f"a line of an event is longer than {MAX_LINE_BYTES} bytes")
        for line in lines:
            name, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"id":
                self._id = value.decode(errors="replace")
            elif name == b"data":
                self._data.append(value)
            elif not line.strip():
                yield from self._end_event()

    def _end_event(self) -> Iterator[Event]:
        """Yield the event that an empty line ends. An id without data only reports the position in the log."""
        index, data = self._id, b"\n".join(self._data)
        self._id, self._data = None, []
        if index is not None:
            self._advance(index, repeatable=not data)
        if data:
            yield Event(self._members(data))

    def _advance(self, index: str, *, repeatable: bool) -> None:
        """Store the position in the log. An event arrives once; a position without an event may repeat."""
        if not index.removeprefix("-").isdecimal() or len(index) > _MAX_INDEX_CHARS:
            raise QWEDProtocolError("the id of an event is not a log index: is this a qwed server?")
        if self._last is not None and int(index) < self._last + (not repeatable):
            raise QWEDProtocolError("an event was sent twice: is this a qwed server?")
        self._last = int(index)

    def _members(self, data: bytes) -> dict[str, Any]:
        try:
            members = parse_strict_json(data, "an event")
        except StrictJsonError as error:
            raise QWEDProtocolError(str(error)) from None
        if not isinstance(members, dict) or members.get("index") != self._last:
            raise QWEDProtocolError("an event is malformed: is this a qwed server?")
        return members

    def pause(self, error: QWEDError | None) -> float:
        """Return the seconds until the next connection; raise the error if reconnecting does not help or the timeout is
        over."""
        ended = error or QWEDConnectionError("the server ended the event stream, and reconnecting failed", sent=True)
        if not isinstance(ended, QWEDConnectionError) and ended.status not in _RETRIED_STATUSES:
            raise ended
        seconds = min(max(ended.retry_after or 0.0, _RECONNECT_SECONDS), self._timeout / 4)
        if time.monotonic() + seconds > self._last_data_at + self._timeout:
            raise ended
        return seconds
