"""Spec 9.1: which step of which conversation comes next, kept for an agent that does not count itself."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import anyio

MOST = 1000
"""Conversations a client counts at once; the one that was silent longest is forgotten first."""


class Conversation:
    """Hands out step numbers. Steps must reach the server in order, so a call holds its turn until it is answered."""

    def __init__(self, conversation_id: str | None = None) -> None:
        self.conversation_id = conversation_id or f"conv_{secrets.token_hex(12)}"
        self.next_step = 1
        self.lock = threading.Lock()

    @cached_property
    def async_lock(self) -> "anyio.Lock":
        """The lock of the client that awaits."""
        import anyio

        return anyio.Lock()

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
        self.present = Conversation(conversation_id)
        self._named: OrderedDict[Hashable, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, conversation_id: str | None = None) -> Conversation:
        """A new one, which is the present one from now on."""
        self.present = Conversation(conversation_id)
        return self.present

    def named(self, conversation_id: str) -> Conversation:
        """The one with this id."""
        return self._kept(("id", conversation_id), conversation_id)

    def of_run(self, run: Hashable) -> Conversation:
        """The one of a run that a framework names; its id is ours, since another process may count under that name."""
        return self._kept(("run", run), None)

    def _kept(self, name: Hashable, conversation_id: str | None) -> Conversation:
        with self._lock:
            found = self._named.get(name)
            if found is None:
                found = self._named[name] = Conversation(conversation_id)
                if len(self._named) > MOST:
                    self._named.popitem(last=False)
            self._named.move_to_end(name)
            return found
