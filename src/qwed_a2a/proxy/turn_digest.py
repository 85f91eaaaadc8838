"""Rolling hash of everything one side says until the other side's turn, as one step of a conversation."""

import hashlib
from typing import Any

import msgspec

from qwed_a2a.message import PayloadType

_encode = msgspec.json.Encoder(order="sorted").encode


class TurnDigest:
    """Digest of one turn, whatever number of pieces it arrives in."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._begun = False

    def __bool__(self) -> bool:
        return self._begun

    def add(self, kind: PayloadType, payload: dict[str, Any]) -> None:
        """Add a payload that does not end the turn."""
        self._begun = True
        self._hash.update(hashlib.sha256(_encode([kind, payload])).digest())

    def finish(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the last payload with the digest of the turn, so that the same end of another turn is not a
        repetition."""
        last = {**payload, "turn": self._hash.hexdigest()} if self._begun else payload
        self._hash, self._begun = hashlib.sha256(), False
        return last
