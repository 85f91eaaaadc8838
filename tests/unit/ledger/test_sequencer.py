"""Leaves are appended in order under a signed head, and only to a log that matches its signature."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ledger import sequencer as sequencing
from qwed.ledger.keyring import Keyring, fresh_keyring
from qwed.ledger.merkle import SubtreeId
from qwed.ledger.sequencer import Head, Integration, Sequencer, head_from
from qwed.ledger.verifier import InvalidEvidenceError, Tree, leaf_hash, read_head, verify_inclusion
from tests.support.log_builder import b64, unb64
from tests.support.manual_clock import ManualClock

steady = settings(derandomize=True, database=None, deadline=None, max_examples=40)

LOG, OTHER = "org_1", "org_2"
KEYRING = fresh_keyring()
Leaf = tuple[str, int, str]


def _leaves(count: int, log: str = LOG, begin: int = 0) -> list[Leaf]:
    return [(log, index, f'{{"leaf":{index}}}') for index in range(begin, begin + count)]


def _root(leaves: Sequence[Leaf]) -> str:
    tree = Tree()
    for _log, _index, text in leaves:
        tree.add(leaf_hash(text.encode()))
    return tree.root().hex()


class Shelf:
    """Nodes and heads, stored as the tables store them."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, int], str] = {}
        self.heads: dict[tuple[str, int], str] = {}
        self.read_count = 0

    def keep(self, leaves: Sequence[Leaf], grown: Integration) -> Integration:
        self.nodes |= {(log, index): text for (log, index, _leaf), text in zip(leaves, grown.nodes, strict=True)}
        self.heads |= {(log, head.size): head.signature for log, head in grown.heads.items()}
        return grown

    def read(self, log: str, size: int, places: Sequence[SubtreeId]) -> tuple[list[bytes], str | None]:
        self.read_count += 1
        texts = [self.nodes[log, (position + 1 << level) - 1][64 * level :][:64] for level, position in places]
        return [bytes.fromhex(text) for text in texts], self.heads.get((log, size))


class Desk:
    """Sequencer and its storage."""

    def __init__(self, keyring: Keyring | None = None) -> None:
        self.keyring = keyring or fresh_keyring()
        self.manual_clock = ManualClock()
        self.shelf = Shelf()
        self.restart()

    def restart(self) -> None:
        self.sequencer = Sequencer(self.keyring, self.manual_clock.clock())

    def put(self, leaves: Sequence[Leaf]) -> Integration:
        return self.shelf.keep(leaves, self.sequencer.integrate(leaves, self.shelf.read))

    def believed(self, head: Head) -> Any:
        """Return the claims of a head, verified with the published keys."""
        return read_head(msgspec.to_builtins(head), self.keyring.public_keys())


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_batch_ends_in_a_head_that_anybody_can_check(desk: Desk) -> None:
    leaves = _leaves(5)
    head = desk.put(leaves).heads[LOG]
    assert head == Head(log_id=LOG, size=5, root=_root(leaves), time="2026-09-21T12:00:00Z", signature=head.signature)
    assert desk.believed(head) == (LOG, 5, bytes.fromhex(head.root), head.time, desk.keyring.current.kid)


def test_a_head_is_signed_over_canonical_bytes_under_a_header_of_three_members(desk: Desk) -> None:
    head = desk.put(_leaves(1)).heads[LOG]
    header, payload, _signature = head.signature.split(".")
    kid = desk.keyring.current.kid
    assert unb64(header) == f'{{"alg":"ES256","kid":"{kid}","typ":"qwed-head+jwt"}}'.encode()
    assert unb64(payload) == f'{{"log_id":"{LOG}","root":"{head.root}","size":1,"time":"{head.time}"}}'.encode()


def test_what_was_signed_is_read_back_from_the_signature_alone(desk: Desk) -> None:
    head = desk.put(_leaves(3)).heads[LOG]
    assert head_from(head.signature) == head


def test_a_changed_head_is_believed_by_nobody(desk: Desk) -> None:
    head = desk.put(_leaves(3)).heads[LOG]
    for changed in ({"size": 2}, {"root": "0" * 64}, {"log_id": OTHER}, {"time": "2026-09-21T12:00:01Z"}):
        with pytest.raises(InvalidEvidenceError):
            desk.believed(msgspec.structs.replace(head, **changed))


