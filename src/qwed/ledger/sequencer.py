"""The one place where leaves become part of a log: each batch makes the trees grow and ends in a signed head.

Called by whoever writes, inside the commit and one batch at a time. What a batch costs depends on the batch, not on the
size of the log: of a tree only its border is kept in mind.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import Growth, Place, peaks
from qwed.ledger.verifier import Head as SignedHead
from qwed.ledger.verifier import Invalid, leaf_hash, read_head
from qwed.words.clock import Clock, rfc3339

HEAD_TYPE = "qwed-head+jwt"
_MOST_LOGS = 10_000

ReadBorder = Callable[[str, int, Sequence[Place]], tuple[list[bytes], str | None]]
"""Of one log, at this size, as they were kept: the hashes of these subtrees, and the signature of the head."""

_encode = msgspec.json.Encoder().encode


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """INTERFACES 4: how a log stands, signed."""

    log_id: str
    size: int
    root: str
    time: str
    signature: str


class _Signed(msgspec.Struct, frozen=True, kw_only=True):
    """What of a head is signed; in alphabetical order, so that it is canonical."""

    log_id: str
    root: str
    size: int
    time: str


_payload = msgspec.json.Decoder(_Signed)


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a leaf stands, under the first head that contains it."""

    index: int
    head: Head
    growth: Growth

    def path(self) -> list[str]:
        """The audit path of the leaf, in hex."""
        return self.growth.hex_path(self.index)


class Integration(NamedTuple):
    """What a batch makes of the logs it belongs to."""

    nodes: list[str]
    """For each leaf, in hex, the hashes it makes known."""
    heads: dict[str, Head]
    grown: dict[str, Growth]

    def border(self, log_id: str) -> list[bytes]:
        """The hashes of the subtrees that the log then consists of."""
        return self.grown[log_id].borders()

    def place(self, log_id: str, index: int) -> Placed:
        """Where a leaf of the batch stands."""
        return Placed(index, self.heads[log_id], self.grown[log_id])


class Sequencer:
    """Grows the logs. Not for two threads at once."""

    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock
        self._borders: dict[str, tuple[int, list[bytes]]] = {}

    def integrate(self, leaves: Iterable[tuple[str, int, str]], read: ReadBorder) -> Integration:
        """The logs with these leaves (log, index, text) at their ends, each under a new head."""
        grown: dict[str, Growth] = {}
        known: list[str] = []
        for log_id, index, text in leaves:
            growth = grown.get(log_id)
            if growth is None:
                growth = grown[log_id] = self._growth(log_id, index, read)
            if growth.size != index:
                raise ValueError(f"leaf {index} of {log_id} does not follow a log of size {growth.size}")
            known.append(b"".join(growth.add(leaf_hash(text.encode()))).hex())
        return Integration(known, {log_id: self._seal(log_id, growth) for log_id, growth in grown.items()}, grown)

    def forget(self) -> None:
        """What was integrated last was not kept: begin again from what is."""
        self._borders.clear()

    def sign(self, log_id: str, size: int, root: bytes) -> Head:
        """A head, as of now."""
        signed = _Signed(log_id=log_id, root=root.hex(), size=size, time=rfc3339(self._clock.now()))
        return head_from(self._keyring.current.sign(HEAD_TYPE, _encode(signed)), signed)

    def _growth(self, log_id: str, size: int, read: ReadBorder) -> Growth:
        known = self._borders.get(log_id)
        if known is not None and known[0] == size:
            return Growth(*known)
        return self._continued(log_id, size, read) if size else Growth(0, [])

    def _continued(self, log_id: str, size: int, read: ReadBorder) -> Growth:
        """A log as it was kept, if it is still what was signed: nothing grows out of another one."""
        borders, signature = read(log_id, size, peaks(size))
        if signature is None:
            raise ValueError(f"the log of {log_id} has no head of size {size}")
        head = self._believed(signature)
        growth = Growth(size, borders)
        if (head.log_id, head.size, head.root) != (log_id, size, growth.root()):
            raise ValueError(f"the log of {log_id} is not what its head of size {size} was signed for")
        return growth

    def _believed(self, signature: str) -> SignedHead:
        """What a head says that one of our keys has signed, be it one that another process has made meanwhile."""
        head = msgspec.to_builtins(head_from(signature))
        try:
            return read_head(head, self._keyring.public_keys())
        except Invalid:
            if not self._keyring.refresh():
                raise
        return read_head(head, self._keyring.public_keys())

    def _seal(self, log_id: str, growth: Growth) -> Head:
        if len(self._borders) >= _MOST_LOGS:
            self._borders.clear()
        self._borders[log_id] = (growth.size, growth.borders())
        return self.sign(log_id, growth.size, growth.root())


def head_from(signature: str, signed: _Signed | None = None) -> Head:
    """The head that a signature is about; ValueError where it is about none. Who has signed it is not checked."""
    if signed is None:
        try:
            signed = _payload.decode(_unpacked(signature.split(".")[1]))
        except (IndexError, ValueError, msgspec.DecodeError) as error:
            raise ValueError("a head that was kept is no head any more") from error
    return Head(log_id=signed.log_id, size=signed.size, root=signed.root, time=signed.time, signature=signature)


def _unpacked(segment: str) -> bytes:
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
