"""Whom an owner lets nobody talk to, and whom an owner trusts: the lists of one organisation."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from qwed.guards.likeness import alike
from qwed.guards.tool_approval import folded

MOST_LISTED = 10_000
"""Entries of one list."""

Pair = tuple[str, str]


class ListName(StrEnum):
    """The lists there are."""

    BLOCKS = "blocks"
    """Agents that neither send nor receive."""
    PAIRS = "pairs"
    """Senders with the receivers they may not write to."""
    TRUSTED = "trusted"
    """Agents whose messages are not looked into, once it is proven who sends them."""


class Entry(NamedTuple):
    """One line of a list; of a single agent the receiver is empty."""

    list: ListName
    sender: str
    receiver: str = ""


class Boundary:
    """The lists as they stand. A change makes a new one."""

    __slots__ = ("_seen", "_sizes", "entries")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries = frozenset(entries)
        self._seen: Mapping[Entry, int] = Counter(map(_as_seen, self.entries))
        """How many entries are spellings of this one, or of a trusted one, names that would be taken for it."""
        self._sizes: Mapping[ListName, int] = Counter(each.list for each in self.entries)

    def of(self, name: ListName) -> list[Entry]:
        """One of the lists, in order."""
        return sorted(each for each in self.entries if each.list is name)

    def size(self, name: ListName) -> int:
        """How many entries one of the lists has."""
        return self._sizes.get(name, 0)

    def refuses(self, sender: str, receiver: str) -> bool:
        """Whether either of them is blocked, or the one for the other."""
        return self.blocks(sender) or self.blocks(receiver) or self.blocks_pair(sender, receiver)

    def blocks(self, agent_id: str) -> bool:
        """Whether this agent is blocked, however it spells its name."""
        return self.size(ListName.BLOCKS) > 0 and _as_seen(Entry(ListName.BLOCKS, agent_id)) in self._seen

    def blocks_pair(self, sender: str, receiver: str) -> bool:
        """Whether this sender may not write to this receiver, however they spell their names."""
        return self.size(ListName.PAIRS) > 0 and _as_seen(Entry(ListName.PAIRS, sender, receiver)) in self._seen

    def trusts(self, agent_id: str) -> bool:
        """Whether this agent is trusted: under this very name, and no other spelling of it."""
        return Entry(ListName.TRUSTED, agent_id) in self.entries

    def resembles_trusted(self, agent_id: str) -> bool:
        """Whether this name would be taken for that of a trusted agent."""
        return self.size(ListName.TRUSTED) > 0 and _as_seen(Entry(ListName.TRUSTED, agent_id)) in self._seen

    def changed(self, entry: Entry, *, there: bool) -> "Boundary":
        """The lists with one more entry, or one less."""
        if (entry in self.entries) is there:
            return self
        # Counted and not made anew: a long list is changed as soon as a short one.
        after, step = Boundary(), 1 if there else -1
        after.entries = self.entries | {entry} if there else self.entries - {entry}
        after._seen = _counted(self._seen, _as_seen(entry), step)
        after._sizes = _counted(self._sizes, entry.list, step)
        return after


T = TypeVar("T")


def _as_seen(entry: Entry) -> Entry:
    read = alike if entry.list is ListName.TRUSTED else folded
    return Entry(entry.list, read(entry.sender), read(entry.receiver))


def _counted(before: Mapping[T, int], which: T, step: int) -> Mapping[T, int]:
    after = {**before, which: before.get(which, 0) + step}
    if not after[which]:
        del after[which]
    return after
