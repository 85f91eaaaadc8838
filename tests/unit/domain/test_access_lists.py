"""Access lists for messages: blocked and trusted agents."""

import pytest

from qwed.domain.access_lists import AccessLists, ListEntry, ListName

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
