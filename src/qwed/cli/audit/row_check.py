"""Check of the log's rows against their leaves: columns, stored hashes and content."""

import hmac
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from qwed.cli.audit.keys import SubjectKeyLookup
from qwed.ledger import leaf
from qwed.ledger.leaf import Leaf
from qwed.ledger.subject_encryption import VaultError
from qwed.ledger.verifier import MAX_FINDINGS, LogFinding, node_hash
from qwed.store.snapshot_reader import ActivityRow, SnapshotReader

CHECKED, ERASED, EXPIRED, NONE, OLD, UNOPENED = "checked", "erased", "expired", "none", "uncommitted", "unopened"
"""States of an entry's content: matched against its leaf; erased with its subject; removed after retention; never
present; from before leaves committed to content; not decrypted."""
EMPTY_PAYLOAD = "{}"
_HASH = 32
_ROUNDING = 0.01
_MAX_TEXT = 80


class FindingCollector:
    """List of findings up to a limit, and the total count."""

    def __init__(self) -> None:
        self.listed: list[LogFinding] = []
        self.count = 0

    def add(self, where: str, what: str) -> None:
        """Add a finding."""
        self.count += 1
        if len(self.listed) < MAX_FINDINGS:
            self.listed.append(LogFinding(where, what))


_COLUMNS: dict[str, Callable[[Leaf, str], Any]] = {
    "activity_id": lambda leaf, _log: leaf.activity_id,
    "agent_id": lambda leaf, log: leaf.agent_id or log,
    # The column counts decisions on agent requests only, so it is empty for changes.
    "decision": lambda leaf, _log: "" if leaf.event else leaf.decision,
    "event": lambda leaf, _log: leaf.event or "",
    "attestation_id": lambda leaf, _log: leaf.attestation_id,
}


def parse_leaf(text: str) -> Leaf | None:
    """Return the leaf, or None if the text is not a valid leaf."""
    try:
        return leaf.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None


def is_same_time(at: object, entry: Leaf) -> bool:
    """Return True if a column has the time of the leaf; SQLite rounds the last digit of a decimal."""
    return isinstance(at, float) and -_ROUNDING <= at * 1000 - entry.time_ms < 1 + _ROUNDING


class RowCheck:
    """Check of one log, row by row, in order."""

    def __init__(
        self, reader: SnapshotReader, log_id: str, keys: SubjectKeyLookup | None, findings: FindingCollector
    ) -> None:
        self.contents: Counter[str] = Counter()
        self._log_id = log_id
        self._keys = keys
        self._findings = findings
        self._dropped = reader.dropped()
        self._last: dict[int, tuple[int, bytes]] = {}
        """Newest stored hash of each tree level and its position there."""

    def check_row(self, row: ActivityRow) -> Leaf | None:
        """Check every column of the row against its leaf and return the leaf, or None if it cannot be read."""
        parsed = parse_leaf(row.leaf) if _is_well_typed(row) else None
        problems = ["its leaf or its row cannot be read"]
        if parsed is not None:
            problems = [*self._nodes(row), *self._columns(row, parsed), *self._content(row, parsed)]
        for problem in problems:
            self._findings.add(f"entry {row.log_index}", problem)
        return parsed

    def _columns(self, row: ActivityRow, parsed: Leaf) -> Iterator[str]:
        for name, expected in _COLUMNS.items():
            if getattr(row, name) != expected(parsed, self._log_id):
                stored = _truncate(getattr(row, name))
                yield f"its column `{name}` says `{stored}`, its leaf `{expected(parsed, self._log_id)}`"
        if not is_same_time(row.at, parsed):
            yield f"its column `at` says `{row.at}`, its leaf `{parsed.time_ms / 1000}`"

    def _nodes(self, row: ActivityRow) -> Iterator[str]:
        """Yield stored hashes that do not match the two below them; the export check covers the lowest."""
        hashes = _split_hashes(row.nodes)
        position = row.log_index
        if len(hashes) != 1 + _completed_subtrees(position):
            yield "the number of its stored hashes is wrong"
            hashes = hashes[:1]
        for level, stored in enumerate(hashes):
            left = self._last.get(level - 1)
            # If a row is missing there is nothing to compare with; the gap is reported elsewhere.
            sibling = left[1] if left is not None and left[0] == 2 * position else None
            if level and sibling is not None and node_hash(sibling, hashes[level - 1]) != stored:
                yield f"the stored hash of the {1 << level} entries that end with it is wrong"
            position >>= 1
        self._remember(row.log_index, hashes)

    def _remember(self, position: int, hashes: list[bytes]) -> None:
        for level, stored in enumerate(hashes):
            self._last[level] = (position >> level, stored)

    def _content(self, row: ActivityRow, parsed: Leaf) -> Iterator[str]:
        state, problem = self._content_state(row, parsed)
        self.contents[state] += 1
        if problem:
            yield problem

    def _content_state(self, row: ActivityRow, parsed: Leaf) -> tuple[str, str]:
        if not row.payload:
            early = row.sequence > self._dropped
            return EXPIRED, "its content was removed before its retention ended" if early else ""
        if parsed.commitment is None:
            return _check_uncommitted(row, parsed)
        return (UNOPENED, "") if self._keys is None else _check_sealed(row, parsed.commitment, self._keys)


def _check_sealed(row: ActivityRow, commitment: str, keys: SubjectKeyLookup) -> tuple[str, str]:
    try:
        key = keys(row.subject_id)
        if key is None:
            return ERASED, ""
        text = key.open(row.activity_id, row.payload)
    except VaultError as error:
        return UNOPENED, f"its content cannot be decrypted: {error}"
    agrees = hmac.compare_digest(key.commitment(row.activity_id, text), commitment)
    return CHECKED, "" if agrees else "its content does not match the commitment in its leaf"


_TYPES = tuple(ActivityRow.__annotations__.values())


def _is_well_typed(row: ActivityRow) -> bool:
    """Return True if the values have the types of their columns; a direct edit of SQLite can store any type."""
    return all(isinstance(value, kind) for value, kind in zip(row, _TYPES, strict=True)) and row.log_index >= 0


def _truncate(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _check_uncommitted(row: ActivityRow, parsed: Leaf) -> tuple[str, str]:
    if parsed.v == 1:
        return OLD, ""
    empty = row.payload == EMPTY_PAYLOAD and row.subject_id is None
    return NONE, "" if empty else "it has content that its leaf does not commit to"


def _split_hashes(nodes: Any) -> list[bytes]:
    try:
        data = bytes.fromhex(nodes)
    except (TypeError, ValueError):
        return []
    return [data[begin : begin + _HASH] for begin in range(0, len(data), _HASH)]


def _completed_subtrees(index: int) -> int:
    """Return how many subtrees of two or more leaves end with this one."""
    return ((index + 1) & -(index + 1)).bit_length() - 1
