"""What a store knows of messages between agents: the lists of owners, the pace of each pair, what was said last."""

from threading import RLock

from qwed.store.archive import Archive
from qwed.store.boundary import Boundary
from qwed.store.buckets import Bucket, Buckets, Place
from qwed.store.known import Known
from qwed.store.live import LiveState

_SELECT_BUCKET = "SELECT tokens, at, full_at FROM buckets WHERE organisation_id = ? AND pair = ?"


class MessageTable(Archive):
    """The part of a store that messages are held against."""

    _lock: RLock
    _known: Known
    _live: LiveState
    _buckets: Buckets

    def boundary(self, organisation_id: str) -> Boundary:
        """The lists of an organisation: the very same until one of them changes."""
        return self._known.boundary(organisation_id)

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float:
        """0.0 where the pair may send one more message, which is counted; else the seconds until it may."""
        with self._lock:
            return self._buckets.take((organisation_id, pair), per_minute, now)

    def last_said(self, agent_id: str, conversation_id: str) -> str:
        """The fingerprint of the last step an agent committed in a conversation; empty where there is none."""
        with self._lock:
            return self._live.last_said(agent_id, conversation_id)

    def _load_bucket(self, place: Place) -> Bucket | None:
        row = self._one(_SELECT_BUCKET, place)
        return None if row is None else Bucket(*row)
