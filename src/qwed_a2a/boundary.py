"""Trust Boundary: whether one agent may send to another at all, asked before anybody looks at what it sends."""

import threading
from collections.abc import Awaitable
from typing import Protocol

from qwed.guards.tool_approval import folded
from qwed.words.clock import Clock
from qwed_a2a.bucket import FASTEST, Buckets, Pair
from qwed_a2a.message import PayloadType

Said = tuple[bool, str]
"""Whether a message may pass, and why."""
PASSED: Said = (True, "within the trust boundary")


class Boundary(Protocol):
    """Whoever keeps the lists and the buckets."""

    def evaluate(self, sender: str, receiver: str, payload_type: PayloadType) -> Said | Awaitable[Said]:
        """Whether the pair may exchange this message, and why not; what is awaited are tickets only."""


class TrustBoundary:
    """The lists and buckets of one process. Safe to use from any thread.

    Blocks and rates hold for every spelling of a name; trust is for the one that was trusted.
    """

    def __init__(
        self,
        max_requests_per_minute: int | None = 60,
        default_allow: bool = True,
        strict_mode: bool = False,
        *,
        clock: Clock | None = None,
    ) -> None:
        per_minute = _rate(max_requests_per_minute)
        self.max_requests_per_minute = per_minute
        self.default_allow = _flag("default_allow", default_allow)
        self.strict_mode = _flag("strict_mode", strict_mode)
        self._buckets = None if per_minute is None else Buckets(per_minute, (clock or Clock()).monotonic)
        self._blocked: set[str] = set()
        self._pairs: set[Pair] = set()
        self._trusted: set[str] = set()
        self._lock = threading.Lock()

    def block_agent(self, agent_id: str) -> None:
        """From now on it sends and receives nothing."""
        with self._lock:
            self._blocked.add(folded(_named(agent_id)))

    def unblock_agent(self, agent_id: str) -> None:
        """Take back the block of an agent; where there is none, nothing happens."""
        with self._lock:
            self._blocked.discard(folded(_named(agent_id)))

    def trust_agent(self, agent_id: str) -> None:
        """Put it on the allowlist, which strict mode asks for."""
        with self._lock:
            self._trusted.add(_named(agent_id))

    def revoke_agent(self, agent_id: str) -> None:
        """Take it off the allowlist; where it is not on it, nothing happens."""
        with self._lock:
            self._trusted.discard(_named(agent_id))

    def block_pair(self, sender: str, receiver: str) -> None:
        """From now on the one sends nothing to the other; the way back is a pair of its own."""
        with self._lock:
            self._pairs.add((folded(_named(sender)), folded(_named(receiver))))

    def unblock_pair(self, sender: str, receiver: str) -> None:
        """Take back the block of a pair; where there is none, nothing happens."""
        with self._lock:
            self._pairs.discard((folded(_named(sender)), folded(_named(receiver))))

    def trusts(self, agent_id: str) -> bool:
        """Whether it is on the allowlist."""
        with self._lock:
            return agent_id in self._trusted

    def evaluate(self, sender: str, receiver: str, _payload_type: PayloadType = PayloadType.GENERAL) -> Said:
        """Whether the sender may send this to the receiver, and why not; a message that may has its token taken."""
        pair = folded(sender), folded(receiver)
        with self._lock:
            refused = self._listed(sender, receiver, pair)
        if refused is not None:
            return False, refused
        if self._buckets is not None and not self._buckets.take(pair):
            return (
                False,
                f"more than {self.max_requests_per_minute} messages per minute from this sender to this receiver",
            )
        return PASSED

    def _listed(self, sender: str, receiver: str, pair: Pair) -> str | None:
        for side, name in zip(("sender", "receiver"), pair, strict=True):
            if name in self._blocked:
                return f"the {side} is blocked"
        if pair in self._pairs:
            return "the sender is blocked for this receiver"
        if (self.strict_mode or not self.default_allow) and sender not in self._trusted:
            return "the sender is not on the allowlist"
        if not self.default_allow and receiver not in self._trusted:
            return "the receiver is not on the allowlist"
        return None


def _named(agent_id: str) -> str:
    if not isinstance(agent_id, str) or not agent_id:
        raise ValueError("an agent id must be a text that is not empty")
    return agent_id


def _flag(name: str, value: bool) -> bool:
    if type(value) is not bool:
        raise ValueError(f"`{name}` must be true or false")
    return value


def _rate(per_minute: int | None) -> int | None:
    if per_minute is not None and (type(per_minute) is not int or not 1 <= per_minute <= FASTEST):
        raise ValueError(f"`max_requests_per_minute` must be a whole number from 1 to {FASTEST}, or None for no limit")
    return per_minute
