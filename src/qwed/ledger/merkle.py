"""RFC 6962: a tree that grows, and which of its subtrees prove what.

Every complete subtree is named by its level and its position at that level. A path is told in such names, so that
whoever keeps the hashes can look them all up at once; where a path needs the right border of the tree, which is no
complete subtree, it names the several whose hashes are joined to make it.
"""

from collections.abc import Iterable, Sequence

from qwed.ledger.verifier import EMPTY_ROOT, node_hash

Place = tuple[int, int]
"""Level and position: the subtree over the leaves from position * 2**level on, 2**level of them."""


def peaks(size: int) -> list[Place]:
    """The complete subtrees a tree of this size consists of, the largest first."""
    return _cover(0, size)


def inclusion(index: int, size: int) -> list[list[Place]]:
    """The audit path of a leaf, from the bottom up."""
    path: list[list[Place]] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _left(end - begin)
        if index < middle:
            path.append(_cover(middle, end))
            end = middle
        else:
            path.append(_cover(begin, middle))
            begin = middle
    return path[::-1]


def consistency(first: int, second: int) -> list[list[Place]]:
    """The path which proves that the tree of the first size is the beginning of that of the second."""
    if not 0 < first < second:
        return []
    path: list[list[Place]] = []
    begin, end = 0, second
    while first != end:
        middle = begin + _left(end - begin)
        if first <= middle:
            path.append(_cover(middle, end))
            end = middle
        else:
            path.append(_cover(begin, middle))
            begin = middle
    # Of a first tree that is whole, whoever checks has the root already.
    known = [] if begin == 0 else [_cover(begin, end)]
    return known + path[::-1]


def joined(hashes: Sequence[bytes]) -> bytes:
    """The hash over neighbouring subtrees, the largest first; of none, that of the empty tree."""
    if not hashes:
        return EMPTY_ROOT
    *others, whole = hashes
    for each in reversed(others):
        whole = node_hash(each, whole)
    return whole


def _left(size: int) -> int:
    """How many leaves stand to the left of the root: the largest power of two below the size."""
    return 1 << ((size - 1).bit_length() - 1)


def _cover(begin: int, end: int) -> list[Place]:
    """The complete subtrees over these leaves, which begin where a subtree of that size may begin."""
    found: list[Place] = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        found.append((level, begin >> level))
        begin += 1 << level
    return found


class Growth:
    """A tree as one batch of leaves makes it grow: what each leaf completes, the root, and a path for each leaf."""

    def __init__(self, size: int, borders: Sequence[bytes]) -> None:
        self.size = size
        self._first = size
        self._known: dict[Place, bytes] = dict(zip(peaks(size), borders, strict=True))
        self._paths: dict[int, list[str]] = {}
        """In hex, of every leaf of the batch, once one of them was asked for."""

    def add(self, leaf: bytes) -> list[bytes]:
        """The hashes this leaf makes known: its own, and of every subtree it completes."""
        place, found = self.size, [leaf]
        self._known[0, place] = leaf
        while place & 1:
            leaf = node_hash(self._known[len(found) - 1, place - 1], leaf)
            place >>= 1
            self._known[len(found), place] = leaf
            found.append(leaf)
        self.size += 1
        self._paths = {}
        return found

    def borders(self) -> list[bytes]:
        """The hashes of the peaks, from which the tree can grow on."""
        return [self._known[place] for place in peaks(self.size)]

    def root(self) -> bytes:
        """The root as it is now."""
        return joined(self.borders())

    def path(self, index: int) -> list[bytes]:
        """The audit path of a leaf of this batch in the tree as it is now."""
        return [self.hash_of(places) for places in inclusion(index, self.size)]

    def hex_path(self, index: int) -> list[str]:
        """The same in hex. It is shared by whoever asks: nobody changes it."""
        if not self._paths:
            self._paths = self._all_paths()
        return self._paths[index]

    def _all_paths(self) -> dict[int, list[str]]:
        """From the root down, because leaves of one batch have most of their way in common."""
        paths: dict[int, list[str]] = {}
        waiting: list[tuple[int, int, list[str]]] = [(0, self.size, [])]
        while waiting:
            begin, end, above = waiting.pop()
            if end - begin == 1:
                paths[begin] = above
                continue
            middle = begin + _left(end - begin)
            if self._first < middle:
                waiting.append((begin, middle, [self._hex(middle, end), *above]))
            waiting.append((middle, end, [self._hex(begin, middle), *above]))
        return paths

    def _hex(self, begin: int, end: int) -> str:
        level = (end - begin).bit_length() - 1
        if end - begin == 1 << level:
            return self._known[level, begin >> level].hex()
        return self.hash_of(_cover(begin, end)).hex()

    def hash_of(self, places: Iterable[Place]) -> bytes:
        """The hash over these subtrees, all of them at the border or in this batch."""
        return joined([self._known[place] for place in places])
