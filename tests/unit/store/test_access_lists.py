"""Access lists of an organisation, as a store keeps them."""

import pytest

from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.change_parts import Conflict, ListChanged, OrganisationActive, OrganisationHalted
from qwed.store import change_handlers
from tests.support.stores import ORGANISATION, StoreFixture

EVE, TRUSTED = ListEntry(ListName.BLOCKS, "eve"), ListEntry(ListName.TRUSTED, "Ann")
PAIR = ListEntry(ListName.PAIRS, "eve", "bob")


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
    assert store_fixture.settle(agent, reservation, pair=("agent_1", "BOB")) is Conflict.BLOCKED
