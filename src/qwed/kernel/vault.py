"""Content and whom it is about: sealed on its way into the store, opened on its way out, gone when it was erased."""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple, TypeVar

from qwed.ledger.vault import Master, SubjectKey, VaultError
from qwed.store.agent import Agent
from qwed.store.protocol import Entry, KeptApproval, Store, Subject
from qwed.words.clock import Clock
from qwed.words.ids import new_id

KEPT, ERASED, EXPIRED, TAMPERED = "kept", "erased", "expired", "tampered"
"""Content is there; went with the key of its subject; went when its time was over; is not what was put there."""
NOTHING = "{}"
_REMEMBERED = 20_000

K = TypeVar("K")
V = TypeVar("V")


class Content(NamedTuple):
    """What was kept beside a leaf: JSON, and an empty object unless it is still there."""

    state: str
    text: str


class Vault:
    """The keys of the subjects. Safe to use from any thread."""

    def __init__(self, store: Store, master: Master, clock: Clock) -> None:
        self._store = store
        self._master = master
        self._clock = clock
        self._lock = Lock()
        self.forget()
        self.fingerprint = master.fingerprint
        """A hash to compare with later ones, which tells nothing to whoever reads the tables."""
        # A key whose write failed seals nothing more.
        store.on_distrust = self.forget

    def forget(self) -> None:
        """Hold no key in mind any more."""
        self._by_name: OrderedDict[tuple[str, str], SubjectKey] = OrderedDict()
        self._by_id: OrderedDict[str, SubjectKey | None] = OrderedDict()

    def name(self, organisation_id: str, subject: str) -> str:
        """What a subject is filed under."""
        return self._master.name(organisation_id, subject)

    def key_for(self, organisation_id: str, subject: str) -> SubjectKey:
        """The key that content about a subject is sealed with from now on."""
        known = self._by_name.get((organisation_id, subject))
        return known if known is not None else self._find(organisation_id, subject)

    def key_of_agent(self, agent: Agent) -> SubjectKey:
        """The key of the principal that an agent acts for."""
        return self.key_for(agent.organisation_id, agent.principal_id)

    def key_about(self, subject_id: str | None, organisation_id: str) -> SubjectKey:
        """The key for what is said later about earlier content; the organisation's, where that was erased."""
        known = None if subject_id is None else self.key_of(subject_id)
        return known if known is not None else self.key_for(organisation_id, organisation_id)

    def content(self, entry: Entry | KeptApproval, activity_id: str) -> Content:
        """What was kept beside the leaf of an activity."""
        if entry.subject_id is None or not entry.payload:
            return Content(KEPT, entry.payload) if entry.payload else Content(EXPIRED, NOTHING)
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
        if subject_id in self._by_id:
            return self._by_id[subject_id]
        with self._lock:
            found = self._store.subject(subject_id)
            key = None if found is None or found.key is None else self._master.unwrap(subject_id, found.key)
            return _remember(self._by_id, subject_id, key)

    def _find(self, organisation_id: str, subject: str) -> SubjectKey:
        place = (organisation_id, subject)
        name = self.name(organisation_id, subject)
        with self._lock:
            known = self._by_name.get(place)
            if known is None:
                found = self._store.find_subject(organisation_id, name)
                known = self._made(organisation_id, name) if found is None else self._unwrapped(found)
                _remember(self._by_name, place, known)
                _remember(self._by_id, known.subject_id, known)
            return known

    def _unwrapped(self, found: Subject) -> SubjectKey:
        return self._master.unwrap(found.subject_id, found.key or b"")

    def _made(self, organisation_id: str, name: str) -> SubjectKey:
        key, kept = self._master.make(new_id("sub"))
        # Not waited for: the tables refuse whatever is sealed with a key they have not got.
        self._store.add_subject(Subject(key.subject_id, organisation_id, name, kept, self._clock.now()))
        return key


def _remember(known: OrderedDict[K, V], place: K, key: V) -> V:
    known[place] = key
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
    return key
