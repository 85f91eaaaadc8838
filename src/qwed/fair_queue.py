"""Round-robin queue with one sub-queue per owner, so that a busy owner delays only itself."""

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Serves the owners in turn; an owner that was served goes to the end. The items of one owner stay in order."""

    def __init__(self) -> None:
        self._items: dict[str, deque[T]] = {}
        """Items by owner, the next owner first; an owner without items is not listed."""

    def __iter__(self) -> Iterator[T]:
        return itertools.chain.from_iterable(self._items.values())

    def __len__(self) -> int:
        return sum(map(len, self._items.values()))

    @property
    def owners(self) -> Collection[str]:
        """Owners with waiting items, the next one first."""
        return self._items

    def items_of(self, owner: str) -> Collection[T]:
        """Return the waiting items of `owner`, the next one first."""
        return self._items[owner]

    def count(self, owner: str) -> int:
        """Return the number of waiting items of `owner`."""
        return len(self._items.get(owner, ()))

    def put(self, owner: str, item: T) -> None:
        """Append an item to the queue of `owner`."""
        self._items.setdefault(owner, deque()).append(item)

    def requeue_first(self, owner: str, item: T) -> None:
        """Put an item back at the very front: it is served before every other owner's."""
        mine = self._items.pop(owner, deque())
        mine.appendleft(item)
        self._items = {owner: mine, **self._items}

    def requeue(self, owner: str, items: Sequence[T]) -> None:
        """Put items back at the front of the owner's queue, without changing the owner's turn."""
        self._items.setdefault(owner, deque()).extendleft(reversed(items))

    def pop(self, owner: str) -> T:
        """Remove and return the next item of `owner`, which then goes to the end."""
        item = self._items[owner][0]
        self.take(owner, item)
        return item

    def take(self, owner: str, item: T) -> None:
        """Remove this item of `owner`, which then goes to the end."""
        mine = self._items.pop(owner)
        mine.remove(item)
        if mine:
            self._items[owner] = mine

    def remove(self, owner: str, item: T) -> None:
        """Remove an item without changing the owner's turn."""
        self._items[owner].remove(item)
        if not self._items[owner]:
            del self._items[owner]

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()
