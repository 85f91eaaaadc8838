"""The keys of subjects as the kernel holds them: one for each, none that is not on disk, none that was destroyed."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from qwed.kernel.keeping import vault as vaults
from qwed.kernel.keeping.vault import ERASED, EXPIRED, KEPT, TAMPERED, Content, Vault
from qwed.ledger.leaf import Leaf, encode
from qwed.ledger.vault import SubjectKey, VaultError, fresh_master
from qwed.store.parts import SubjectErased
from qwed.store.protocol import Entry, StoreError
from qwed.words import Decision
from tests.support.clock import HandClock
from tests.support.failing import Instead
from tests.support.stores import ORGANISATION, Shop, agent_of

TEXT = '{"reason":"personal"}'


class Desk:
    """A vault on a real store."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.master = fresh_master()
        self.vault = self.opened()

    def opened(self, store: Any = None) -> Vault:
        return Vault(store or self.shop.store, self.master, self.shop.hands.clock())

    def restart(self) -> None:
        self.shop.reopened()
        self.vault = self.opened()

    def key(self, subject: str = "ann") -> SubjectKey:
        return self.vault.key_for(ORGANISATION, subject)

    def erase(self, subject: str = "ann") -> None:
        part = SubjectErased(ORGANISATION, self.vault.name(ORGANISATION, subject), 9.0, subject)
        self.shop.change(part)
        self.vault.forget()

    def keep(self, key: SubjectKey, name: str) -> None:
        """An activity whose content is sealed with the key."""
        agent: Any = self.shop.store.find_agent("agent_1")
        sealed = key.seal(name, TEXT)
        self.shop.settle(agent, None, Decision.DENIED, activity_id=name, subject_id=key.subject_id, payload=sealed)

    def content(self, name: str) -> Content:
        found = self.shop.store.find_activity("agent_1", name)
        return self.vault.content(found, name)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    shop = Shop("file", tmp_path / "data", HandClock())
    shop.register(agent_of())
    made = Desk(shop)
    yield made
    made.shop.store.close()


def _together(*calls: Callable[[], Any]) -> list[Any]:
    barrier = threading.Barrier(len(calls))

    def begin(call: Callable[[], Any]) -> Any:
        barrier.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [running.result(30) for running in [threads.submit(begin, call) for call in calls]]


# One key for each


def test_a_subject_has_the_same_key_every_time_also_after_a_restart(desk: Desk) -> None:
    first = desk.key()
    assert desk.key() is first
    desk.keep(first, "kept_1")
    desk.restart()
    assert desk.key().subject_id == first.subject_id
    assert desk.content("kept_1") == (KEPT, TEXT)


def test_subjects_and_organisations_have_keys_of_their_own(desk: Desk) -> None:
    keys = [desk.key("ann"), desk.key("bob"), desk.key(ORGANISATION), desk.vault.key_for("org_2", "ann")]
    assert len({key.subject_id for key in keys}) == len({key.commitment("p", "t") for key in keys}) == 4
    agent: Any = desk.shop.store.find_agent("agent_1")
    assert desk.vault.key_of_agent(agent) is desk.key("user_1")


def test_the_table_names_nobody(desk: Desk) -> None:
    desk.key("ann")
    desk.shop.store.durable().block(30)
    [row] = desk.shop.store._all("SELECT * FROM subjects", ())
    assert row[2] == desk.vault.name(ORGANISATION, "ann") != "ann"
    assert "ann" not in repr(row)


def test_threads_that_ask_for_a_new_subject_at_once_get_one_key(desk: Desk) -> None:
    for number in range(10):
        keys = _together(*[partial(desk.key, f"new {number}")] * 6)
        assert len({key.subject_id for key in keys}) == 1
    desk.restart()
    for number in range(10):
        desk.keep(desk.key(f"new {number}"), f"kept_{number}")


