"""Cache that drops the least recently used entry when it is full."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """Mapping of at most `limit` entries; `use` and setting count as use, `get` does not. Not thread-safe."""

    def __init__(self, limit: int, entries: Iterable[tuple[K, V]] = ()) -> None:
        self.limit = limit
        super().__init__(entries)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.limit:
            self.popitem(last=False)

    def use(self, key: K) -> V | None:
        """Return the value and make it the most recently used one, or return None."""
        if key not in self:
            return None
        self.move_to_end(key)
        return self[key]
