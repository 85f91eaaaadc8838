"""Idempotency keys: stored answers, and keys of requests in flight."""

from threading import RLock
from typing import Any

from qwed.model.clock import Clock
from qwed.store.protocol import KeyClaim, StoredAnswer
from qwed.store.queries import StoreQueries

Row = tuple[Any, ...]

SELECT_ANSWER = (
    "SELECT body_hash, answer, activity_id FROM idempotency_keys WHERE agent_id = ? AND key = ? AND expires_at > ?"
)


class IdempotencyTable(StoreQueries):
    """Store methods that return the same answer to the same request."""

    _lock: RLock
    _clock: Clock
    _lease_seconds: float
    _keys_in_flight: dict[tuple[str, str], float]

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim:
        """Return the stored answer, or reserve the key for this request until it is committed or released."""
        flight = (agent_id, key)
        with self._lock:
            if self._keys_in_flight.get(flight, 0.0) > self._clock.monotonic():
                return KeyClaim(refusal="a request with this key is still being decided: retry when it is answered")
            row = self._find_answer(agent_id, key, now)
            if row is None:
                self._keys_in_flight[flight] = self._clock.monotonic() + self._lease_seconds
                return KeyClaim()
        if row[0] != body_hash:
            return KeyClaim(refusal="this key was used with another request: use a new key for a new request")
        return KeyClaim(stored_answer=StoredAnswer(row[1], row[2]))

    def release_key(self, agent_id: str, key: str) -> None:
        """Release the key."""
        with self._lock:
            self._keys_in_flight.pop((agent_id, key), None)

    def _find_answer(self, agent_id: str, key: str, now: float) -> Row | None:
        """Return body hash, answer and activity id of a stored answer that has not expired, or None."""
        return self._one(SELECT_ANSWER, (agent_id, key, now))
