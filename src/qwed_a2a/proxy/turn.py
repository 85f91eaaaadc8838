"""What one side says until it is the other's turn, as one step of a conversation."""

import hashlib
from typing import Any

import msgspec

from qwed_a2a.message import PayloadType

_encode = msgspec.json.Encoder(order="sorted").encode


class Turn:
    """Known by all that was said in it, in however many pieces that comes."""

    def __init__(self) -> None:
        self._said = hashlib.sha256()
        self._begun = False

    def __bool__(self) -> bool:
        return self._begun

    def add(self, kind: PayloadType, payload: dict[str, Any]) -> None:
        """This was said in it, and is not its end."""
        self._begun = True
        self._said.update(hashlib.sha256(_encode([kind, payload])).digest())

    def ended(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The end of it, by which all of it is known: the same end after something else is not the same again."""
        found = {**payload, "turn": self._said.hexdigest()} if self._begun else payload
        self._said, self._begun = hashlib.sha256(), False
        return found
