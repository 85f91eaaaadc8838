"""Trees and paths agree with the recursive definition in RFC 6962."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ledger.merkle import MerkleFrontier, SubtreeId, consistency_path, fold_hashes, inclusion_path, peaks
from qwed.ledger.verifier import EMPTY_ROOT, Tree, leaf_hash, node_hash, verify_consistency, verify_inclusion

steady = settings(derandomize=True, database=None, deadline=None, max_examples=60)

LARGEST = 300
LEAVES = [f'{{"leaf":{number}}}'.encode() for number in range(LARGEST)]
HASHES = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in LEAVES]
SIZES = [*range(1, 34), 63, 64, 65, 127, 128, 129, 255, 256, 257, LARGEST]
SOME = st.integers(1, LARGEST)


# The definitions of the RFC


def _split(size: int) -> int:
    """Return the largest power of two smaller than the size."""
    k = 1
    while k * 2 < size:
        k *= 2
    return k


@lru_cache(None)
def mth(begin: int, end: int) -> bytes:
    """Return the hash of D[begin:end] (2.1)."""
    if begin == end:
        return hashlib.sha256(b"").digest()
    if end - begin == 1:
        return HASHES[begin]
    middle = begin + _split(end - begin)
    return hashlib.sha256(b"\x01" + mth(begin, middle) + mth(middle, end)).digest()


def path_of(m: int, begin: int, end: int) -> list[bytes]:
    """Return PATH(m, D[begin:end]) (2.1.1)."""
    if end - begin == 1:
        return []
    k = _split(end - begin)
    middle = begin + k
    if m < k:
        return [*path_of(m, begin, middle), mth(middle, end)]
    return [*path_of(m - k, middle, end), mth(begin, middle)]


def subproof(m: int, begin: int, end: int, complete: bool) -> list[bytes]:
    """Return SUBPROOF(m, D[begin:end], b) (2.1.2)."""
    if m == end - begin:
        return [] if complete else [mth(begin, end)]
    k = _split(end - begin)
    middle = begin + k
    if m <= k:
        return [*subproof(m, begin, middle, complete), mth(middle, end)]
    return [*subproof(m - k, middle, end, False), mth(begin, middle)]


# The code under test


def hash_at(subtree: SubtreeId) -> bytes:
    level, position = subtree
    return mth(position << level, position + 1 << level)


def _hashes(path: Sequence[Sequence[SubtreeId]]) -> list[bytes]:
    return [fold_hashes([hash_at(place) for place in subtrees]) for subtrees in path]


@pytest.mark.parametrize("size", [0, *SIZES])
def test_the_peaks_of_a_tree_join_to_its_root(size: int) -> None:
    assert fold_hashes([hash_at(subtree) for subtree in peaks(size)]) == mth(0, size)
    assert [level for level, _position in peaks(size)] == [bit for bit in range(20, -1, -1) if size >> bit & 1]


def test_the_empty_tree_has_the_root_of_the_rfc() -> None:
    assert fold_hashes([]) == EMPTY_ROOT == mth(0, 0) == MerkleFrontier(0, []).root()


@pytest.mark.parametrize("size", SIZES)
def test_the_audit_path_of_every_leaf_is_that_of_the_rfc_and_verifies(size: int) -> None:
    for index in range(size):
        path = _hashes(inclusion_path(index, size))
        assert path == path_of(index, 0, size)
        assert verify_inclusion(HASHES[index], index, size, path, mth(0, size))


@pytest.mark.parametrize("second", SIZES)
def test_the_path_between_any_two_sizes_is_that_of_the_rfc_and_verifies(second: int) -> None:
    for first in range(1, second + 1):
        path = _hashes(consistency_path(first, second))
        assert path == subproof(first, 0, second, True)
        assert verify_consistency(first, second, path, mth(0, first), mth(0, second))


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (5, 5), (6, 5), (-1, 5)])
def test_where_there_is_nothing_to_prove_the_path_is_empty(first: int, second: int) -> None:
    assert consistency_path(first, second) == []


@pytest.mark.parametrize("size", SIZES)
def test_a_path_names_complete_subtrees_of_the_tree_and_few_of_them(size: int) -> None:
    for index in range(size):
        every = [subtree for subtrees in inclusion_path(index, size) for subtree in subtrees]
        assert all(position + 1 << level <= size for level, position in every)
        assert len(every) <= 2 * size.bit_length()


# Growth


def test_a_tree_that_grows_leaf_by_leaf_has_the_root_of_the_rfc_at_every_size() -> None:
    frontier, tree = MerkleFrontier(0, []), Tree()
    for size, leaf in enumerate(LEAVES, 1):
        frontier.add(leaf)
        tree.add(leaf_hash(leaf))
        assert (frontier.size, frontier.root()) == (size, mth(0, size)) == (tree.size, tree.root())
        assert frontier.peak_hashes() == [hash_at(subtree) for subtree in peaks(size)]


def test_a_leaf_makes_known_its_own_hash_and_each_subtree_it_completes() -> None:
    frontier = MerkleFrontier(0, [])
    for index, leaf in enumerate(LEAVES):
        subtrees = [(level, index >> level) for level in range(20) if (index + 1) % (1 << level) == 0]
        assert frontier.add(leaf) == b"".join(hash_at(subtree) for subtree in subtrees)


@steady
@given(st.lists(SOME, max_size=12), SOME)
def test_any_number_of_batches_grows_what_one_batch_grows(cuts: list[int], size: int) -> None:
    at, borders, completed = 0, list[bytes](), list[bytes]()
    for cut in sorted({cut for cut in cuts if cut < size} | {size}):
        batch = MerkleFrontier(at, borders)
        completed += [batch.add(leaf) for leaf in LEAVES[at:cut]]
        assert batch.root() == mth(0, cut)
        for index in range(at, cut):
            assert batch.path(index) == path_of(index, 0, cut)
            assert batch.hex_path(index) == [digest.hex() for digest in path_of(index, 0, cut)]
        at, borders = cut, batch.peak_hashes()
    whole = MerkleFrontier(0, [])
    assert completed == [whole.add(leaf) for leaf in LEAVES[:size]]
    assert borders == whole.peak_hashes()


@steady
@given(SOME, SOME)
def test_what_lies_neither_at_the_border_nor_in_the_batch_is_not_guessed(size: int, more: int) -> None:
    frontier = MerkleFrontier(size, [hash_at(subtree) for subtree in peaks(size)])
    for leaf in LEAVES[: min(more, 5)]:
        frontier.add(leaf)
    hidden = [(0, index) for index in range(size) if (0, index) not in peaks(size)]
    for subtree in hidden[:5]:
        with pytest.raises(KeyError):
            frontier.hash_of([subtree])


@pytest.mark.parametrize("borders", [[], [b"1" * 32], [b"1" * 32] * 3], ids=["none", "too few", "too many"])
def test_a_tree_does_not_grow_from_a_border_that_is_not_one(borders: list[bytes]) -> None:
    with pytest.raises(ValueError, match="complete subtrees"):
        MerkleFrontier(5, borders)


def test_the_hashes_are_those_of_the_rfc() -> None:
    assert [leaf_hash(leaf) for leaf in LEAVES] == HASHES
    assert node_hash(HASHES[0], HASHES[1]) == mth(0, 2)
