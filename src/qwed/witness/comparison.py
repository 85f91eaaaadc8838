"""What a witness remembers against what the log says: a head the log contradicts is the proof of another past."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from qwed.ledger import verifier
from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import Place, joined, peaks
from qwed.ledger.sequencer import Head, head_from
from qwed.witness.lines import heads_in

LARGEST = 1 << 53
TURN = 256
"""Lines after which others have their turn."""


class Log(Protocol):
    """What is asked of the store."""

    def latest_heads(self) -> Sequence[str]:
        """The newest head of every log."""

    def log_size(self, organisation_id: str) -> int:
        """How many leaves a log has; none where there is no such log."""

    def head_at(self, organisation_id: str, size: int) -> str | None:
        """The head of that size."""

    def nodes(self, organisation_id: str, wanted: Sequence[Place]) -> list[bytes]:
        """The hashes of complete subtrees."""


class Contradiction(NamedTuple):
    """A head that was published and cannot be one of this log as it is now."""

    log_id: str
    size: int
    why: str


class Recalled(NamedTuple):
    """What a file remembers: the newest head of each log, those that cannot be, and what is none of ours."""

    newest: dict[str, Head]
    contradictions: dict[str, Contradiction]
    """The first of each log."""
    strange: Counter[str]
    """Lines that hold no head, and heads of logs that are not kept here."""


async def recall(file: Path, log: Log, keyring: Keyring) -> Recalled:
    """Compare every head in the file with the log."""
    recalled = Recalled({}, {}, Counter())
    newest = recalled.newest
    async for head in _heads(file, recalled.strange):
        found = contradiction(head, log, keyring)
        if isinstance(found, Contradiction):
            recalled.contradictions.setdefault(head.log_id, found)
        elif not found:
            recalled.strange["heads of other logs"] += 1
        elif head.log_id not in newest or head.size >= newest[head.log_id].size:
            newest[head.log_id] = head
    for head in newest.values():
        # The stored heads may be the old ones and the tree another; once for each log is enough to see that.
        if root_at(head.log_id, head.size, log) != head.root:
            recalled.contradictions.setdefault(head.log_id, _other_root(head))
    return recalled


async def _heads(file: Path, strange: Counter[str]) -> AsyncIterator[Head]:
    for line in heads_in(file):
        if line.number % TURN == 0:
            await asyncio.sleep(0)
        head = None if line.head is None else _typed(line.head)
        if head is None:
            strange["lines that hold no head"] += 1
        else:
            yield head


def _typed(head: Mapping[str, Any]) -> Head | None:
    try:
        found = msgspec.convert(head, Head)
    except msgspec.ValidationError:
        return None
    sound = 0 <= found.size <= LARGEST and found.log_id.isascii() and found.log_id.isprintable()
    return found if sound else None


def contradiction(head: Head, log: Log, keyring: Keyring) -> Contradiction | bool:
    """What the log has against the head; True where it has nothing, False where it is the head of another log."""
    size = log.log_size(head.log_id)
    if size == 0 and not _signed_here(head, keyring):
        return False
    if head.size > size:
        entries = "1 entry" if size == 1 else f"{size} entries"
        return Contradiction(head.log_id, head.size, f"the log has only {entries}: an older copy was put back")
    kept = log.head_at(head.log_id, head.size)
    root = root_at(head.log_id, head.size, log) if kept is None else head_from(kept).root
    return True if root == head.root else _other_root(head)


def _other_root(head: Head) -> Contradiction:
    return Contradiction(head.log_id, head.size, "the log had another root at that size: its past is another")


def root_at(log_id: str, size: int, log: Log) -> str:
    """The root of the log's first `size` leaves from the hashes it keeps; none where one of them is gone."""
    try:
        return joined(log.nodes(log_id, peaks(size))).hex()
    except ValueError:
        return ""


def _signed_here(head: Head, keyring: Keyring) -> bool:
    try:
        verifier.read_head(msgspec.to_builtins(head), keyring.public_keys())
    except verifier.Invalid:
        return False
    return True