def test_two_keys_that_were_made_at_once_are_erased_together(desk: Desk) -> None:
    """Two processes, or two threads that both looked before either had written."""
    other = desk.opened()
    with desk.shop.stopped():
        keys = [desk.key(), other.key_for(ORGANISATION, "ann")]
    desk.shop.store.durable().block(30)
    assert keys[0].subject_id != keys[1].subject_id
    for number, key in enumerate(keys):
        desk.keep(key, f"kept_{number}")
    desk.erase()
    assert [desk.content(f"kept_{number}").state for number in range(2)] == [ERASED, ERASED]


def test_no_more_keys_are_held_in_mind_than_there_may_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vaults, "_REMEMBERED", 5)
    first = desk.key("0").subject_id
    for number in range(20):
        desk.key(str(number))
        assert max(len(desk.vault._mind.by_name), len(desk.vault._mind.by_id)) <= 5
    desk.shop.store.durable().block(30)
    assert desk.key("0").subject_id == first


# Nobody waits for ever


def test_whoever_asks_for_a_key_while_holding_the_store_does_not_meet_one_who_asks_the_store(desk: Desk) -> None:
    """A decision that costs trust asks for a key in the middle of its settlement."""
    store, asked = desk.shop.store, threading.Event()
    found: dict[str, SubjectKey] = {}

    def find(*place: Any) -> Any:
        asked.set()
        return store.find_subject(*place)

    vault = desk.opened(Instead(store, find_subject=find))

    def look(subject: str) -> None:
        found[subject] = vault.key_for(ORGANISATION, subject)

    def settle() -> None:
        with store._lock:
            looking.start()
            assert asked.wait(30)
            look("bob")

    looking = threading.Thread(target=look, args=("ann",), daemon=True)
    settling = threading.Thread(target=settle, daemon=True)
    settling.start()
    for thread in (settling, looking):
        thread.join(30)
    assert set(found) == {"ann", "bob"}


# None that is not on disk


def test_a_key_whose_write_failed_is_not_used_again(desk: Desk) -> None:
    with desk.shop.broken():
        lost = desk.key()
        with pytest.raises(StoreError):
            desk.keep(lost, "kept_1")
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        desk.keep(lost, "kept_1")
    again = desk.key()
    assert again.subject_id != lost.subject_id
    desk.keep(again, "kept_1")
    assert desk.content("kept_1") == (KEPT, TEXT)


def test_a_key_on_its_way_is_not_taken_for_an_erased_one(desk: Desk) -> None:
    with desk.shop.stopped():
        key = desk.key()
        desk.vault.forget()
        assert desk.vault.key_of(key.subject_id) is None, "the table does not show it yet"
    desk.shop.store.durable().block(30)
    assert desk.vault.key_of(key.subject_id) is not None
    assert desk.key().subject_id == key.subject_id


# None that was destroyed


def test_once_erased_content_is_erased_and_who_comes_again_is_somebody_new(desk: Desk) -> None:
    old = desk.key()
    desk.keep(old, "kept_1")
    desk.erase()
    for restart in (False, True):
        if restart:
            desk.restart()
        assert desk.content("kept_1") == (ERASED, "{}")
        assert desk.vault.key_of(old.subject_id) is None
        new = desk.key()
        assert new.subject_id != old.subject_id
        desk.keep(new, f"kept_after_{restart}")
        assert desk.content(f"kept_after_{restart}") == (KEPT, TEXT)


def test_whoever_looked_before_an_erasure_and_remembers_after_it_brings_no_key_back(desk: Desk) -> None:
    old = desk.key()
    desk.keep(old, "kept_1")
    desk.vault.forget()
    store = desk.shop.store

    def erased_meanwhile(found: Any) -> Any:
        desk.erase()
        vault.forget()
        return found

    vault = desk.opened(
        Instead(
            store,
            subject=lambda subject_id: erased_meanwhile(store.subject(subject_id)),
            find_subject=lambda *place: erased_meanwhile(store.find_subject(*place)),
        )
    )
    vault.key_of(old.subject_id)
    vault._store = store
    assert vault.key_of(old.subject_id) is None
    assert vault.key_for(ORGANISATION, "ann").subject_id != old.subject_id


