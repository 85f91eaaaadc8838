"""Whose turn it is: what waits, by whose it is, so that who has much to do waits for itself."""

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Rota(Generic[T]):
    """Whoever was served stands behind everybody else; the items of one `who` stay in their order."""

    def __init__(self) -> None:
        self._items: dict[str, deque[T]] = {}
        """By `who`, the next one to be served first; nobody without an item."""

    def __iter__(self) -> Iterator[T]:
        return itertools.chain.from_iterable(self._items.values())

    def __len__(self) -> int:
        return sum(map(len, self._items.values()))

    @property
    def waiting(self) -> Collection[str]:
        """Who waits, the next one first."""
        return self._items

    def of(self, who: str) -> Collection[T]:
        """The items of `who`, who waits, the next one first."""
        return self._items[who]

    def count(self, who: str) -> int:
        """How many of `who` wait."""
        return len(self._items.get(who, ()))

    def put(self, who: str, item: T) -> None:
        """Behind the others of `who`."""
        self._items.setdefault(who, deque()).append(item)

    def put_back(self, who: str, item: T) -> None:
        """Before everybody else: it had its place already."""
        mine = self._items.pop(who, deque())
        mine.appendleft(item)
        self._items = {who: mine, **self._items}

    def give_back(self, who: str, items: Sequence[T]) -> None:
        """Before the others of `who`, whose turn comes as if nothing had been taken."""
        self._items.setdefault(who, deque()).extendleft(reversed(items))

    def serve(self, who: str) -> T:
        """The next item of `who`, who then stands behind everybody else."""
        item = self._items[who][0]
        self.served(who, item)
        return item

    def served(self, who: str, item: T) -> None:
        """Take this one of `who` out, who then stands behind everybody else."""
        mine = self._items.pop(who)
        mine.remove(item)
        if mine:
            self._items[who] = mine

    def remove(self, who: str, item: T) -> None:
        """Take it out."""
        self._items[who].remove(item)
        if not self._items[who]:
            del self._items[who]

    def clear(self) -> None:
        """Take all of them out."""
        self._items.clear()