@steady
@given(st.lists(st.integers(1, 120), max_size=8), st.integers(1, 120), st.booleans())
def test_any_number_of_batches_makes_the_log_that_one_batch_makes(cuts: list[int], size: int, forgets: bool) -> None:
    desk, whole = Desk(KEYRING), Desk(KEYRING)
    leaves = _leaves(size)
    one = whole.put(leaves)
    at = 0
    for cut in sorted({cut for cut in cuts if cut < size} | {size}):
        if forgets:
            desk.sequencer.reset()
        last = desk.put(leaves[at:cut])
        assert (last.heads[LOG].size, last.heads[LOG].root) == (cut, _root(leaves[:cut]))
        at = cut
    assert desk.shelf.nodes == whole.shelf.nodes
    assert last.heads[LOG] == one.heads[LOG]


@steady
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 60))
def test_the_logs_of_several_organisations_grow_side_by_side(order: list[str], cut: int) -> None:
    desk = Desk(KEYRING)
    sizes: dict[str, int] = {}
    leaves: list[Leaf] = []
    for log in order:
        leaves.append((log, sizes.get(log, 0), f'{{"{log}":{len(leaves)}}}'))
        sizes[log] = sizes.get(log, 0) + 1
    for batch in filter(None, (leaves[:cut], leaves[cut:])):
        grown = desk.put(batch)
        assert set(grown.heads) == {log for log, _index, _text in batch}
    for log, size in sizes.items():
        own = [leaf for leaf in leaves if leaf[0] == log]
        newest = head_from(desk.shelf.heads[log, size])
        assert (newest.log_id, newest.size, newest.root) == (log, len(own), _root(own))


def test_every_leaf_is_placed_under_the_head_of_its_batch_with_a_path_that_holds(desk: Desk) -> None:
    for begin, count in ((0, 3), (3, 1), (4, 9)):
        leaves = _leaves(count, begin=begin)
        grown = desk.put(leaves)
        for log, index, text in leaves:
            position = grown.position(log, index)
            path = [bytes.fromhex(digest) for digest in position.path()]
            root = bytes.fromhex(position.head.root)
            assert (position.index, position.head.size) == (index, begin + count)
            assert verify_inclusion(leaf_hash(text.encode()), index, position.head.size, path, root)


def test_an_earlier_place_stays_what_it_was_when_the_log_grows_on(desk: Desk) -> None:
    grown = desk.put(_leaves(3))
    before = [grown.position(LOG, index).path() for index in range(3)]
    desk.put(_leaves(5, begin=3))
    assert [grown.position(LOG, index).path() for index in range(3)] == before


ASTRAY: dict[str, list[Leaf]] = {
    "a gap": _leaves(1, begin=4),
    "a gap inside": [*_leaves(1, begin=3), *_leaves(1, begin=5)],
    "twice the same": [*_leaves(1, begin=3), *_leaves(1, begin=3)],
    "backwards": [*_leaves(1, begin=4), *_leaves(1, begin=3)],
    "a gap in another log": [*_leaves(1, begin=3), *_leaves(1, OTHER, 0), *_leaves(1, OTHER, 2)],
}


@pytest.mark.parametrize("known", [True, False], ids=["as it was left", "after a restart"])
@pytest.mark.parametrize("leaves", ASTRAY.values(), ids=ASTRAY)
def test_a_leaf_out_of_its_place_is_refused(desk: Desk, leaves: list[Leaf], known: bool) -> None:
    desk.put(_leaves(3))
    if not known:
        desk.restart()
    with pytest.raises((ValueError, KeyError), match=r"does not follow|org_1"):
        desk.sequencer.integrate(leaves, desk.shelf.read)


@pytest.mark.parametrize("lost", [1, 2, 3, 5, 8])
def test_after_what_was_not_kept_the_log_goes_on_from_what_is(desk: Desk, lost: int) -> None:
    stored = _leaves(3)
    desk.put(stored)
    desk.sequencer.integrate([(LOG, 3 + number, "lost") for number in range(lost)], desk.shelf.read)
    desk.sequencer.reset()
    more = _leaves(4, begin=3)
    assert desk.put(more).heads[LOG].root == _root([*stored, *more])


def test_what_grows_is_not_read_again_each_time(desk: Desk) -> None:
    for begin in range(20):
        desk.put(_leaves(1, begin=begin))
    assert desk.shelf.read_count == 0
    desk.restart()
    for begin in range(20, 40):
        desk.put(_leaves(1, begin=begin))
    assert desk.shelf.read_count == 1


def test_no_more_logs_are_kept_in_mind_than_there_may_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencing, "MAX_CACHED_LOGS", 4)
    logs = [f"org_{number}" for number in range(10)]
    for index in range(3):
        batch = [(log, index, f'{{"leaf":{index}}}') for log in logs]
        before = desk.shelf.read_count
        grown = desk.put(batch)
        # What is not kept is read again.
        assert index == 0 or desk.shelf.read_count - before >= len(logs) - 4
    assert {head.root for head in grown.heads.values()} == {_root(_leaves(3))}


