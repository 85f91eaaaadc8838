"""Trees and proofs against the recursive definitions of RFC 6962, section 2.1."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qwed.ledger import merkle, verifier
from qwed.ledger.verifier import EMPTY_ROOT, Tree, leaf_hash, node_hash, verify_consistency, verify_inclusion

few = settings(derandomize=True, database=None, deadline=None, max_examples=12)
many = settings(few, max_examples=300)

LARGEST = 5000
SMALL = range(1, 34)


class DefinedTree:
    """Definitions of RFC 6962 on leaves from a seed."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.leaves = [b"leaf %d of %d" % (number, seed) for number in range(count)]
        self.mth = lru_cache(maxsize=None)(self._mth)

    def _mth(self, start: int, end: int) -> bytes:
        if start == end:
            return hashlib.sha256(b"").digest()
        if end - start == 1:
            return hashlib.sha256(b"\x00" + self.leaves[start]).digest()
        middle = start + _k(end - start)
        return hashlib.sha256(b"\x01" + self.mth(start, middle) + self.mth(middle, end)).digest()

    def root(self, size: int) -> bytes:
        """Return MTH(D[n])."""
        return self.mth(0, size)

    def path(self, m: int, start: int, end: int) -> list[bytes]:
        """Return PATH(m, D[n]), where m counts from `start`."""
        if end - start == 1:
            return []
        k = _k(end - start)
        if m < k:
            return [*self.path(m, start, start + k), self.mth(start + k, end)]
        return [*self.path(m - k, start + k, end), self.mth(start, start + k)]

    def proof(self, m: int, n: int) -> list[bytes]:
        """Return PROOF(m, D[n])."""
        return self._subproof(m, 0, n, True)

    def _subproof(self, m: int, start: int, end: int, whole: bool) -> list[bytes]:
        if m == end - start:
            return [] if whole else [self.mth(start, end)]
        k = _k(end - start)
        if m <= k:
            return [*self._subproof(m, start, start + k, whole), self.mth(start + k, end)]
        return [*self._subproof(m - k, start + k, end, False), self.mth(start, start + k)]


