"""A write becomes part of the log under a signed head as a whole, or not at all (DESIGN 7)."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from qwed.domain.change_parts import ToolChanged
from qwed.domain.write_set import Committed, WriteSet
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.merkle import consistency_path, fold_hashes, inclusion_path, peaks
from qwed.ledger.sequencer import Sequencer, head_from
from qwed.ledger.verifier import Tree, leaf_hash, read_head, verify_consistency, verify_inclusion
from qwed.model import Decision
from qwed.store.data_directory import FILE_NAME
from qwed.store.protocol import LogEntry, StoreError
from qwed.store.sqlite import SqliteStore
from tests.support.manual_clock import ManualClock
from tests.support.stores import KEYRING, ORGANISATION, StoreFixture, owner_key

OTHER = "org_2"


def _told(store_fixture: StoreFixture, number: int, organisation_id: str = ORGANISATION) -> WriteSet:
    """Return a change with a leaf of its own."""
    change = store_fixture.change_of(organisation_id=organisation_id, agent_id="")
    activity = replace(change.activity, activity_id=f"act_{organisation_id}_{number}", leaf=f'{{"leaf":{number}}}')
    return msgspec.structs.replace(change, activity=activity)


def _tell(store_fixture: StoreFixture, count: int, organisation_id: str = ORGANISATION) -> list[Any]:
    """Make several changes at once; return their receipts."""
    begin = store_fixture.next_index(organisation_id)
    tickets = [
        store_fixture.store.commit(_told(store_fixture, number, organisation_id))
        for number in range(begin, begin + count)
    ]
    return [ticket.wait_result(30) for ticket in tickets]


def _root(count: int) -> bytes:
    tree = Tree()
    for number in range(count):
        tree.add(leaf_hash(f'{{"leaf":{number}}}'.encode()))
    return tree.root()


def _read(signature: str | None) -> Any:
    """Return the claims of a head, verified with the public keys."""
    assert signature is not None
    return read_head(msgspec.to_builtins(head_from(signature)), KEYRING.public_keys())


def _damage(store_fixture: StoreFixture, statement: str, *values: Any) -> None:
    """WriteSet the database behind the store's back."""
    with sqlite3.connect(store_fixture.directory / FILE_NAME, isolation_level=None) as other:
        assert other.execute(statement, values).rowcount > 0
    other.close()


# Growth


@pytest.mark.parametrize("counts", [(1,), (1, 1, 1), (5, 8, 1), (40, 3)], ids=str)
def test_every_commit_ends_in_a_head_that_anybody_can_check(
    store_fixture: StoreFixture, counts: tuple[int, ...]
) -> None:
    size = 0
    for count in counts:
        _tell(store_fixture, count)
        size += count
        head = _read(store_fixture.store.latest_head(ORGANISATION))
        assert (head.log_id, head.size, head.root) == (ORGANISATION, size, _root(size))
        assert store_fixture.store.log_size(ORGANISATION) == store_fixture.store.leaves(ORGANISATION) == size


def test_an_empty_log_has_no_head(store_fixture: StoreFixture) -> None:
    store = store_fixture.store
    assert (store.log_size(ORGANISATION), store.latest_head(ORGANISATION), store.latest_heads()) == (0, None, [])
    assert (store.first_head(ORGANISATION, 0), store.head_at(ORGANISATION, 0)) == (None, None)
    assert (store.entries(ORGANISATION, 0, 10), store.log_size("org_9")) == ([], 0)


