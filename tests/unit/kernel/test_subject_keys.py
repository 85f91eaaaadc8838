"""Keys of data subjects: one per subject, none that is not stored, none that was destroyed."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.change_parts import SubjectErased
from qwed.kernel.privacy import subject_keys as vaults
from qwed.kernel.privacy.subject_keys import ERASED, EXPIRED, KEPT, TAMPERED, StoredContent, Vault
from qwed.ledger.leaf import Leaf, encode
from qwed.ledger.subject_encryption import SubjectKey, VaultError, fresh_master
from qwed.model import Decision
from qwed.store.protocol import ActivityRecord, StoreError
from tests.support.fault_injection import RecordingProxy, ReplacingProxy
from tests.support.manual_clock import ManualClock
from tests.support.stores import ORGANISATION, StoreFixture, agent_of

TEXT = '{"reason":"personal"}'


class VaultSetup:
    """A vault on a real store."""

    def __init__(self, store_fixture: StoreFixture) -> None:
        self.store_fixture = store_fixture
        self.master = fresh_master()
        self.vault = self.opened()

    def opened(self, store: Any = None) -> Vault:
        return Vault(store or self.store_fixture.store, self.master, self.store_fixture.manual_clock.clock())

    def restart(self) -> None:
        self.store_fixture.reopened()
        self.vault = self.opened()

    def key(self, subject: str = "ann") -> SubjectKey:
        return self.vault.key_for(ORGANISATION, subject)

    def erase(self, subject: str = "ann") -> None:
        part = SubjectErased(ORGANISATION, self.vault.name(ORGANISATION, subject), 9.0, subject)
        self.store_fixture.change(part)
        self.vault.forget()

    def keep(self, key: SubjectKey, name: str) -> None:
        """Store an activity whose content is sealed with the key."""
        agent: Any = self.store_fixture.store.find_agent("agent_1")
        sealed = key.seal(name, TEXT)
        self.store_fixture.settle(
            agent, None, Decision.DENIED, activity_id=name, subject_id=key.subject_id, payload=sealed
        )

    def content(self, name: str) -> StoredContent:
        record = self.store_fixture.store.find_activity("agent_1", name)
        return self.vault.content(record, name)


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[VaultSetup]:
    store_fixture = StoreFixture("file", tmp_path / "data", ManualClock())
    store_fixture.register(agent_of())
    created = VaultSetup(store_fixture)
    yield created
    created.store_fixture.store.close()


def _run_concurrently(*calls: Callable[[], Any]) -> list[Any]:
    barrier = threading.Barrier(len(calls))

    def begin(call: Callable[[], Any]) -> Any:
        barrier.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [running.result(30) for running in [threads.submit(begin, call) for call in calls]]


# One key per subject


def test_a_subject_has_the_same_key_every_time_also_after_a_restart(setup: VaultSetup) -> None:
    first = setup.key()
    assert setup.key() is first
    setup.keep(first, "kept_1")
    setup.restart()
    assert setup.key().subject_id == first.subject_id
    assert setup.content("kept_1") == (KEPT, TEXT)


def test_subjects_and_organisations_have_keys_of_their_own(setup: VaultSetup) -> None:
    keys = [setup.key("ann"), setup.key("bob"), setup.key(ORGANISATION), setup.vault.key_for("org_2", "ann")]
    assert len({key.subject_id for key in keys}) == len({key.commitment("p", "t") for key in keys}) == 4
    agent: Any = setup.store_fixture.store.find_agent("agent_1")
    assert setup.vault.key_of_agent(agent) is setup.key("user_1")


def test_the_table_contains_no_subject_names(setup: VaultSetup) -> None:
    setup.key("ann")
    setup.store_fixture.store.durable().wait_result(30)
    [row] = setup.store_fixture.rows("SELECT * FROM subjects")
    assert row[2] == setup.vault.name(ORGANISATION, "ann") != "ann"
    assert "ann" not in repr(row)


def test_threads_that_ask_for_a_new_subject_at_once_get_one_key(setup: VaultSetup) -> None:
    for number in range(10):
        keys = _run_concurrently(*[partial(setup.key, f"new {number}")] * 6)
        assert len({key.subject_id for key in keys}) == 1
    setup.restart()
    for number in range(10):
        setup.keep(setup.key(f"new {number}"), f"kept_{number}")


def test_two_keys_that_were_made_at_once_are_erased_together(setup: VaultSetup) -> None:
    """Two processes, or two threads, may both look up a subject before either has written its key."""
    other = setup.opened()
    with setup.store_fixture.stopped():
        keys = [setup.key(), other.key_for(ORGANISATION, "ann")]
    setup.store_fixture.store.durable().wait_result(30)
    assert keys[0].subject_id != keys[1].subject_id
    for number, key in enumerate(keys):
        setup.keep(key, f"kept_{number}")
    setup.erase()
    assert [setup.content(f"kept_{number}").state for number in range(2)] == [ERASED, ERASED]


def test_the_key_cache_is_bounded(setup: VaultSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vaults, "MAX_CACHED_KEYS", 5)
    setup.vault.forget()
    first = setup.key("0").subject_id
    names = [setup.key(str(number)).subject_id for number in range(20)]
    setup.store_fixture.store.durable().wait_result(30)
    assert setup.key("0").subject_id == first
    looks: list[tuple[str, Callable[[Vault, int], SubjectKey | None]]] = [
        ("find_subject", lambda vault, number: vault.key_for(ORGANISATION, str(number))),
        ("subject", lambda vault, number: vault.key_of(names[number])),
    ]
    for call, look in looks:
        recorder = RecordingProxy(setup.store_fixture.store)
        vault = setup.opened(recorder)
        assert [key and key.subject_id for key in (look(vault, number) for number in range(20))] == names
        recorder.called.clear()
        for number in range(15, 20):
            look(vault, number)
        assert call not in recorder.called
        look(vault, 14)  # the sixth from the end is read again
        assert recorder.called.count(call) == 1


def test_a_key_lookup_under_the_store_lock_does_not_deadlock(setup: VaultSetup) -> None:
    """A decision that costs trust looks up a key in the middle of its commit."""
    store, looked_up = setup.store_fixture.store, threading.Event()
    keys: dict[str, SubjectKey] = {}

    def find(*place: Any) -> Any:
        looked_up.set()
        return store.find_subject(*place)

    vault = setup.opened(ReplacingProxy(store, find_subject=find))

    def look(subject: str) -> None:
        keys[subject] = vault.key_for(ORGANISATION, subject)

    def settle() -> None:
        with setup.store_fixture.held():
            looking.start()
            assert looked_up.wait(30)
            look("bob")

    looking = threading.Thread(target=look, args=("ann",), daemon=True)
    settling = threading.Thread(target=settle, daemon=True)
    settling.start()
    for thread in (settling, looking):
        thread.join(30)
    assert set(keys) == {"ann", "bob"}


# No key that is not stored


def test_a_key_whose_write_failed_is_not_used_again(setup: VaultSetup) -> None:
    with setup.store_fixture.broken():
        lost = setup.key()
        with pytest.raises(StoreError):
            setup.keep(lost, "kept_1")
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        setup.keep(lost, "kept_1")
    again = setup.key()
    assert again.subject_id != lost.subject_id
    setup.keep(again, "kept_1")
    assert setup.content("kept_1") == (KEPT, TEXT)


def test_a_key_on_its_way_is_not_taken_for_an_erased_one(setup: VaultSetup) -> None:
    with setup.store_fixture.stopped():
        key = setup.key()
        setup.vault.forget()
        assert setup.vault.key_of(key.subject_id) is None, "the table does not show it yet"
    setup.store_fixture.store.durable().wait_result(30)
    assert setup.vault.key_of(key.subject_id) is not None
    assert setup.key().subject_id == key.subject_id


# No key that was destroyed


def test_after_an_erasure_content_is_erased_and_the_subject_gets_a_new_key(setup: VaultSetup) -> None:
    old = setup.key()
    setup.keep(old, "kept_1")
    setup.erase()
    for restart in (False, True):
        if restart:
            setup.restart()
        assert setup.content("kept_1") == (ERASED, "{}")
        assert setup.vault.key_of(old.subject_id) is None
        new = setup.key()
        assert new.subject_id != old.subject_id
        setup.keep(new, f"kept_after_{restart}")
        assert setup.content(f"kept_after_{restart}") == (KEPT, TEXT)


def test_a_lookup_that_overlaps_an_erasure_does_not_cache_the_key(setup: VaultSetup) -> None:
    old = setup.key()
    setup.keep(old, "kept_1")
    setup.vault.forget()
    store = setup.store_fixture.store

    erasures = [setup.erase]

    def erased_meanwhile(result: Any) -> Any:
        while erasures:
            erasures.pop()()
            vault.forget()
        return result

    vault = setup.opened(
        ReplacingProxy(
            store,
            subject=lambda subject_id: erased_meanwhile(store.subject(subject_id)),
            find_subject=lambda *place: erased_meanwhile(store.find_subject(*place)),
        )
    )
    vault.key_of(old.subject_id)
    assert not erasures
    assert vault.key_of(old.subject_id) is None
    assert vault.key_for(ORGANISATION, "ann").subject_id != old.subject_id


@pytest.mark.parametrize("erased", [False, True])
def test_later_statements_are_sealed_so_that_they_can_be_erased_too(setup: VaultSetup, erased: bool) -> None:
    first = setup.key()
    setup.keep(first, "kept_1")
    if erased:
        setup.erase()
    later = setup.vault.key_about(first.subject_id, ORGANISATION)
    assert (later.subject_id == first.subject_id) is not erased
    setup.keep(later, "kept_2")
    assert setup.content("kept_2") == (KEPT, TEXT)
    setup.erase()
    assert setup.content("kept_2").state == ERASED


def test_content_without_a_subject_is_sealed_with_the_key_of_the_organisation(setup: VaultSetup) -> None:
    own = setup.key(ORGANISATION)
    assert setup.vault.key_about(None, ORGANISATION) is own
    assert setup.vault.key_about("sub_never_there", ORGANISATION) is own


# States of content


def _entry(subject_id: str | None, payload: str, version: int = 1, commitment: str | None = None) -> ActivityRecord:
    leaf = encode(Leaf(activity_id="kept_1", by="key_1", commitment=commitment, time_ms=1, v=version)).decode()
    return ActivityRecord(1, 0, ORGANISATION, leaf, payload, subject_id=subject_id)


def test_content_of_before_is_as_it_was_sent_and_what_was_dropped_is_expired(setup: VaultSetup) -> None:
    key = setup.key()
    assert setup.vault.content(_entry(None, TEXT), "kept_1") == (KEPT, TEXT)
    assert setup.vault.content(_entry(None, ""), "kept_1") == (EXPIRED, "{}")
    assert setup.vault.content(_entry(key.subject_id, ""), "kept_1") == (EXPIRED, "{}")


def test_unsealed_content_is_accepted_only_with_a_leaf_without_a_commitment(setup: VaultSetup) -> None:
    """Otherwise a manipulated table could present an action for approval that was never requested."""
    assert setup.vault.content(_entry(None, "{}", version=2), "kept_1") == (KEPT, "{}")
    for payload, commitment in ((TEXT, None), (TEXT, "c" * 64), ("{}", "c" * 64)):
        assert setup.vault.content(_entry(None, payload, 2, commitment), "kept_1") == (TAMPERED, "{}")


def test_content_that_was_changed_or_moved_is_not_shown(setup: VaultSetup) -> None:
    key, other = setup.key(), setup.key("bob")
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
        assert setup.vault.content(_entry(subject_id, payload), name) == (TAMPERED, "{}")
    assert setup.vault.content(_entry(key.subject_id, sealed), "kept_1") == (KEPT, TEXT)


@pytest.mark.parametrize("damage", ["key = x'00'", "key = (SELECT key FROM subjects ORDER BY subject_id DESC LIMIT 1)"])
def test_under_a_key_that_was_changed_nothing_opens_and_nothing_is_sealed(setup: VaultSetup, damage: str) -> None:
    keys = sorted((setup.key("ann"), setup.key("bob")), key=lambda key: key.subject_id)
    setup.keep(keys[0], "kept_1")
    setup.store_fixture.write(f"UPDATE subjects SET {damage} WHERE subject_id = ?", keys[0].subject_id)
    setup.restart()
    assert setup.content("kept_1").state == TAMPERED
    name = next(name for name in ("ann", "bob") if _is_of(setup, name, keys[0]))
    with pytest.raises(VaultError, match=f"the key of {keys[0].subject_id}"):
        setup.key(name)


def _is_of(setup: VaultSetup, name: str, key: SubjectKey) -> bool:
    subject = setup.store_fixture.store.find_subject(ORGANISATION, setup.vault.name(ORGANISATION, name))
    return bool(subject.subject_id == key.subject_id)
