"""Bounded caches between calls: delivered content per sender, and conversation names."""

import secrets
from collections.abc import Callable
from typing import NamedTuple

from qwed.model.lru_cache import LruCache

MAX_DIGESTS = 20_000
MAX_SENDERS = 2_000
SILENCE_SECONDS = 300.0
"""Seconds of silence after which a sender without a conversation id gets a new conversation."""


class DeliveredDigests:
    """LRU of delivered content by sender; forgotten content is only checked again."""

    def __init__(self, limit: int = MAX_DIGESTS) -> None:
        self._digests: LruCache[tuple[str, bytes], bool] = LruCache(limit)

    def contains(self, agent_id: str, digest: bytes) -> bool:
        """Return True if this sender has received the content."""
        return self._digests.use((agent_id, digest)) is True

    def add(self, agent_id: str, digest: bytes) -> None:
        """Record that this sender has received the content."""
        self._digests[agent_id, digest] = True


class _CurrentConversation(NamedTuple):
    name: str
    at: float


class ConversationNames:
    """Conversation names for senders that use none: one at a time for each sender."""

    def __init__(self, clock: Callable[[], float], limit: int = MAX_SENDERS) -> None:
        self._clock = clock
        self._by_sender: LruCache[str, _CurrentConversation] = LruCache(limit)

    def current(self, agent_id: str) -> str:
        """Return the current conversation of the sender, or a new one after a silence."""
        now = self._clock()
        current = self._by_sender.get(agent_id)
        name = current.name if current and now - current.at < SILENCE_SECONDS else _new_conversation_name()
        self._by_sender[agent_id] = _CurrentConversation(name, now)
        return name

    def next_after(self, agent_id: str, name: str) -> str | None:
        """Return a new conversation if `name` is one of ours and has reached its step limit, else None."""
        current = self._by_sender.get(agent_id)
        if not name.startswith(_PREFIX):
            return None
        if current is None or current.name == name:
            self._by_sender.pop(agent_id, None)
        return self.current(agent_id)


_PREFIX = "a2a-rolling-"


def _new_conversation_name() -> str:
    return _PREFIX + secrets.token_hex(8)
