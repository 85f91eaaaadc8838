"""What a callback remembers of the runs it hears of: their conversation, what was permitted, what is running."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from qwed_sdk.calls.checks import Permit

V = TypeVar("V")

MOST = 10_000
"""Runs remembered at once; the oldest goes first, and what is forgotten is asked about again."""


class Call(NamedTuple):
    """One tool call, compared to the letter."""

    tool: str
    arguments: bytes
    """Their canonical JSON: `1`, `1.0` and `true` are equal in Python and different here."""


class Runs:
    """Safe to share between threads: one callback hears every branch of a batch."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._conversations: OrderedDict[UUID, str | None] = OrderedDict()
        self._permitted: OrderedDict[UUID, list[tuple[Call, Permit]]] = OrderedDict()
        self._running: OrderedDict[UUID, Permit] = OrderedDict()

    def begin(self, run: UUID, parent: UUID | None, metadata: Mapping[str, Any] | None) -> None:
        """A chain began: it belongs to its thread, else to the conversation of its parent, else begins one."""
        with self._lock:
            known = self._conversation(parent, metadata)
            _remember(self._conversations, run, str(run) if known is None else known)

    def end(self, run: UUID) -> None:
        """A chain is over, and with it whatever it was permitted and did not do."""
        with self._lock:
            self._conversations.pop(run, None)
            self._permitted.pop(run, None)

    def conversation(self, run: UUID | None, metadata: Mapping[str, Any] | None = None) -> str | None:
        """The conversation of what happens in this run; None where nothing was heard of its beginning."""
        with self._lock:
            return self._conversation(run, metadata)

    def permit(self, run: UUID, call: Call, permit: Permit) -> None:
        """The run announced this call and may make it once."""
        with self._lock:
            calls = self._permitted.pop(run, [])
            _remember(self._permitted, run, [*calls, (call, permit)])

    def claim(self, run: UUID | None, call: Call | None) -> Permit | None:
        """The permission for exactly this call in exactly this run, which is gone afterwards."""
        with self._lock:
            calls = self._permitted.get(run, []) if run is not None else []
            found = next((index for index, (announced, _) in enumerate(calls) if announced == call), None)
            return None if found is None else calls.pop(found)[1]

    def start(self, run: UUID, permit: Permit, conversation: str | None) -> None:
        """A tool runs; what is called inside it belongs to the same conversation."""
        with self._lock:
            _remember(self._running, run, permit)
            _remember(self._conversations, run, conversation)

    def finish(self, run: UUID) -> Permit | None:
        """What permitted the tool that is over now."""
        with self._lock:
            self._conversations.pop(run, None)
            return self._running.pop(run, None)

    def _conversation(self, run: UUID | None, metadata: Mapping[str, Any] | None) -> str | None:
        thread = (metadata or {}).get("thread_id")
        if thread is not None:
            return str(thread)
        return None if run is None else self._conversations.get(run)


def _remember(store: "OrderedDict[UUID, V]", run: UUID, value: V) -> None:
    store[run] = value
    if len(store) > MOST:
        store.popitem(last=False)
