"""The lists that messages are held against: whom an owner blocks and trusts."""

import msgspec
import pytest

from qwed.store import changes
from qwed.store.boundary import Boundary, Entry, ListName
from qwed.store.parts import Conflict, ListChanged, OrganisationHalted, OrganisationStands
from qwed.words import ErrorCode
from tests.support.stores import ORGANISATION, Shop

EVE, TRUSTED = Entry(ListName.BLOCKS, "eve"), Entry(ListName.TRUSTED, "Ann")
PAIR = Entry(ListName.PAIRS, "eve", "bob")
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
    blocked = Boundary([EVE])
    assert blocked.blocks(name)
    assert blocked.refuses(name, "bob")
    assert blocked.refuses("bob", name)
    assert Boundary([PAIR]).blocks_pair(name, "BOB")
    assert Boundary([Entry(ListName.BLOCKS, name)]).blocks("eve")


@pytest.mark.parametrize("name", ["steve", "ev", "eve2", "e-ve", "bob", ""])
def test_another_name_is_not_blocked(name: str) -> None:
    assert not Boundary([EVE]).blocks(name)


def test_a_pair_is_blocked_in_its_direction_only() -> None:
    blocked = Boundary([PAIR])
    assert blocked.refuses("eve", "bob")
    assert not blocked.refuses("bob", "eve")
    assert not blocked.refuses("eve", "ann")
    assert not blocked.blocks("eve")


@pytest.mark.parametrize("name", ["ann", "ANN", "\uff21nn", "Ann ", "An\u200bn", ""])
def test_trust_is_in_the_very_name(name: str) -> None:
    trusted = Boundary([TRUSTED])
    assert trusted.trusts("Ann")
    assert not trusted.trusts(name)
    assert not trusted.refuses("Ann", "bob")


@pytest.mark.parametrize("name", ["Ann", "ann", "\uff21nn", "An\u200bn", "\u0410nn", "\u00c4nn", "A\ufe0fnn"])
def test_a_name_that_would_be_taken_for_a_trusted_one_is_known_as_such(name: str) -> None:
    assert Boundary([TRUSTED]).resembles_trusted(name)
    assert not Boundary([TRUSTED]).resembles_trusted("hanna")
    assert not Boundary([Entry(ListName.BLOCKS, "Ann")]).resembles_trusted(name)


def test_lists_that_changed_one_by_one_are_those_that_were_made_at_once() -> None:
    entries = [Entry(ListName.BLOCKS, "eve"), Entry(ListName.BLOCKS, "Eve"), PAIR, TRUSTED]
    grown = Boundary()
    for entry in (*entries, *entries):
        grown = grown.changed(entry, there=True)
    made = Boundary(entries)
    assert [grown.size(each) for each in ListName] == [made.size(each) for each in ListName] == [2, 1, 1]
    assert grown.entries == made.entries
    once = grown.changed(entries[0], there=False)
    assert once.blocks("eve")
    assert not once.changed(entries[1], there=False).blocks("eve")


def test_a_list_is_the_same_object_until_it_changes_and_known_after_a_restart(disk: Shop) -> None:
    before = disk.store.boundary(ORGANISATION)
    assert disk.store.boundary(ORGANISATION) is before
    for entry in (EVE, PAIR, TRUSTED):
        assert isinstance(disk.change(ListChanged(ORGANISATION, entry, there=True)), int)
    assert disk.store.boundary(ORGANISATION).entries == {EVE, PAIR, TRUSTED}
    disk.reopened()
    assert disk.store.boundary(ORGANISATION).entries == {EVE, PAIR, TRUSTED}
    assert disk.store.boundary("org_2").entries == frozenset()
    assert isinstance(disk.change(ListChanged(ORGANISATION, PAIR, there=False)), int)
    assert disk.reopened().store.boundary(ORGANISATION).of(ListName.PAIRS) == []


def test_what_is_there_is_not_put_there_twice_and_what_is_not_is_not_taken_away(shop: Shop) -> None:
    assert shop.change(ListChanged(ORGANISATION, EVE, there=False)) is Conflict.STALE
    shop.change(ListChanged(ORGANISATION, EVE, there=True))
    assert shop.change(ListChanged(ORGANISATION, EVE, there=True)) is Conflict.STALE


def test_a_list_has_an_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_LISTED", 2)
    for name in ("a", "b"):
        assert isinstance(shop.change(ListChanged(ORGANISATION, Entry(ListName.BLOCKS, name), there=True)), int)
    assert shop.change(ListChanged(ORGANISATION, EVE, there=True)) is Conflict.FULL
    assert isinstance(shop.change(ListChanged(ORGANISATION, TRUSTED, there=True)), int)


def test_a_message_is_refused_where_somebody_was_blocked_or_stopped_meanwhile(shop: Shop) -> None:
    stands = OrganisationStands(ORGANISATION, "Eve", "bob")
    assert isinstance(shop.change(stands), int)
    shop.change(ListChanged(ORGANISATION, EVE, there=True))
    assert shop.change(stands) is Conflict.BLOCKED
    shop.change(OrganisationHalted(ORGANISATION, 1.0))
    assert shop.change(stands) is Conflict.HALTED


def test_a_decision_about_a_message_does_not_commit_once_the_pair_is_blocked(shop: Shop) -> None:
    agent = shop.store.find_agent("agent_1")
    reservation = shop.reserve(agent, 1)
    shop.change(ListChanged(ORGANISATION, Entry(ListName.PAIRS, "agent_1", "bob"), there=True))
    settlement = shop.settlement(agent, reservation)  # type: ignore[arg-type]  # reserved
    sent = msgspec.structs.replace(settlement, pair=("agent_1", "BOB"))
    assert shop.outcome(shop.store.settle(sent)) is ErrorCode.MESSAGE_BLOCKED
