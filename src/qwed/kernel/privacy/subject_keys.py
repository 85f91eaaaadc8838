"""Keys of data subjects: content is sealed before it is stored and unreadable after its key was destroyed."""

from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from qwed.domain.agent import Agent
from qwed.kernel.request import MAX_NAME_LENGTH
from qwed.ledger import leaf
from qwed.ledger.subject_encryption import MasterKey, SubjectKey, VaultError, existing_master, master_from
from qwed.model.clock import Clock
from qwed.model.ids import new_id
from qwed.model.lru_cache import LruCache
from qwed.store.protocol import SETUP_STARTED, ActivityRecord, ApprovalRecord, DataSubject, Store

KEPT, ERASED, EXPIRED, TAMPERED = "kept", "erased", "expired", "tampered"
"""Content is readable; erased with its subject; dropped after its retention; not what was stored."""
NO_CONTENT = "{}"
MAX_CACHED_KEYS = 20_000

K = TypeVar("K")
V = TypeVar("V")


def open_master_key(file: Path, store: Store) -> MasterKey:
    """Open the master key of this installation; raise VaultError if it is missing or not the one that sealed the
    content.

    Another key would decrypt nothing and recognise no step: decided actions could be requested a second time.
    """
    subject = store.any_subject()
    if subject is None and not file.exists():
        # After a crash here, the next start recognises its own key, and not that of a lost database.
        store.set_once(SETUP_STARTED, file.name)
    try:
        master = master_from(file) if subject is None else existing_master(file)
    except FileNotFoundError:
        raise VaultError(
            f"{file} is missing and no other key decrypts the stored content: restore it from a backup"
        ) from None
    except ValueError as error:
        raise VaultError(f"{error}: restore it from a backup") from None
    if subject is not None and subject.key is not None:
        master.unwrap(subject.subject_id, subject.key)
    return master


class StoredContent(NamedTuple):
    """Content stored with a leaf: JSON, an empty object if it is no longer readable."""

    state: str
    text: str


class _KeyCache(NamedTuple):
    """Keys in memory, by subject name and by key id."""

    by_name: LruCache[tuple[str, ...], SubjectKey]
    by_id: LruCache[str, SubjectKey | None]


_NOT_CACHED = SubjectKey("", b"")
"""Marks a key id that has not been looked up."""


