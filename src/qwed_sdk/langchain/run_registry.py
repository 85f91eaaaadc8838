"""Registry of LangChain runs: their conversation, permitted calls and running tools."""

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from qwed.model.lru_cache import LruCache
from qwed_sdk.permits import Permit

V = TypeVar("V")

MAX_RUNS = 10_000
"""Runs that are stored at once; the oldest is dropped, and its calls are verified again."""


class AnnouncedCall(NamedTuple):
    """Tool call, compared by its exact JSON."""

    tool: str
    arguments: bytes
    """Canonical JSON of the arguments: `1`, `1.0` and `true` are equal in Python and differ here."""


class RunRegistry:
    """Thread-safe registry; one callback receives the events of every branch of a batch."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._conversations: LruCache[UUID, str | None] = LruCache(MAX_RUNS)
        self._permitted: LruCache[UUID, list[tuple[AnnouncedCall, Permit]]] = LruCache(MAX_RUNS)
        self._running: LruCache[UUID, Permit] = LruCache(MAX_RUNS)

    def begin(self, run: UUID, parent: UUID | None, metadata: Mapping[str, Any] | None) -> None:
        """Register a chain: its conversation is its thread's, else its parent's, else a new one."""
        with self._lock:
            conversation = self._conversation(parent, metadata)
            self._conversations[run] = str(run) if conversation is None else conversation

    def end(self, run: UUID) -> None:
        """Remove a chain and its unused permits."""
        with self._lock:
            self._conversations.pop(run, None)
            self._permitted.pop(run, None)

    def conversation(self, run: UUID | None, metadata: Mapping[str, Any] | None = None) -> str | None:
        """Return the conversation of a run, or None if its beginning was not seen."""
        with self._lock:
            return self._conversation(run, metadata)

    def permit(self, run: UUID, call: AnnouncedCall, permit: Permit) -> None:
        """Store the permit of an announced call, which the run may make once."""
        with self._lock:
            calls = self._permitted.pop(run, [])
            self._permitted[run] = [*calls, (call, permit)]

    def claim(self, run: UUID | None, call: AnnouncedCall | None) -> Permit | None:
        """Remove and return the permit for exactly this call in this run, or None."""
        with self._lock:
            calls = self._permitted.get(run, []) if run is not None else []
            position = next((index for index, (announced, _) in enumerate(calls) if announced == call), None)
            return None if position is None else calls.pop(position)[1]

    def start(self, run: UUID, permit: Permit, conversation: str | None) -> None:
        """Register a running tool; calls inside it belong to the same conversation."""
        with self._lock:
            self._running[run] = permit
            self._conversations[run] = conversation

    def finish(self, run: UUID) -> Permit | None:
        """Remove a tool that has ended, and return its permit."""
        with self._lock:
            self._conversations.pop(run, None)
            return self._running.pop(run, None)

    def _conversation(self, run: UUID | None, metadata: Mapping[str, Any] | None) -> str | None:
        thread = (metadata or {}).get("thread_id")
        if thread is not None:
            return str(thread)
        return None if run is None else self._conversations.get(run)
