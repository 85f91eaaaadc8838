"""What is remembered between calls, bounded: what a sender has been shown, and which conversation it is in."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

MOST_SHOWN = 20_000
MOST_SENDERS = 2_000
SILENCE = 300.0
"""Seconds after which whoever names no conversation begins another one."""


class Shown:
    """Digests of what has passed, by sender; what is forgotten is only looked at once more."""

    def __init__(self, most: int = MOST_SHOWN) -> None:
        self._most = most
        self._digests: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def knows(self, agent_id: str, digest: bytes) -> bool:
        """Whether this sender has seen it."""
        found = (agent_id, digest) in self._digests
        if found:
            self._digests.move_to_end((agent_id, digest))
        return found

    def note(self, agent_id: str, digest: bytes) -> None:
        """This sender has seen it now."""
        self._digests[agent_id, digest] = None
        while len(self._digests) > self._most:
            self._digests.popitem(last=False)


class _Rolling(NamedTuple):
    name: str
    at: float


class Conversations:
    """Names for those that nobody named: one at a time for each sender."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_SENDERS) -> None:
        self._clock = clock
        self._most = most
        self._rolling: OrderedDict[str, _Rolling] = OrderedDict()

    def of(self, agent_id: str) -> str:
        """The one that goes on."""
        now = self._clock()
        known = self._rolling.pop(agent_id, None)
        name = known.name if known and now - known.at < SILENCE else _new()
        self._rolling[agent_id] = _Rolling(name, now)
        while len(self._rolling) > self._most:
            self._rolling.popitem(last=False)
        return name

    def after(self, agent_id: str, name: str) -> str | None:
        """The next one, where `name` is one of ours and has had all its steps."""
        known = self._rolling.get(agent_id)
        if not name.startswith(_PREFIX):
            return None
        if known is None or known.name == name:
            self._rolling.pop(agent_id, None)
        return self.of(agent_id)


_PREFIX = "a2a-rolling-"


def _new() -> str:
    return _PREFIX + secrets.token_hex(8)