def test_the_logs_of_two_organisations_grow_apart_also_in_one_commit(disk: StoreFixture) -> None:
    disk.store.add_organisation(OTHER, "second", 1.0, owner_key("key_2", OTHER, "qwed_live_b")).wait_result(30)
    with disk.stopped():
        tickets = []
        for number in range(6):
            tickets.append(disk.store.commit(_told(disk, number)))
            if number % 2:
                tickets.append(disk.store.commit(_told(disk, number // 2, OTHER)))
    for ticket in tickets:
        ticket.wait_result(30)
    heads = {head.log_id: (head.size, head.root) for head in map(_read, disk.store.latest_heads())}
    assert heads == {ORGANISATION: (6, _root(6)), OTHER: (3, _root(3))}


def test_a_change_that_also_stands_in_another_log_stands_in_both_or_in_none(disk: StoreFixture) -> None:
    disk.store.add_organisation(OTHER, "second", 1.0, owner_key("key_2", OTHER, "qwed_live_b")).wait_result(30)
    both = msgspec.structs.replace(_told(disk, 0), linked=_told(disk, 0, OTHER))
    with disk.broken(), pytest.raises(StoreError):
        disk.store.commit(both).wait_result(30)
    assert (disk.store.log_size(ORGANISATION), disk.store.log_size(OTHER)) == (0, 0)
    receipt = disk.store.commit(both).wait_result(30)
    assert (receipt.log_index, receipt.position.head.log_id) == (0, ORGANISATION)
    assert [_read(head).root for head in disk.store.latest_heads()] == [_root(1), _root(1)]


def test_a_log_grows_on_after_a_restart(disk: StoreFixture) -> None:
    for count in (3, 1, 4):
        _tell(disk, count)
        disk.reopened()
    _tell(disk, 2)
    assert _read(disk.store.latest_head(ORGANISATION)).root == _root(10)


def test_many_who_write_at_once_make_one_log(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")

    def write(conversation: str) -> list[Any]:
        return [disk.commit(agent, step, conversation) for step in range(1, 16)]

    threads = [threading.Thread(target=write, args=(f"c{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    entries = disk.store.entries(ORGANISATION, 0, 100)
    assert [entry.log_index for entry in entries] == list(range(60))
    tree = Tree()
    for entry in entries:
        tree.add(leaf_hash(entry.leaf.encode()))
    assert _read(disk.store.latest_head(ORGANISATION)).root == tree.root()


def test_whoever_is_answered_is_told_where_the_leaf_stands(disk: StoreFixture) -> None:
    for receipt in _tell(disk, 7):
        position = receipt.position
        path = [bytes.fromhex(digest) for digest in position.path()]
        head = _read(position.head.signature)
        leaf = leaf_hash(f'{{"leaf":{receipt.log_index}}}'.encode())
        assert position.index == receipt.log_index < head.size
        assert verify_inclusion(leaf, position.index, head.size, path, head.root)
        assert disk.store.first_head(ORGANISATION, receipt.log_index) == position.head.signature


def test_a_decision_is_told_where_it_stands_beside_the_trust_it_costs(disk: StoreFixture) -> None:
    receipt = disk.settle(disk.store.find_agent("agent_1"), None, Decision.DENIED)
    assert isinstance(receipt, Committed)
    assert receipt.position is not None
    assert (receipt.position.index, receipt.position.head.size) == (0, 1)


def test_memory_writes_nothing_through_and_gives_no_place(tmp_path: Path) -> None:
    store_fixture = StoreFixture("memory", tmp_path, ManualClock())
    assert [receipt.position for receipt in _tell(store_fixture, 2)] == [None, None]
    assert _read(store_fixture.store.latest_head(ORGANISATION)).root == _root(2)
    store_fixture.store.close()


def test_whoever_listens_hears_which_logs_have_grown(store_fixture: StoreFixture) -> None:
    heard: list[str] = []
    store_fixture.store.on_commit = heard.extend
    _tell(store_fixture, 1)
    store_fixture.store.durable().wait_result(30)
    assert heard == [ORGANISATION]
    store_fixture.write("INSERT INTO meta VALUES ('a', 'b')")
    store_fixture.store.durable().wait_result(30)
    assert heard == [ORGANISATION], "what is no leaf makes no log grow"


# Reads


def test_heads_are_found_by_the_leaf_they_first_contain_and_by_their_size(disk: StoreFixture) -> None:
    heads = {}
    for count in (3, 1, 4):
        last = _tell(disk, count)[-1].position.head
        heads[last.size] = last.signature
    sizes = [_read(row[0]).size for row in disk.rows("SELECT signature FROM heads ORDER BY size")]
    for index in range(8):
        first = next(size for size in sizes if size > index)
        assert _read(disk.store.first_head(ORGANISATION, index)).size == first
    assert disk.store.first_head(ORGANISATION, 8) is None
    for size in range(10):
        head = disk.store.head_at(ORGANISATION, size)
        assert (head is None) == (size not in sizes)
        assert head is None or _read(head).size == size
    assert disk.store.latest_head(ORGANISATION) == heads[8]
    assert disk.store.latest_heads() == [heads[8]]
    assert disk.store.organisation_heads() == [(ORGANISATION, heads[8])]
    assert disk.store.first_head(OTHER, 0) is None


def test_entries_are_read_in_order_from_anywhere(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, 10)
    every = [LogEntry(number, f'{{"leaf":{number}}}') for number in range(10)]
    for begin in (0, 3, 9, 10, 99):
        for limit in (1, 4, 100):
            assert store_fixture.store.entries(ORGANISATION, begin, limit) == every[begin : begin + limit]
    assert store_fixture.store.entries(OTHER, 0, 10) == []


def test_a_page_of_large_leaves_ends_early_and_the_next_one_goes_on(
    store_fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("sqlite", "postgres.store"):
        monkeypatch.setattr(f"qwed.store.{kind}.MAX_PAGE_CHARACTERS", 30)
    _tell(store_fixture, 10)
    read: list[LogEntry] = []
    while page := store_fixture.store.entries(ORGANISATION, len(read), 100):
        assert len(page) < 6
        read += page
    assert [entry.log_index for entry in read] == list(range(10))


def test_an_activity_is_found_at_its_place_in_its_own_log_alone(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, 3)
    assert [store_fixture.store.log_index_of(ORGANISATION, f"act_org_1_{number}") for number in range(4)] == [
        0,
        1,
        2,
        None,
    ]
    assert store_fixture.store.log_index_of(OTHER, "act_org_1_0") is None


def test_an_attestation_is_found_with_its_activity(store_fixture: StoreFixture) -> None:
    agent = store_fixture.store.find_agent("agent_1")
    reservation = store_fixture.reserve(agent, 1)
    store_fixture.settle(agent, reservation, attested=True, activity_id="act_attested")  # type: ignore[arg-type]  # held
    record = store_fixture.store.find_attestation("att_act_attested")
    assert (record.log_index, record.organisation_id) == (0, ORGANISATION)
    assert store_fixture.store.find_attestation("att_9") is None


def _subtrees(size: int) -> list[tuple[int, int]]:
    levels = range(size.bit_length())
    return [(level, position) for level in levels for position in range(size >> level)]


def test_every_complete_subtree_is_kept_as_it_would_be_computed(disk: StoreFixture) -> None:
    """Covers every log of up to 300 leaves, because each is a prefix of this one."""
    for count in (1, 2, 60, 100, 137):
        _tell(disk, count)
    hashes = {(0, number): leaf_hash(f'{{"leaf":{number}}}'.encode()) for number in range(300)}
    for level, position in _subtrees(300):
        if level:
            halves = [hashes[level - 1, 2 * position], hashes[level - 1, 2 * position + 1]]
            hashes[level, position] = fold_hashes(halves)
    assert disk.store.nodes(ORGANISATION, list(hashes)) == list(hashes.values())
    assert disk.store.nodes(ORGANISATION, []) == []
    for size in (1, 2, 3, 5, 63, 64, 200, 299, 300):
        assert fold_hashes(disk.store.nodes(ORGANISATION, peaks(size))) == _root(size)


def _hashes(store_fixture: StoreFixture, path: Sequence[Sequence[tuple[int, int]]]) -> list[bytes]:
    return [fold_hashes(store_fixture.store.nodes(ORGANISATION, places)) for places in path]


def test_proofs_from_what_is_kept_hold(disk: StoreFixture) -> None:
    _tell(disk, 37)
    for size in (1, 2, 31, 32, 33, 37):
        for index in {0, size // 2, size - 1}:
            leaf = leaf_hash(f'{{"leaf":{index}}}'.encode())
            assert verify_inclusion(leaf, index, size, _hashes(disk, inclusion_path(index, size)), _root(size))
        for first in range(1, size + 1):
            path = _hashes(disk, consistency_path(first, size))
            assert verify_consistency(first, size, path, _root(first), _root(size))


@pytest.mark.parametrize("place", [(0, 5), (1, 2), (2, 1), (3, 0), (0, -1), (60, 0)], ids=str)
def test_a_subtree_that_is_not_complete_is_not_made_up(store_fixture: StoreFixture, place: tuple[int, int]) -> None:
    _tell(store_fixture, 5)
    with pytest.raises(ValueError, match="lacks the hash of subtree"):
        store_fixture.store.nodes(ORGANISATION, [(0, 0), place])


# Failed writes


def _only_whole(store_fixture: StoreFixture, size: int) -> None:
    """Assert that leaves, hashes and heads agree, and the number of leaves."""
    rows = store_fixture.rows("SELECT log_index, leaf, nodes FROM activities ORDER BY log_index")
    assert [row[0] for row in rows] == list(range(size))
    assert all(nodes.startswith(leaf_hash(leaf.encode()).hex()) for _index, leaf, nodes in rows)
    sizes = [row[0] for row in store_fixture.rows("SELECT size FROM heads ORDER BY size")]
    assert (sizes[-1] if sizes else 0) == size == store_fixture.store.log_size(ORGANISATION)
    tree = Tree()
    for _index, leaf, _nodes in rows:
        tree.add(leaf_hash(leaf.encode()))
        if tree.size in sizes:
            assert _read(store_fixture.store.head_at(ORGANISATION, tree.size)).root == tree.root()


@pytest.mark.parametrize("at", ["activities", "heads", "daily_totals", "usage"])
def test_a_batch_that_fails_anywhere_leaves_neither_leaf_nor_head_and_the_next_goes_on(
    disk: StoreFixture, at: str
) -> None:
    agent = disk.store.find_agent("agent_1")
    _tell(disk, 3)
    with disk.failing_inserts(at):
        for _ in range(3):
            with disk.held():
                tickets = [
                    disk.store.commit(disk.write_set(agent, None, Decision.DENIED, attested=True)) for _ in range(4)
                ]
            for ticket in tickets:
                with pytest.raises(StoreError):
                    ticket.wait_result(30)
    _only_whole(disk, 3)
    _tell(disk, 2)
    _only_whole(disk, 5)
    assert _read(disk.store.latest_head(ORGANISATION)).root == _root(5)
    disk.reopened()
    _only_whole(disk, 5)


def test_what_a_sequencer_cannot_sign_is_not_kept(disk: StoreFixture) -> None:
    _tell(disk, 3)
    noon, disk.manual_clock.now = disk.manual_clock.now, 1e300
    with pytest.raises(StoreError, match="could not write"):
        _tell(disk, 1)
    disk.manual_clock.now = noon
    _only_whole(disk, 3)
    _tell(disk, 1)
    _only_whole(disk, 4)


def test_a_head_that_is_there_already_stops_the_commit_and_is_not_written_over(file: StoreFixture) -> None:
    _tell(file, 3)
    forged = Sequencer(fresh_keyring(), file.manual_clock.clock()).sign(ORGANISATION, 4, b"0" * 32).signature
    _damage(file, "INSERT INTO heads VALUES (?, 4, ?)", ORGANISATION, forged)
    with pytest.raises(StoreError, match="UNIQUE"):
        _tell(file, 1)
    assert file.store.head_at(ORGANISATION, 4) == forged
    assert file.store.leaves(ORGANISATION) == 3


DAMAGES: dict[str, tuple[str, ...]] = {
    "another hash": (
        "UPDATE activities SET nodes = replace(nodes, substr(nodes, 1, 8), '00000000') WHERE log_index = 4",
    ),
    "the hash of another leaf": (
        "UPDATE activities SET nodes = (SELECT nodes FROM activities WHERE log_index = 2) WHERE log_index = 4",
    ),
    "half a hash": ("UPDATE activities SET nodes = substr(nodes, 1, 40) WHERE log_index = 4",),
    "no hash": ("UPDATE activities SET nodes = '' WHERE log_index = 4",),
    "what is no hash": ("UPDATE activities SET nodes = 'x' || substr(nodes, 2) WHERE log_index = 4",),
    "an earlier subtree": (
        "UPDATE activities SET nodes = substr(nodes, 1, 128) || substr(nodes, 1, 64) WHERE log_index = 3",
    ),
    "a head that says something else": ("UPDATE heads SET signature = 'a.b.c' WHERE size = 5",),
    "no head": ("DELETE FROM heads WHERE size = 5",),
    "an earlier head": ("UPDATE heads SET signature = (SELECT signature FROM heads WHERE size = 3) WHERE size = 5",),
    "hash and head of a log that was cut": (
        "UPDATE activities SET nodes = (SELECT nodes FROM activities WHERE log_index = 2) WHERE log_index = 4",
        "UPDATE heads SET signature = (SELECT signature FROM heads WHERE size = 3) WHERE size = 5",
    ),
}


@pytest.mark.parametrize("forgets", ["after a restart", "after a failed commit"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_log_that_was_changed_on_disk_does_not_grow_into_a_wrong_root(
    file: StoreFixture, damage: tuple[str, ...], forgets: str
) -> None:
    _tell(file, 3)
    _tell(file, 2)
    if forgets == "after a failed commit":
        with file.broken(), pytest.raises(StoreError):
            _tell(file, 1)
    for statement in damage:
        _damage(file, statement)
    if forgets == "after a restart":
        file.reopened()
    for _ in range(2):
        with pytest.raises(StoreError, match="could not write"):
            _tell(file, 1)
    assert file.store.leaves(ORGANISATION) == 5
    assert file.rows("SELECT max(size) FROM heads WHERE size > 5") == [(None,)]


def test_a_log_that_was_changed_does_not_stop_those_of_others(file: StoreFixture) -> None:
    file.store.add_organisation(OTHER, "second", 1.0, owner_key("key_2", OTHER, "qwed_live_b")).wait_result(30)
    _tell(file, 3)
    _tell(file, 3, OTHER)
    _damage(file, "UPDATE activities SET nodes = '' WHERE organisation_id = ?", ORGANISATION)
    file.reopened()
    with pytest.raises(StoreError):
        _tell(file, 1)
    _tell(file, 2, OTHER)
    assert _read(file.store.latest_head(OTHER)).root == _root(5)


def test_a_store_whose_keys_are_of_another_node_does_not_grow_the_log(file: StoreFixture) -> None:
    _tell(file, 3)
    file.store.close()
    clock = file.manual_clock.clock()
    file.store = SqliteStore(file.directory, clock=clock, sequencer=Sequencer(fresh_keyring(), clock))
    with pytest.raises(StoreError, match="could not write"):
        _tell(file, 1)
    assert file.reopened().store.leaves(ORGANISATION) == 3
    _tell(file, 1)


def test_a_failed_commit_does_not_cost_a_place(disk: StoreFixture) -> None:
    """Listeners see indexes without a gap, whatever failed in between."""
    for number in range(4):
        with disk.broken(), pytest.raises(StoreError):
            disk.change(ToolChanged(ORGANISATION, "t", b"1"))
        assert disk.change(ToolChanged(ORGANISATION, f"t{number}", b"1")) == number
    _only_whole(disk, 4)
