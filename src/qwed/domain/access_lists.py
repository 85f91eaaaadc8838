"""Access lists of an organisation for messages: blocked agents, blocked pairs, trusted agents."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from qwed.guards.homoglyphs import confusable_skeleton
from qwed.guards.tool_approval import fold_name

MAX_LIST_ENTRIES = 10_000
"""Entries of one list."""

Pair = tuple[str, str]


class ListName(StrEnum):
    """Names of the lists."""

    BLOCKS = "blocks"
    """Agents that can neither send nor receive."""
    PAIRS = "pairs"
    """Senders with the receivers they may not write to."""
    TRUSTED = "trusted"
    """Agents whose messages are not scanned, once the sender is authenticated."""


class ListEntry(NamedTuple):
    """Entry of a list; without a receiver it is about one agent."""

    list: ListName
    sender: str
    receiver: str = ""


class AccessLists:
    """Lists of one organisation. A change makes a new instance."""

    __slots__ = ("_counts", "_sizes", "entries")

    def __init__(self, entries: Iterable[ListEntry] = ()) -> None:
        self.entries = frozenset(entries)
        self._counts: Mapping[ListEntry, int] = Counter(map(_normalised, self.entries))
        """Number of entries per normalised entry; trusted names are also normalised for look-alike characters."""
        self._sizes: Mapping[ListName, int] = Counter(entry.list for entry in self.entries)

    def entries_of(self, name: ListName) -> list[ListEntry]:
        """Return one list, sorted."""
        return sorted(entry for entry in self.entries if entry.list is name)

    def size(self, name: ListName) -> int:
        """Return the number of entries of one list."""
        return self._sizes.get(name, 0)

    def refuses(self, sender: str, receiver: str) -> bool:
        """Return True if either agent or the pair is blocked."""
        return self.refusal(sender, receiver) is not None

    def refusal(self, sender: str, receiver: str) -> str | None:
        """Return why a block refuses messages of this pair, or None."""
        if self.blocks(sender):
            return "the sender is blocked"
        if self.blocks(receiver):
            return "the receiver is blocked"
        return "the sender is blocked for this receiver" if self.blocks_pair(sender, receiver) else None

    def blocks(self, agent_id: str) -> bool:
        """Return True if this agent is blocked, in any spelling of its name."""
        return self.size(ListName.BLOCKS) > 0 and _normalised(ListEntry(ListName.BLOCKS, agent_id)) in self._counts

    def blocks_pair(self, sender: str, receiver: str) -> bool:
        """Return True if this sender may not write to this receiver, in any spelling of their names."""
        return (
            self.size(ListName.PAIRS) > 0 and _normalised(ListEntry(ListName.PAIRS, sender, receiver)) in self._counts
        )

    def trusts(self, agent_id: str) -> bool:
        """Return True if exactly this name is trusted."""
        return ListEntry(ListName.TRUSTED, agent_id) in self.entries

    def resembles_trusted(self, agent_id: str) -> bool:
        """Return True if this name looks like that of a trusted agent."""
        return self.size(ListName.TRUSTED) > 0 and _normalised(ListEntry(ListName.TRUSTED, agent_id)) in self._counts

    def with_change(self, entry: ListEntry, *, present: bool) -> "AccessLists":
        """Return the lists with this entry added or removed."""
        if (entry in self.entries) is present:
            return self
        # The counts are updated and not recomputed: a long list changes as fast as a short one.
        after, step = AccessLists(), 1 if present else -1
        after.entries = self.entries | {entry} if present else self.entries - {entry}
        after._counts = _with_count(self._counts, _normalised(entry), step)
        after._sizes = _with_count(self._sizes, entry.list, step)
        return after


T = TypeVar("T")


def _normalised(entry: ListEntry) -> ListEntry:
    read = confusable_skeleton if entry.list is ListName.TRUSTED else fold_name
    return ListEntry(entry.list, read(entry.sender), read(entry.receiver))


def _with_count(before: Mapping[T, int], which: T, step: int) -> Mapping[T, int]:
    after = {**before, which: before.get(which, 0) + step}
    if not after[which]:
        del after[which]
    return after


NO_LISTS = AccessLists()
