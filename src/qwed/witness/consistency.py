"""Compares published heads with the log: a head that contradicts the log proves that the log was changed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from qwed.ledger import verifier
from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import SubtreeId, fold_hashes, peaks
from qwed.ledger.sequencer import Head, head_from
from qwed.witness.head_file import heads_in

MAX_SIZE = 1 << 53
YIELD_LINES = 256
"""Lines after which the event loop runs other tasks."""


class WitnessedLog(Protocol):
    """Reads of the log that the comparison needs."""

    def latest_heads(self) -> Sequence[str]:
        """Return the newest head of every log."""

    def log_size(self, organisation_id: str) -> int:
        """Return the number of leaves of a log; 0 if it does not exist."""

    def head_at(self, organisation_id: str, size: int) -> str | None:
        """Return the head of that size, or None."""

    def nodes(self, organisation_id: str, wanted: Sequence[SubtreeId]) -> list[bytes]:
        """Return the hashes of complete subtrees."""


class Contradiction(NamedTuple):
    """Published head that cannot be a head of this log."""

    log_id: str
    size: int
    reason: str


class FileComparison(NamedTuple):
    """Result of comparing a file: the newest head of each log, contradictions, and unrelated lines."""

    newest: dict[str, Head]
    contradictions: dict[str, Contradiction]
    """The first of each log."""
    unrelated: Counter[str]
    """Lines without a head, and heads of logs that are not stored here."""


async def compare_file(file: Path, log: WitnessedLog, keyring: Keyring) -> FileComparison:
    """Compare every head in the file with the log."""
    comparison = FileComparison({}, {}, Counter())
    newest = comparison.newest
    async for head in _heads(file, comparison.unrelated):
        result = find_contradiction(head, log, keyring)
        if isinstance(result, Contradiction):
            comparison.contradictions.setdefault(head.log_id, result)
        elif not result:
            comparison.unrelated["heads of other logs"] += 1
        elif head.log_id not in newest or head.size >= newest[head.log_id].size:
            newest[head.log_id] = head
    for head in newest.values():
        # The stored heads may be intact and the tree changed; one recomputed root per log detects that.
        if root_at(head.log_id, head.size, log) != head.root:
            comparison.contradictions.setdefault(head.log_id, _root_mismatch(head))
    return comparison


async def _heads(file: Path, unrelated: Counter[str]) -> AsyncIterator[Head]:
    for line in heads_in(file):
        if line.number % YIELD_LINES == 0:
            await asyncio.sleep(0)
        head = None if line.head is None else _parse_head(line.head)
        if head is None:
            unrelated["lines without a head"] += 1
        else:
            yield head


def _parse_head(head: Mapping[str, Any]) -> Head | None:
    try:
        result = msgspec.convert(head, Head)
    except msgspec.ValidationError:
        return None
    valid = 0 <= result.size <= MAX_SIZE and result.log_id.isascii() and result.log_id.isprintable()
    return result if valid else None


def find_contradiction(head: Head, log: WitnessedLog, keyring: Keyring) -> Contradiction | bool:
    """Return the contradiction between the log and the head; True if there is none, False for a head of another log."""
    size = log.log_size(head.log_id)
    if size == 0 and not _is_signed_here(head, keyring):
        return False
    if head.size > size:
        entries = "1 entry" if size == 1 else f"{size} entries"
        return Contradiction(head.log_id, head.size, f"the log has only {entries}: an older copy was restored")
    stored = log.head_at(head.log_id, head.size)
    root = root_at(head.log_id, head.size, log) if stored is None else head_from(stored).root
    return True if root == head.root else _root_mismatch(head)


def _root_mismatch(head: Head) -> Contradiction:
    return Contradiction(head.log_id, head.size, "the log has another root at that size: its entries were changed")


def root_at(log_id: str, size: int, log: WitnessedLog) -> str:
    """Compute the root of the first `size` leaves from the stored hashes; empty if one is missing."""
    try:
        return fold_hashes(log.nodes(log_id, peaks(size))).hex()
    except ValueError:
        return ""


def _is_signed_here(head: Head, keyring: Keyring) -> bool:
    try:
        verifier.read_head(msgspec.to_builtins(head), keyring.public_keys())
    except verifier.InvalidEvidenceError:
        return False
    return True