class Vault:
    """Keys of the data subjects, with a cache. Safe to use from any thread."""

    def __init__(self, store: Store, master: MasterKey, clock: Clock) -> None:
        self._store = store
        self._master = master
        self._clock = clock
        self._lock = Lock()
        """Never held during a call of the store, so that it needs no place in the lock order."""
        self._fingerprint = lru_cache(MAX_CACHED_KEYS)(master.fingerprint)
        self.forget()
        # After a failed write, no key that may not be stored seals anything.
        store.on_write_failure = self.forget

    def forget(self) -> None:
        """Remove all keys from memory."""
        # A new cache, not a cleared one: a lookup in progress then stores its key in the discarded cache.
        self._cache = _KeyCache(LruCache(MAX_CACHED_KEYS), LruCache(MAX_CACHED_KEYS))
        self._fingerprint.cache_clear()

    def fingerprint(self, text: str) -> str:
        """Return a keyed hash for comparison, which reveals nothing to a reader of the tables."""
        # Names of conversations and hashes of actions recur; longer texts are neither and are not cached.
        return self._fingerprint(text) if len(text) <= MAX_NAME_LENGTH else self._master.fingerprint(text)

    def name(self, organisation_id: str, subject: str) -> str:
        """Return the name under which a subject is stored."""
        return self._master.name(organisation_id, subject)

    def key_for(self, organisation_id: str, subject: str) -> SubjectKey:
        """Return the key that seals new content about a subject."""
        key = self._cache.by_name.get((organisation_id, subject))
        return key if key is not None else self._find(organisation_id, subject)

    def key_of_agent(self, agent: Agent) -> SubjectKey:
        """Return the key of the agent's principal."""
        return self.key_for(agent.organisation_id, agent.principal_id)

    def key_about(self, subject_id: str | None, organisation_id: str) -> SubjectKey:
        """Return the key for later statements about earlier content; a new key of the same subject if that one was
        erased."""
        if subject_id is None:
            return self.key_for(organisation_id, organisation_id)
        return self.key_of(subject_id) or self._key_after_erasure(subject_id, organisation_id)

    def content(self, entry: ActivityRecord | ApprovalRecord, activity_id: str) -> StoredContent:
        """Return the content stored with the leaf of an activity."""
        if not entry.payload:
            return StoredContent(EXPIRED, NO_CONTENT)
        if entry.subject_id is None:
            return _unsealed_content(entry)
        return self.opened(entry.subject_id, activity_id, entry.payload)

    def opened(self, subject_id: str | None, context: str, sealed: str) -> StoredContent:
        """Decrypt text that was sealed under this context."""
        if subject_id is None:
            return StoredContent(KEPT, sealed)
        try:
            key = self.key_of(subject_id)
            return StoredContent(ERASED, NO_CONTENT) if key is None else StoredContent(KEPT, key.open(context, sealed))
        except VaultError:
            return StoredContent(TAMPERED, NO_CONTENT)

    def key_of(self, subject_id: str) -> SubjectKey | None:
        """Return the key with this id, or None if it was destroyed."""
        cache = self._cache
        cached = cache.by_id.get(subject_id, _NOT_CACHED)
        if cached is not _NOT_CACHED:
            return cached
        subject = self._store.subject(subject_id)
        if subject is None:
            # Not written yet, or unknown: neither is cached.
            return None
        key = None if subject.key is None else self._master.unwrap(subject_id, subject.key)
        return self._cached(cache.by_id, subject_id, key)

    def _find(self, organisation_id: str, subject: str) -> SubjectKey:
        cache = self._cache
        key = self._current_key(organisation_id, self.name(organisation_id, subject))
        key = self._cached(cache.by_name, (organisation_id, subject), key)
        return self._cached(cache.by_id, key.subject_id, key) or key

    def _key_after_erasure(self, erased_id: str, organisation_id: str) -> SubjectKey:
        """Return the current key of a subject that was erased under this id: new statements can be erased too."""
        erased = self._store.subject(erased_id)
        if erased is None:
            return self.key_for(organisation_id, organisation_id)
        cache = self._cache
        # Only its stored name is left. Several statements at once share the key, which is not written yet.
        name = (organisation_id, erased.name, "stored")
        key = cache.by_name.get(name) or self._current_key(organisation_id, erased.name)
        key = self._cached(cache.by_name, name, key)
        return self._cached(cache.by_id, key.subject_id, key) or key

    def _current_key(self, organisation_id: str, name: str) -> SubjectKey:
        subject = self._store.find_subject(organisation_id, name)
        if subject is None:
            return self._make_key(organisation_id, name)
        return self._master.unwrap(subject.subject_id, subject.key or b"")

    def _make_key(self, organisation_id: str, name: str) -> SubjectKey:
        key, wrapped = self._master.make(new_id("sub"))
        # Not awaited: the store refuses content that is sealed with a key it does not have.
        self._store.add_subject(DataSubject(key.subject_id, organisation_id, name, wrapped, self._clock.now()))
        return key

    def _cached(self, entries: LruCache[K, V], entry_key: K, key: V) -> V:
        """Add a key to the cache; if two threads created one for the same subject, return the first."""
        with self._lock:
            return entries.setdefault(entry_key, key)


def _unsealed_content(entry: ActivityRecord | ApprovalRecord) -> StoredContent:
    """Return content without a subject: from before sealing existed, or empty; anything else was tampered with."""
    decoded = leaf.decode(entry.leaf)
    is_plain = decoded.v == 1 or (decoded.commitment is None and entry.payload == NO_CONTENT)
    return StoredContent(KEPT, entry.payload) if is_plain else StoredContent(TAMPERED, NO_CONTENT)
