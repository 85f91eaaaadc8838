"""Step numbers of conversations, counted for agents that do not count themselves (spec 9.1)."""

import os
import secrets
import threading
from collections.abc import Hashable
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from qwed.model.lru_cache import LruCache
from qwed_sdk.errors import QWEDArgumentError

if TYPE_CHECKING:
    import anyio

MAX_CONVERSATIONS = 1000
"""Conversations that a client counts at once; the least recently used is dropped first."""
_POLL_SECONDS = 0.01


class Conversation:
    """Step counter of one conversation. Steps must reach the server in order, so a call holds the lock until it is
    answered."""

    def __init__(self, conversation_id: str | None = None) -> None:
        self.has_own_id = bool(conversation_id)
        self.conversation_id = conversation_id or f"conv_{secrets.token_hex(12)}"
        self.next_step = 1
        self._step_lock = threading.Lock()
        self._queues: WeakKeyDictionary[Any, anyio.Lock] = WeakKeyDictionary()

    def acquire(self, seconds: float) -> bool:
        """Acquire the lock; return False after a timeout."""
        return self._step_lock.acquire(timeout=seconds)

    def release(self) -> None:
        """Release the lock."""
        self._step_lock.release()

    async def acquire_async(self, seconds: float) -> bool:
        """Acquire the lock without blocking the event loop; return False after a timeout."""
        import anyio

        queue = self._queue()
        with anyio.move_on_after(seconds), ExitStack() as undone:
            await queue.acquire()
            undone.callback(queue.release)
            # Tasks of one loop wait in the queue; only threads and tasks of another loop need polling.
            while not self._step_lock.acquire(blocking=False):  # noqa: ASYNC110 - no event spans two loops
                await anyio.sleep(_POLL_SECONDS)
            undone.pop_all()
            return True
        return False

    def release_async(self) -> None:
        """Release the lock that `acquire_async` acquired."""
        self._step_lock.release()
        self._queue().release()

    def _queue(self) -> "anyio.Lock":
        import anyio

        return self._queues.setdefault(running_loop(), anyio.Lock(fast_acquire=True))

    def after_fork(self) -> "Conversation":
        """Return the conversation for a forked child. The parent keeps counting, so only an id that the caller chose is
        kept."""
        child = Conversation(self.conversation_id if self.has_own_id else None)
        child.next_step = self.next_step if self.has_own_id else 1
        return child

    def take_step(self) -> int:
        """Return the next step number. If no answer arrives it stays used, because the server may have counted it."""
        step = self.next_step
        self.next_step = step + 1
        return step

    def return_step(self, step: int) -> None:
        """Make the number of a refused step available again."""
        self.next_step = step


class ConversationRegistry:
    """Conversations of one agent: the current one, and those that a caller names."""

    def __init__(self, conversation_id: str | None = None) -> None:
        self._current = Conversation(conversation_id)
        self._named: LruCache[Hashable, Conversation] = LruCache(MAX_CONVERSATIONS)
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def current(self) -> Conversation:
        """Conversation of calls that name none."""
        self._after_fork()
        return self._current

    def begin(self, conversation_id: str | None = None) -> Conversation:
        """Start a new conversation, and make it the current one."""
        self._after_fork()
        self._current = Conversation(conversation_id)
        return self._current

    def for_id(self, conversation_id: str) -> Conversation:
        """Return the conversation with this id."""
        return self._get_or_create(("id", conversation_id), conversation_id)

    def for_run(self, run: Hashable) -> Conversation:
        """Return the conversation of a framework's run. Its id is generated, because another process may use the run's
        name."""
        return self._get_or_create(("run", run), None)

    def _after_fork(self) -> None:
        # A thread of the parent may have held any of the locks.
        if self._pid != os.getpid():
            self._lock, self._pid = threading.Lock(), os.getpid()
            self._current = self._current.after_fork()
            named = ((name, conversation.after_fork()) for name, conversation in self._named.items())
            self._named = LruCache(MAX_CONVERSATIONS, named)

    def _get_or_create(self, name: Hashable, conversation_id: str | None) -> Conversation:
        self._after_fork()
        try:
            hash(name)
        except TypeError:
            raise QWEDArgumentError("the name of a conversation must be hashable, such as text") from None
        with self._lock:
            conversation = self._named[name] = self._named.get(name) or Conversation(conversation_id)
            return conversation


def running_loop() -> Any:
    """Return the running event loop, or the token of trio."""
    # Imported here: the sync client does not need asyncio, which is slow to import.
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return import_module("trio").lowlevel.current_trio_token()