def _k(n: int) -> int:
    """Return the largest power of two smaller than n."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k


SHARED = DefinedTree(LARGEST)
"""Tree whose prefixes all tests share."""


def grown(leaves: Sequence[bytes]) -> Tree:
    tree = Tree()
    for each in leaves:
        tree.add(leaf_hash(each))
    return tree


def resolve_path(defined: DefinedTree, path: list[list[tuple[int, int]]]) -> list[bytes]:
    """Return the hashes of a path, joined as a server of proofs joins them."""
    return [merkle.fold_hashes([_at(defined, place) for place in each]) for each in path]


def _at(defined: DefinedTree, place: tuple[int, int]) -> bytes:
    level, position = place
    return defined.mth(position << level, position + 1 << level)


sizes = st.integers(1, LARGEST)


@st.composite
def places(draw: Any) -> tuple[int, int]:
    """Draw an index, and the size of a tree that contains it."""
    size = draw(sizes)
    return draw(st.integers(0, size - 1)), size


@st.composite
def pairs(draw: Any) -> tuple[int, int]:
    """Draw the size of a tree, and that of a prefix."""
    second = draw(sizes)
    return draw(st.integers(0, second)), second


def test_the_hashes_are_those_of_the_rfc() -> None:
    assert EMPTY_ROOT == SHARED.root(0) == Tree().root() == merkle.fold_hashes([])
    assert leaf_hash(b"x") == hashlib.sha256(b"\x00x").digest()
    assert node_hash(b"l" * 32, b"r" * 32) == hashlib.sha256(b"\x01" + b"l" * 32 + b"r" * 32).digest()


def test_a_tree_has_the_defined_root_at_every_size_on_its_way() -> None:
    tree = Tree()
    for size in range(600):
        assert (tree.size, tree.root()) == (size, SHARED.root(size))
        tree.add(leaf_hash(SHARED.leaves[size]))


@few
@given(sizes, st.integers(0, 2**64))
@example(LARGEST, 7)
@example(4096, 8)
def test_a_tree_of_any_leaves_has_the_defined_root(size: int, seed: int) -> None:
    defined = DefinedTree(size, seed)
    growth = merkle.MerkleFrontier(0, [])
    for each in defined.leaves:
        growth.add(each)
    assert grown(defined.leaves).root() == growth.root() == defined.root(size)
    assert growth.peak_hashes() == [_at(defined, place) for place in merkle.peaks(size)]


@many
@given(places())
def test_an_audit_path_is_the_defined_one_and_proves_its_leaf(place: tuple[int, int]) -> None:
    index, size = place
    path = SHARED.path(index, 0, size)
    assert resolve_path(SHARED, merkle.inclusion_path(index, size)) == path
    hashed, root = leaf_hash(SHARED.leaves[index]), SHARED.root(size)
    assert verify_inclusion(hashed, index, size, path, root)
    assert not verify_inclusion(leaf_hash(b"another"), index, size, path, root)
    assert not verify_inclusion(hashed, index, size, path, SHARED.root(size - 1))
    assert not any(verify_inclusion(hashed, other, size, path, root) for other in (index - 1, index + 1, index ^ 1))


@many
@given(pairs())
def test_a_consistency_proof_is_the_defined_one_and_proves_the_beginning(pair: tuple[int, int]) -> None:
    first, second = pair
    path = SHARED.proof(first, second) if 0 < first < second else []
    assert resolve_path(SHARED, merkle.consistency_path(first, second)) == path
    roots = SHARED.root(first), SHARED.root(second)
    assert verify_consistency(first, second, path, *roots)
    assert not verify_consistency(first, second, path, leaf_hash(b"another"), roots[1])
    if first:
        assert not verify_consistency(first, second, path, roots[0], leaf_hash(b"another"))


@many
@given(pairs(), st.data())
def test_a_path_that_was_touched_proves_nothing(pair: tuple[int, int], data: st.DataObject) -> None:
    first, second = pair
    index = min(first, second - 1)
    inclusion = data.draw(damaged_paths(SHARED.path(index, 0, second)))
    assert not verify_inclusion(leaf_hash(SHARED.leaves[index]), index, second, inclusion, SHARED.root(second))
    consistency = data.draw(damaged_paths(SHARED.proof(first, second) if 0 < first < second else []))
    assert not verify_consistency(first, second, consistency, SHARED.root(first), SHARED.root(second))


@st.composite
def damaged_paths(draw: Any, path: list[bytes]) -> list[bytes]:
    """Return the path with a hash changed, cut, extended, removed, inserted, or moved."""
    at = draw(st.integers(0, len(path)))
    inserted = [*path[:at], draw(st.sampled_from([b"", b"\x00" * 32, *path])), *path[at:]]
    if not path:
        return inserted
    at = min(at, len(path) - 1)
    changed = bytearray(path[at])
    changed[draw(st.integers(0, 31))] ^= 1 << draw(st.integers(0, 7))
    ways = [inserted, [*path[:at], *path[at + 1 :]]]
    ways += [[*path[:at], other, *path[at + 1 :]] for other in (bytes(changed), path[at][:-1], path[at] + b"\x00", b"")]
    ways += [path[::-1]] if len(path) > 1 else []
    chosen: list[bytes] = draw(st.sampled_from(ways))
    return chosen


def test_every_proof_in_every_small_tree_is_the_defined_one() -> None:
    for size in SMALL:
        for index in range(size):
            path = SHARED.path(index, 0, size)
            assert resolve_path(SHARED, merkle.inclusion_path(index, size)) == path
            assert verify_inclusion(leaf_hash(SHARED.leaves[index]), index, size, path, SHARED.root(size))
        for first in range(size + 1):
            path = SHARED.proof(first, size) if 0 < first < size else []
            assert resolve_path(SHARED, merkle.consistency_path(first, size)) == path
            assert verify_consistency(first, size, path, SHARED.root(first), SHARED.root(size))


def test_no_other_index_and_no_other_leaf_is_proven_by_a_path_in_a_small_tree() -> None:
    for size in range(1, 18):
        hashes, root = [leaf_hash(each) for each in SHARED.leaves[:size]], SHARED.root(size)
        for index in range(size):
            path = SHARED.path(index, 0, size)
            proven = [
                (leaf, place)
                for leaf in range(size)
                for place in range(-1, size + 1)
                if verify_inclusion(hashes[leaf], place, size, path, root)
            ]
            assert proven == [(index, index)]


def test_a_tree_that_is_not_the_beginning_cannot_be_proven_to_be_one() -> None:
    other = DefinedTree(max(SMALL), seed=1)
    for second in SMALL:
        for first in range(1, second + 1):
            for path in (SHARED.proof(first, second), other.proof(first, second)):
                assert not verify_consistency(first, second, path, other.root(first), SHARED.root(second))


@pytest.mark.parametrize(
    ("first", "second"), [(-1, 0), (-1, 5), (5, 4), (1, 0), (0, -1), (-2, -2)], ids=lambda size: str(size)
)
def test_sizes_that_no_log_has_prove_nothing(first: int, second: int) -> None:
    for path in ([], [EMPTY_ROOT], [EMPTY_ROOT] * 3):
        assert not verify_consistency(first, second, path, EMPTY_ROOT, EMPTY_ROOT)
        assert not verify_inclusion(EMPTY_ROOT, first, second, path, EMPTY_ROOT)


def test_the_empty_log_is_the_beginning_of_every_log_and_of_itself() -> None:
    assert verify_consistency(0, 0, [], EMPTY_ROOT, EMPTY_ROOT)
    assert verify_consistency(0, 3, [], EMPTY_ROOT, SHARED.root(3))
    assert not verify_consistency(0, 0, [], EMPTY_ROOT, SHARED.root(3))
    assert not verify_consistency(0, 3, [], SHARED.root(3), SHARED.root(3))
    assert not verify_consistency(0, 3, [EMPTY_ROOT], EMPTY_ROOT, SHARED.root(3))


@pytest.mark.parametrize("size", [1, 2, 1000, 1_000_000, 2**24])
def test_a_proof_is_checked_with_one_hash_per_level_and_is_smaller_than_two_kilobytes(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []

    def counted(left: bytes, right: bytes) -> bytes:
        hashed.append(left)
        return node_hash(left, right)

    monkeypatch.setattr(verifier, "node_hash", counted)
    levels = (size - 1).bit_length()
    for index in {0, size // 3, size // 2, size - 1}:
        hashed.clear()
        path = [leaf_hash(bytes([level])) for level, _ in enumerate(merkle.inclusion_path(index, size))]
        # The path need not lead to the right root: the test counts hashes.
        assert not verify_inclusion(leaf_hash(b"leaf"), index, size, path, EMPTY_ROOT)
        assert len(hashed) == len(path) <= levels
        proof = {"index": index, "size": size, "leaf_hash": "0" * 64, "path": [each.hex() for each in path]}
        assert len(json.dumps(proof)) < 2048


def test_a_tree_keeps_one_hash_per_bit_of_its_size() -> None:
    tree = grown(SHARED.leaves)
    kept = sum(len(each) for each in vars(tree)["_peaks"])
    assert kept == LARGEST.bit_count() * 32
