"""Access lists for messages: blocked and trusted agents."""

import msgspec
import pytest

from qwed.model import ErrorCode
from qwed.store import change_handlers
from qwed.store.access_lists import AccessLists, ListEntry, ListName
from qwed.store.change_parts import Conflict, ListChanged, OrganisationActive, OrganisationHalted
from tests.support.stores import ORGANISATION, StoreFixture

EVE, TRUSTED = ListEntry(ListName.BLOCKS, "eve"), ListEntry(ListName.TRUSTED, "Ann")
PAIR = ListEntry(ListName.PAIRS, "eve", "bob")
SPELLINGS = [
    "eve",
    "EVE",
    "Eve",
    "\uff45\uff56\uff45",
    "\U0001d41e\U0001d42f\U0001d41e",
    " eve",
    "e\u200bve",
    "eve\u2060",
    *(f"e{unseen}ve" for unseen in "\u00ad\u034f\u115f\u180b\u2800\u3164\ufe0f\uffa0\U000e0100"),
]


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_block_is_not_dodged_by_spelling(name: str) -> None:
    blocked = AccessLists([EVE])
    assert blocked.blocks(name)
    assert blocked.refuses(name, "bob")
    assert blocked.refuses("bob", name)
    assert AccessLists([PAIR]).blocks_pair(name, "BOB")
    assert AccessLists([ListEntry(ListName.BLOCKS, name)]).blocks("eve")


@pytest.mark.parametrize("name", ["steve", "ev", "eve2", "e-ve", "bob", ""])
def test_another_name_is_not_blocked(name: str) -> None:
    assert not AccessLists([EVE]).blocks(name)


def test_a_pair_is_blocked_in_its_direction_only() -> None:
    blocked = AccessLists([PAIR])
    assert blocked.refuses("eve", "bob")
    assert not blocked.refuses("bob", "eve")
    assert not blocked.refuses("eve", "ann")
    assert not blocked.blocks("eve")


@pytest.mark.parametrize("name", ["ann", "ANN", "\uff21nn", "Ann ", "An\u200bn", ""])
def test_trust_is_in_the_very_name(name: str) -> None:
    trusted = AccessLists([TRUSTED])
    assert trusted.trusts("Ann")
    assert not trusted.trusts(name)
    assert not trusted.refuses("Ann", "bob")


@pytest.mark.parametrize("name", ["Ann", "ann", "\uff21nn", "An\u200bn", "\u0410nn", "\u00c4nn", "A\ufe0fnn"])
def test_a_name_that_would_be_taken_for_a_trusted_one_is_known_as_such(name: str) -> None:
    assert AccessLists([TRUSTED]).resembles_trusted(name)
    assert not AccessLists([TRUSTED]).resembles_trusted("hanna")
    assert not AccessLists([ListEntry(ListName.BLOCKS, "Ann")]).resembles_trusted(name)


def test_lists_that_changed_one_by_one_are_those_that_were_made_at_once() -> None:
    entries = [ListEntry(ListName.BLOCKS, "eve"), ListEntry(ListName.BLOCKS, "Eve"), PAIR, TRUSTED]
    grown = AccessLists()
    for entry in (*entries, *entries):
        grown = grown.with_change(entry, present=True)
    expected = AccessLists(entries)
    assert [grown.size(name) for name in ListName] == [expected.size(name) for name in ListName] == [2, 1, 1]
    assert grown.entries == expected.entries
    once = grown.with_change(entries[0], present=False)
    assert once.blocks("eve")
    assert not once.with_change(entries[1], present=False).blocks("eve")


def test_a_list_is_the_same_object_until_it_changes_and_known_after_a_restart(disk: StoreFixture) -> None:
    before = disk.store.access_lists(ORGANISATION)
    assert disk.store.access_lists(ORGANISATION) is before
    for entry in (EVE, PAIR, TRUSTED):
        assert isinstance(disk.change(ListChanged(ORGANISATION, entry, present=True)), int)
    assert disk.store.access_lists(ORGANISATION).entries == {EVE, PAIR, TRUSTED}
    disk.reopened()
    assert disk.store.access_lists(ORGANISATION).entries == {EVE, PAIR, TRUSTED}
    assert disk.store.access_lists("org_2").entries == frozenset()
    assert isinstance(disk.change(ListChanged(ORGANISATION, PAIR, present=False)), int)
    assert disk.reopened().store.access_lists(ORGANISATION).entries_of(ListName.PAIRS) == []


def test_what_is_there_is_not_put_there_twice_and_what_is_not_is_not_taken_away(store_fixture: StoreFixture) -> None:
    assert store_fixture.change(ListChanged(ORGANISATION, EVE, present=False)) is Conflict.STALE
    store_fixture.change(ListChanged(ORGANISATION, EVE, present=True))
    assert store_fixture.change(ListChanged(ORGANISATION, EVE, present=True)) is Conflict.STALE


def test_a_list_has_an_end(store_fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_handlers, "MAX_LIST_ENTRIES", 2)
    for name in ("a", "b"):
        assert isinstance(
            store_fixture.change(ListChanged(ORGANISATION, ListEntry(ListName.BLOCKS, name), present=True)), int
        )
    assert store_fixture.change(ListChanged(ORGANISATION, EVE, present=True)) is Conflict.FULL
    assert isinstance(store_fixture.change(ListChanged(ORGANISATION, TRUSTED, present=True)), int)


def test_a_message_is_refused_where_somebody_was_blocked_or_stopped_meanwhile(store_fixture: StoreFixture) -> None:
    stands = OrganisationActive(ORGANISATION, "Eve", "bob")
    assert isinstance(store_fixture.change(stands), int)
    store_fixture.change(ListChanged(ORGANISATION, EVE, present=True))
    assert store_fixture.change(stands) is Conflict.BLOCKED
    store_fixture.change(OrganisationHalted(ORGANISATION, 1.0))
    assert store_fixture.change(stands) is Conflict.HALTED


def test_a_decision_about_a_message_does_not_commit_once_the_pair_is_blocked(store_fixture: StoreFixture) -> None:
    agent = store_fixture.store.find_agent("agent_1")
    reservation = store_fixture.reserve(agent, 1)
    store_fixture.change(ListChanged(ORGANISATION, ListEntry(ListName.PAIRS, "agent_1", "bob"), present=True))
    request = store_fixture.commit_request(agent, reservation)  # type: ignore[arg-type]  # reserved
    sent = msgspec.structs.replace(request, pair=("agent_1", "BOB"))
    assert store_fixture.outcome(store_fixture.store.commit(sent)) is ErrorCode.MESSAGE_BLOCKED