@pytest.mark.parametrize("erased", [False, True])
def test_what_is_said_later_is_sealed_so_that_it_can_be_erased_too(desk: Desk, erased: bool) -> None:
    first = desk.key()
    desk.keep(first, "kept_1")
    if erased:
        desk.erase()
    later = desk.vault.key_about(first.subject_id, ORGANISATION)
    assert (later.subject_id == first.subject_id) is not erased
    desk.keep(later, "kept_2")
    assert desk.content("kept_2") == (KEPT, TEXT)
    desk.erase()
    assert desk.content("kept_2").state == ERASED


def test_what_is_said_about_nobody_is_sealed_with_the_key_of_the_organisation(desk: Desk) -> None:
    own = desk.key(ORGANISATION)
    assert desk.vault.key_about(None, ORGANISATION) is own
    assert desk.vault.key_about("sub_never_there", ORGANISATION) is own


# What content is


def _entry(subject_id: str | None, payload: str, version: int = 1, commitment: str | None = None) -> Entry:
    leaf = encode(Leaf(activity_id="kept_1", by="key_1", commitment=commitment, time_ms=1, v=version)).decode()
    return Entry(1, 0, ORGANISATION, leaf, payload, subject_id=subject_id)


def test_content_of_before_is_as_it_was_sent_and_what_was_dropped_is_expired(desk: Desk) -> None:
    key = desk.key()
    assert desk.vault.content(_entry(None, TEXT), "kept_1") == (KEPT, TEXT)
    assert desk.vault.content(_entry(None, ""), "kept_1") == (EXPIRED, "{}")
    assert desk.vault.content(_entry(key.subject_id, ""), "kept_1") == (EXPIRED, "{}")


def test_content_in_the_clear_is_believed_only_beside_a_leaf_that_commits_to_none(desk: Desk) -> None:
    """Whoever can write to the tables could otherwise put an action before a person that nobody asked for."""
    assert desk.vault.content(_entry(None, "{}", version=2), "kept_1") == (KEPT, "{}")
    for payload, commitment in ((TEXT, None), (TEXT, "c" * 64), ("{}", "c" * 64)):
        assert desk.vault.content(_entry(None, payload, 2, commitment), "kept_1") == (TAMPERED, "{}")


def test_content_that_was_changed_or_moved_is_not_shown(desk: Desk) -> None:
    key, other = desk.key(), desk.key("bob")
    sealed = key.seal("kept_1", TEXT)
    flipped = sealed[:20] + ("A" if sealed[20] != "A" else "B") + sealed[21:]
    tampered = [
        (key.subject_id, "kept_2", sealed),
        (key.subject_id, "kept_1", flipped),
        (key.subject_id, "kept_1", TEXT),
        (key.subject_id, "kept_1", sealed[:-4]),
        (other.subject_id, "kept_1", sealed),
    ]
    for subject_id, name, payload in tampered:
        assert desk.vault.content(_entry(subject_id, payload), name) == (TAMPERED, "{}")
    assert desk.vault.content(_entry(key.subject_id, sealed), "kept_1") == (KEPT, TEXT)


@pytest.mark.parametrize("damage", ["key = x'00'", "key = (SELECT key FROM subjects ORDER BY subject_id DESC LIMIT 1)"])
def test_under_a_key_that_was_changed_nothing_opens_and_nothing_is_sealed(desk: Desk, damage: str) -> None:
    keys = sorted((desk.key("ann"), desk.key("bob")), key=lambda key: key.subject_id)
    desk.keep(keys[0], "kept_1")
    desk.shop.store._write((f"UPDATE subjects SET {damage} WHERE subject_id = ?", (keys[0].subject_id,))).block(30)
    desk.restart()
    assert desk.content("kept_1").state == TAMPERED
    name = next(name for name in ("ann", "bob") if _is_of(desk, name, keys[0]))
    with pytest.raises(VaultError, match=f"the key of {keys[0].subject_id}"):
        desk.key(name)


def _is_of(desk: Desk, name: str, key: SubjectKey) -> bool:
    found = desk.shop.store.find_subject(ORGANISATION, desk.vault.name(ORGANISATION, name))
    return bool(found.subject_id == key.subject_id)
