"""Spec 9.1: which step of which conversation comes next, kept for an agent that does not count itself."""

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from qwed_sdk.errors import QWEDArgumentError

if TYPE_CHECKING:
    import anyio

MOST = 1000
"""Conversations a client counts at once; the one that was silent longest is forgotten first."""
_BETWEEN_LOOKS = 0.01


class Conversation:
    """Hands out step numbers. Steps must reach the server in order, so a call holds its turn until it is answered."""

    def __init__(self, conversation_id: str | None = None) -> None:
        self.named = bool(conversation_id)
        self.conversation_id = conversation_id or f"conv_{secrets.token_hex(12)}"
        self.next_step = 1
        self._turn = threading.Lock()
        self._queues: WeakKeyDictionary[Any, anyio.Lock] = WeakKeyDictionary()

    def hold(self, seconds: float) -> bool:
        """Take the turn; whether it came in time."""
        return self._turn.acquire(timeout=seconds)

    def free(self) -> None:
        """Give it back."""
        self._turn.release()

    async def hold_awaiting(self, seconds: float) -> bool:
        """Take the turn without blocking the event loop; whether it came in time."""
        import anyio

        queue = self._queue()
        with anyio.move_on_after(seconds), ExitStack() as undone:
            await queue.acquire()
            undone.callback(queue.release)
            # Tasks of one loop wait in the queue; only those of another loop, or a thread, are looked for.
            while not self._turn.acquire(blocking=False):  # noqa: ASYNC110 - no event spans two loops
                await anyio.sleep(_BETWEEN_LOOKS)
            undone.pop_all()
            return True
        return False

    def free_awaiting(self) -> None:
        """Give it back to the next task."""
        self._turn.release()
        self._queue().release()

    def _queue(self) -> "anyio.Lock":
        import anyio

        return self._queues.setdefault(running_loop(), anyio.Lock(fast_acquire=True))

    def in_child(self) -> "Conversation":
        """The one to go on with after a fork: the parent counts on, so only a name of the caller's is kept."""
        other = Conversation(self.conversation_id if self.named else None)
        other.next_step = self.next_step if self.named else 1
        return other

    def take(self) -> int:
        """A step number. Whoever is never told what became of it leaves it out: it may be used up."""
        step = self.next_step
        self.next_step = step + 1
        return step

    def give_back(self, step: int) -> None:
        """The step was refused, so its number is free for another action."""
        self.next_step = step


class Conversations:
    """The conversations of one agent: the present one, and those that a caller names."""

    def __init__(self, conversation_id: str | None = None) -> None:
        self._present = Conversation(conversation_id)
        self._named: OrderedDict[Hashable, Conversation] = OrderedDict()
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def present(self) -> Conversation:
        """The one that is meant where none is named."""
        self._after_fork()
        return self._present

    def begin(self, conversation_id: str | None = None) -> Conversation:
        """A new one, which is the present one from now on."""
        self._after_fork()
        self._present = Conversation(conversation_id)
        return self._present

    def named(self, conversation_id: str) -> Conversation:
        """The one with this id."""
        return self._kept(("id", conversation_id), conversation_id)

    def of_run(self, run: Hashable) -> Conversation:
        """The one of a run that a framework names; its id is ours, since another process may count under that name."""
        return self._kept(("run", run), None)

    def _after_fork(self) -> None:
        # A thread that is not here any more may have held any of the locks.
        if self._pid != os.getpid():
            self._lock, self._pid = threading.Lock(), os.getpid()
            self._present = self._present.in_child()
            self._named = OrderedDict((name, each.in_child()) for name, each in self._named.items())

    def _kept(self, name: Hashable, conversation_id: str | None) -> Conversation:
        self._after_fork()
        try:
            hash(name)
        except TypeError:
            raise QWEDArgumentError("a conversation is named by something that can be a key, such as text") from None
        with self._lock:
            found = self._named.get(name)
            if found is None:
                found = self._named[name] = Conversation(conversation_id)
                if len(self._named) > MOST:
                    self._named.popitem(last=False)
            self._named.move_to_end(name)
            return found


def running_loop() -> Any:
    """The event loop that runs here; another library's, such as trio's, by its own name."""
    # Imported here: whoever blocks has no loop, and no need to wait for what makes one.
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return import_module("trio").lowlevel.current_trio_token()