def test_heads_are_signed_with_the_present_key_and_old_ones_stay_good(desk: Desk) -> None:
    first = desk.put(_leaves(3)).heads[LOG]
    new = desk.keyring.rotate()
    desk.restart()
    second = desk.put(_leaves(2, begin=3)).heads[LOG]
    assert [desk.believed(head).size for head in (first, second)] == [3, 5]
    assert desk.believed(second).kid == new.kid != desk.believed(first).kid


def test_a_head_says_when_it_was_signed_to_the_millisecond(desk: Desk) -> None:
    desk.manual_clock.advance(0.25)
    head = desk.put(_leaves(1)).heads[LOG]
    assert head.time == "2026-09-21T12:00:00.250Z"
    assert desk.believed(head).time == head.time


# A log that does not match its signature does not grow


def _node(change: Callable[[str], str], at: int = 4) -> Callable[[Desk], None]:
    def damage(desk: Desk) -> None:
        desk.shelf.nodes[LOG, at] = change(desk.shelf.nodes[LOG, at])

    return damage


def _head(change: Callable[[Desk, str], str | None]) -> Callable[[Desk], None]:
    def damage(desk: Desk) -> None:
        signature = change(desk, desk.shelf.heads.pop((LOG, 5)))
        if signature is not None:
            desk.shelf.heads[LOG, 5] = signature

    return damage


def _resigned(signature: str, **members: Any) -> str:
    """Return the head with other members under its old signature."""
    header, payload, signed = signature.split(".")
    return f"{header}.{b64(msgspec.json.encode({**msgspec.json.decode(unb64(payload)), **members}))}.{signed}"


def _flipped(text: str, at: int = -1) -> str:
    digits = list(text)
    digits[at] = "0" if digits[at] != "0" else "1"
    return "".join(digits)


DAMAGES: dict[str, Callable[[Desk], None]] = {
    "another hash of the last leaf": _node(_flipped),
    "another hash of an earlier subtree": _node(_flipped, at=3),
    "half a hash": _node(lambda text: text[:32]),
    "no hash": _node(lambda _text: ""),
    "what is no hash": _node(lambda _text: "x" * 64),
    "spaces": _node(lambda text: " " * 32 + text[:32]),
    "the hash of another leaf": lambda desk: desk.shelf.nodes.update({(LOG, 4): desk.shelf.nodes[LOG, 2]}),
    "no row": lambda desk: desk.shelf.nodes.update({(LOG, 4): ""}),
    "no head": _head(lambda _desk, _signature: None),
    "an empty head": _head(lambda _desk, _signature: ""),
    "what is no head": _head(lambda _desk, _signature: "a.b.c"),
    "half a head": _head(lambda _desk, signature: signature[:60]),
    "a head that is no JSON": _head(lambda _desk, signature: f"{signature.split('.')[0]}.{b64(b'{')}.x"),
    "another root, unsigned": _head(lambda _desk, signature: _resigned(signature, root="0" * 64)),
    "an earlier head": _head(lambda desk, _signature: desk.shelf.heads[LOG, 3]),
    "the head of another log": _head(lambda desk, _signature: desk.shelf.heads[OTHER, 5]),
    "the signature of somebody else": _head(
        lambda _desk, _signature: (
            Sequencer(fresh_keyring(), ManualClock().clock()).sign(LOG, 5, bytes.fromhex(_root(_leaves(5)))).signature
        )
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_log_that_was_changed_where_it_is_kept_does_not_grow(desk: Desk, damage: Callable[[Desk], None]) -> None:
    for begin, count in ((0, 3), (3, 2)):
        desk.put([*_leaves(count, begin=begin), *_leaves(count, OTHER, begin)])
    nodes, heads = dict(desk.shelf.nodes), dict(desk.shelf.heads)
    damage(desk)
    desk.restart()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"."):
            desk.put(_leaves(1, begin=5))
    desk.put(_leaves(1, OTHER, 5))
    desk.shelf.nodes.update({key: text for key, text in nodes.items() if key[0] == LOG})
    desk.shelf.heads.update({key: text for key, text in heads.items() if key[0] == LOG})
    assert desk.put(_leaves(1, begin=5)).heads[LOG].root == _root(_leaves(6)), "once it is what it was it goes on"


@pytest.mark.parametrize("signature", ["", ".", "a", "a.b", "a.!.c", f"a.{b64(b'[]')}.c", f"a.{b64(b'{}')}.c", "a.é.c"])
def test_what_is_no_head_is_not_read_as_one(signature: str) -> None:
    with pytest.raises(ValueError, match="a stored head is damaged"):
        head_from(signature)
