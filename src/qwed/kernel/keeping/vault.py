"""Content and whom it is about: sealed on its way into the store, opened on its way out, gone when it was erased."""

from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from qwed.kernel.request import LONGEST_NAME
from qwed.ledger import leaf
from qwed.ledger.vault import Master, SubjectKey, VaultError, existing_master, master_from
from qwed.store.agent import Agent
from qwed.store.protocol import BEGUN, Entry, KeptApproval, Store, Subject
from qwed.words.clock import Clock
from qwed.words.ids import new_id

KEPT, ERASED, EXPIRED, TAMPERED = "kept", "erased", "expired", "tampered"
"""Content is there; went with the key of its subject; went when its time was over; is not what was put there."""
NOTHING = "{}"
_REMEMBERED = 20_000

K = TypeVar("K")
V = TypeVar("V")


def opened_master(file: Path, store: Store) -> Master:
    """The node's own key; VaultError where it is gone, or not the one that what is kept was sealed under.

    Another one would open nothing and know no step again: whatever was decided could be asked for a second time.
    """
    known = store.some_subject()
    if known is None and not file.exists():
        # A start that is cut short here finds its own key again, and not that of a database which is gone.
        store.mark(BEGUN, file.name)
    try:
        master = master_from(file) if known is None else existing_master(file)
    except FileNotFoundError:
        raise VaultError(f"{file} is missing, and no other key opens what is kept: restore it from a backup") from None
    except ValueError as error:
        raise VaultError(f"{error}: restore it from a backup") from None
    if known is not None and known.key is not None:
        master.unwrap(known.subject_id, known.key)
    return master


class Content(NamedTuple):
    """What was kept beside a leaf: JSON, and an empty object unless it is still there."""

    state: str
    text: str


class _Mind(NamedTuple):
    """The keys that are held in memory, by whom they are of and by their ids."""

    by_name: OrderedDict[tuple[str, str], SubjectKey]
    by_id: OrderedDict[str, SubjectKey | None]


_UNKNOWN = SubjectKey("", b"")
"""Of no subject: stands where nobody has looked yet."""


class Vault:
    """The keys of the subjects. Safe to use from any thread."""

    def __init__(self, store: Store, master: Master, clock: Clock) -> None:
        self._store = store
        self._master = master
        self._clock = clock
        self._lock = Lock()
        """Never held while the store is asked: the store asks for keys, too, while it holds its own."""
        self._fingerprint = lru_cache(_REMEMBERED)(master.fingerprint)
        self.forget()
        # A key whose write failed seals nothing more.
        store.on_distrust = self.forget

    def forget(self) -> None:
        """Hold no key in mind any more."""
        # Another mind, not an empty one: whoever looks for a key right now remembers it where nobody looks any more.
        self._mind = _Mind(OrderedDict(), OrderedDict())
        self._fingerprint.cache_clear()

    def fingerprint(self, text: str) -> str:
        """A hash to compare with later ones, which tells nothing to whoever reads the tables."""
        # The name of a conversation and the hash of an action come again and again; what is longer is no name.
        return self._fingerprint(text) if len(text) <= LONGEST_NAME else self._master.fingerprint(text)

    def name(self, organisation_id: str, subject: str) -> str:
        """What a subject is filed under."""
        return self._master.name(organisation_id, subject)

    def key_for(self, organisation_id: str, subject: str) -> SubjectKey:
        """The key that content about a subject is sealed with from now on."""
        known = self._mind.by_name.get((organisation_id, subject))
        return known if known is not None else self._find(organisation_id, subject)

    def key_of_agent(self, agent: Agent) -> SubjectKey:
        """The key of the principal that an agent acts for."""
        return self.key_for(agent.organisation_id, agent.principal_id)

    def key_about(self, subject_id: str | None, organisation_id: str) -> SubjectKey:
        """The key for what is said later about earlier content; another of the same subject, where that was erased."""
        if subject_id is None:
            return self.key_for(organisation_id, organisation_id)
        return self.key_of(subject_id) or self._anew(subject_id, organisation_id)

    def content(self, entry: Entry | KeptApproval, activity_id: str) -> Content:
        """What was kept beside the leaf of an activity."""
        if not entry.payload:
            return Content(EXPIRED, NOTHING)
        if entry.subject_id is None:
            return _in_the_clear(entry)
        return self.opened(entry.subject_id, activity_id, entry.payload)

    def opened(self, subject_id: str | None, place: str, sealed: str) -> Content:
        """What was sealed at a place."""
        if subject_id is None:
            return Content(KEPT, sealed)
        try:
            key = self.key_of(subject_id)
            return Content(ERASED, NOTHING) if key is None else Content(KEPT, key.open(place, sealed))
        except VaultError:
            return Content(TAMPERED, NOTHING)

    def key_of(self, subject_id: str) -> SubjectKey | None:
        """The key of a subject, or None once it was destroyed."""
        mind = self._mind
        known = mind.by_id.get(subject_id, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        found = self._store.subject(subject_id)
        if found is None:
            # On its way into the table, or never there: neither is worth remembering.
            return None
        key = None if found.key is None else self._master.unwrap(subject_id, found.key)
        return self._remembered(mind.by_id, subject_id, key)

    def _find(self, organisation_id: str, subject: str) -> SubjectKey:
        mind = self._mind
        key = self._living(organisation_id, self.name(organisation_id, subject))
        key = self._remembered(mind.by_name, (organisation_id, subject), key)
        return self._remembered(mind.by_id, key.subject_id, key) or key

    def _anew(self, erased_id: str, organisation_id: str) -> SubjectKey:
        """Of whoever was erased under this id: so that what is said about them now can be erased too."""
        erased = self._store.subject(erased_id)
        if erased is None:
            return self.key_for(organisation_id, organisation_id)
        mind = self._mind
        key = self._living(organisation_id, erased.name)
        return self._remembered(mind.by_id, key.subject_id, key) or key

    def _living(self, organisation_id: str, name: str) -> SubjectKey:
        found = self._store.find_subject(organisation_id, name)
        if found is None:
            return self._made(organisation_id, name)
        return self._master.unwrap(found.subject_id, found.key or b"")

    def _made(self, organisation_id: str, name: str) -> SubjectKey:
        key, kept = self._master.make(new_id("sub"))
        # Not waited for: the tables refuse whatever is sealed with a key they have not got.
        self._store.add_subject(Subject(key.subject_id, organisation_id, name, kept, self._clock.now()))
        return key

    def _remembered(self, known: OrderedDict[K, V], place: K, key: V) -> V:
        """What is known from now on: where two have made a key for the same subject, that of the first."""
        with self._lock:
            first = known.setdefault(place, key)
            if len(known) > _REMEMBERED:
                known.popitem(last=False)
            return first


def _in_the_clear(entry: Entry | KeptApproval) -> Content:
    """Content without a subject: from before there were any, or where nothing was said; anything else was put there."""
    kept = leaf.decode(entry.leaf)
    meant = kept.v == 1 or (kept.commitment is None and entry.payload == NOTHING)
    return Content(KEPT, entry.payload) if meant else Content(TAMPERED, NOTHING)
