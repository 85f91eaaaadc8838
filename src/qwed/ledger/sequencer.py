"""Appends leaves to logs: each batch makes the trees grow and ends in a signed head.

Called by the writer, inside the commit, one batch at a time. The cost depends on the batch and not on the size of the
log: only the frontier of a tree is kept in memory.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import MerkleFrontier, SubtreeId, peaks
from qwed.ledger.verifier import HeadClaims as SignedHead
from qwed.ledger.verifier import InvalidEvidenceError, read_head
from qwed.model.clock import Clock, rfc3339

HEAD_TYPE = "qwed-head+jwt"
MAX_CACHED_LOGS = 10_000

ReadFrontier = Callable[[str, int, Sequence[SubtreeId]], tuple[list[bytes], str | None]]
"""Reads, for one log at this size, the stored hashes of these subtrees and the signature of the head."""

_encode = msgspec.json.Encoder().encode


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Signed state of a log (INTERFACES 4)."""

    log_id: str
    size: int
    root: str
    time: str
    signature: str


class _HeadPayload(msgspec.Struct, frozen=True, kw_only=True):
    """Signed fields of a head, in alphabetical order, so that the JSON is canonical."""

    log_id: str
    root: str
    size: int
    time: str


_payload = msgspec.json.Decoder(_HeadPayload)


class LeafPosition(msgspec.Struct, frozen=True, gc=False):
    """Position of a leaf, under the first head that covers it."""

    index: int
    head: Head
    frontier: MerkleFrontier

    def path(self) -> list[str]:
        """Return the audit path of the leaf, in hex."""
        return self.frontier.hex_path(self.index)


class Integration(NamedTuple):
    """Result of appending a batch to its logs."""

    nodes: list[str]
    """Node hashes that each leaf completes, in hex."""
    heads: dict[str, Head]
    frontiers: dict[str, MerkleFrontier]

    def frontier(self, log_id: str) -> list[bytes]:
        """Return the hashes of the complete subtrees of the log after the batch."""
        return self.frontiers[log_id].peak_hashes()

    def position(self, log_id: str, index: int) -> LeafPosition:
        """Return the position of a leaf of the batch."""
        return LeafPosition(index, self.heads[log_id], self.frontiers[log_id])


class Sequencer:
    """Appends to the logs. Not thread-safe."""

    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock
        self._frontiers: dict[str, tuple[int, list[bytes]]] = {}

    def integrate(self, leaves: Iterable[tuple[str, int, str]], read: ReadFrontier) -> Integration:
        """Append these leaves (log, index, text) to their logs, each under a new head."""
        frontiers: dict[str, MerkleFrontier] = {}
        nodes: list[str] = []
        for log_id, index, text in leaves:
            frontier = frontiers.get(log_id)
            if frontier is None:
                frontier = frontiers[log_id] = self._frontier_of(log_id, index, read)
            if frontier.size != index:
                raise ValueError(f"leaf {index} of {log_id} does not follow a log of size {frontier.size}")
            nodes.append(frontier.add(text.encode()).hex())
        heads: dict[str, Head] = {}
        for log_id, frontier in frontiers.items():
            if len(self._frontiers) >= MAX_CACHED_LOGS:
                self._frontiers.clear()
            self._frontiers[log_id] = frontier.size, frontier.peak_hashes()
            heads[log_id] = self.sign(log_id, frontier.size, frontier.root())
        return Integration(nodes, heads, frontiers)

    def reset(self) -> None:
        """Forget cached frontiers after a failed write."""
        self._frontiers.clear()

    def sign(self, log_id: str, size: int, root: bytes) -> Head:
        """Sign a head, as of now."""
        payload = _HeadPayload(log_id=log_id, root=root.hex(), size=size, time=rfc3339(self._clock.now()))
        signature = self._keyring.current.sign(HEAD_TYPE, _encode(payload))
        return Head(log_id=log_id, size=size, root=payload.root, time=payload.time, signature=signature)

    def _frontier_of(self, log_id: str, size: int, read: ReadFrontier) -> MerkleFrontier:
        cached = self._frontiers.get(log_id)
        if cached is not None and cached[0] == size:
            return MerkleFrontier(*cached)
        return self._resume(log_id, size, read) if size else MerkleFrontier(0, [])

    def _resume(self, log_id: str, size: int, read: ReadFrontier) -> MerkleFrontier:
        """Return the frontier of a stored log; raise ValueError unless it is what its head was signed for."""
        hashes, signature = read(log_id, size, peaks(size))
        if signature is None:
            raise ValueError(f"the log of {log_id} has no head of size {size}")
        head = self._verify_head(signature)
        frontier = MerkleFrontier(size, hashes)
        if (head.log_id, head.size, head.root) != (log_id, size, frontier.root()):
            raise ValueError(f"the log of {log_id} is not what its head of size {size} was signed for")
        return frontier

    def _verify_head(self, signature: str) -> SignedHead:
        """Return the claims of a head that one of our keys signed, even one that another process has just made."""
        head = msgspec.to_builtins(head_from(signature))
        try:
            return read_head(head, self._keyring.public_keys())
        except InvalidEvidenceError:
            if not self._keyring.refresh():
                raise
        return read_head(head, self._keyring.public_keys())


def head_from(signature: str) -> Head:
    """Parse the head in a signature, without checking the signature; raise ValueError if it is not one."""
    try:
        payload = _payload.decode(_decode_segment(signature.split(".")[1]))
    except (IndexError, ValueError, msgspec.DecodeError) as error:
        raise ValueError("a stored head is damaged") from error
    return Head(log_id=payload.log_id, size=payload.size, root=payload.root, time=payload.time, signature=signature)


def _decode_segment(segment: str) -> bytes:
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
