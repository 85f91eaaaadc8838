"""Merkle tree of RFC 6962: growth, audit paths and consistency paths.

A complete subtree is identified by its level and its position at that level. A path is a list of such ids, so that the
caller can read all hashes at once; a node on the right edge of the tree, which is not a complete subtree, is given as
the several subtrees that make it up.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from qwed.ledger.verifier import EMPTY_ROOT, node_hash

_LEAF, _NODE = b"\x00", b"\x01"
"""Prefixes of RFC 6962, as in `leaf_hash` and `node_hash`: no leaf can collide with a node."""

SubtreeId = tuple[int, int]
"""Level and position: the subtree over 2**level leaves from position * 2**level on."""


def peaks(size: int) -> list[SubtreeId]:
    """Return the complete subtrees of a tree of this size, largest first."""
    return _subtrees_over(0, size)


def inclusion_path(index: int, size: int) -> list[list[SubtreeId]]:
    """Return the audit path of a leaf, from the bottom up."""
    path: list[list[SubtreeId]] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _left_size(end - begin)
        if index < middle:
            path.append(_subtrees_over(middle, end))
            end = middle
        else:
            path.append(_subtrees_over(begin, middle))
            begin = middle
    return path[::-1]


def consistency_path(first: int, second: int) -> list[list[SubtreeId]]:
    """Return the path that proves the first tree to be a prefix of the second."""
    if not 0 < first < second:
        return []
    path: list[list[SubtreeId]] = []
    begin, end = 0, second
    while first != end:
        middle = begin + _left_size(end - begin)
        if first <= middle:
            path.append(_subtrees_over(middle, end))
            end = middle
        else:
            path.append(_subtrees_over(begin, middle))
            begin = middle
    # If the first tree is one complete subtree, the verifier has its root already.
    start = [] if begin == 0 else [_subtrees_over(begin, end)]
    return start + path[::-1]


def fold_hashes(hashes: Sequence[bytes]) -> bytes:
    """Return the hash over adjacent subtrees, largest first; without any, the root of the empty tree."""
    if not hashes:
        return EMPTY_ROOT
    *others, whole = hashes
    for left in reversed(others):
        whole = node_hash(left, whole)
    return whole


def _left_size(size: int) -> int:
    """Return the number of leaves left of the root: the largest power of two below the size."""
    return 1 << ((size - 1).bit_length() - 1)


def _subtrees_over(begin: int, end: int) -> list[SubtreeId]:
    """Return the complete subtrees over these leaves; `begin` must be aligned to the first one."""
    subtrees: list[SubtreeId] = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        subtrees.append((level, begin >> level))
        begin += 1 << level
    return subtrees


class MerkleFrontier:
    """Tree that one batch of leaves is appended to: completed nodes, root, and a path for each leaf."""

    def __init__(self, size: int, peak_hashes: Sequence[bytes]) -> None:
        self.size = size
        self._initial_size = size
        self._peaks = [*peak_hashes]
        """Hashes of the complete subtrees, largest first, from which the tree can grow on."""
        self._hashes: dict[SubtreeId, bytes] = {}
        self._paths: dict[int, list[str]] = {}
        """Paths in hex of every leaf of the batch, computed on first use."""
        if size.bit_count() != len(self._peaks):
            raise ValueError(f"a tree of {size} leaves does not have {len(self._peaks)} complete subtrees")
        begin = 0
        for peak in peak_hashes:
            level = (size - begin).bit_length() - 1
            self._hashes[level, begin >> level] = peak
            begin += 1 << level

    def add(self, leaf: bytes) -> bytes:
        """Append the text of a leaf and return the hashes that it completes: its own, and those of subtrees."""
        position, level, node = self.size, 0, sha256(_LEAF + leaf).digest()
        completed = self._hashes[0, position] = node
        while position & 1:
            node = sha256(_NODE + self._peaks.pop() + node).digest()
            position >>= 1
            level += 1
            self._hashes[level, position] = node
            completed += node
        self._peaks.append(node)
        self.size += 1
        self._paths = {}
        return completed

    def peak_hashes(self) -> list[bytes]:
        """Return the hashes of the peaks, from which the tree can grow on."""
        return [*self._peaks]

    def root(self) -> bytes:
        """Return the current root."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            root = sha256(_NODE + peak + root).digest()
        return root

    def path(self, index: int) -> list[bytes]:
        """Return the audit path of a leaf of this batch in the current tree."""
        return [self.hash_of(subtrees) for subtrees in inclusion_path(index, self.size)]

    def hex_path(self, index: int) -> list[str]:
        """Return the audit path in hex. The list is shared: do not change it."""
        if not self._paths:
            self._compute_paths()
        return self._paths[index]

    def _compute_paths(self) -> None:
        """Compute all paths from the root down, because leaves of one batch share most of them."""
        waiting: list[tuple[int, int, list[str]]] = [(0, self.size, [])]
        while waiting:
            begin, end, above = waiting.pop()
            if end - begin == 1:
                self._paths[begin] = above
                continue
            level = (end - begin - 1).bit_length() - 1
            middle = begin + (1 << level)
            if self._initial_size < middle:
                waiting.append((begin, middle, [self._right_hex(middle, end), *above]))
            # The left side is one complete subtree.
            waiting.append((middle, end, [self._hashes[level, begin >> level].hex(), *above]))

    def _right_hex(self, begin: int, end: int) -> str:
        return self.hash_of(_subtrees_over(begin, end)).hex()

    def hash_of(self, subtrees: Iterable[SubtreeId]) -> bytes:
        """Return the hash over these subtrees, which must be peaks or in this batch."""
        return fold_hashes([self._hashes[subtree] for subtree in subtrees])
