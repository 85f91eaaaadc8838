"""The rows of a log against their leaves, which are proven: columns, kept hashes, content."""

import hmac
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from qwed.cli.audit.keys import SubjectKeys
from qwed.ledger import leaf
from qwed.ledger.leaf import Leaf
from qwed.ledger.vault import VaultError
from qwed.ledger.verifier import MAX_FINDINGS, Finding, node_hash
from qwed.store.reader import KeptActivity, Reader

CHECKED, ERASED, EXPIRED, NONE, OLD, UNOPENED = "checked", "erased", "expired", "none", "uncommitted", "unopened"
"""What became of a content: it was held against its leaf; went with its subject; went when its time was over; there
never was any; is from before leaves committed to it; could not be opened."""
NOTHING = "{}"
_HASH = 32
_ROUNDING = 0.01
_LONGEST = 80


class Findings:
    """What is wrong, up to a number that a person would read, and how much there is in all."""

    def __init__(self) -> None:
        self.listed: list[Finding] = []
        self.count = 0

    def add(self, where: str, what: str) -> None:
        """Take one down."""
        self.count += 1
        if len(self.listed) < MAX_FINDINGS:
            self.listed.append(Finding(where, what))


_COLUMNS: dict[str, Callable[[Leaf, str], Any]] = {
    "activity_id": lambda kept, _log: kept.activity_id,
    "agent_id": lambda kept, log: kept.agent_id or log,
    # The decision of a change is its own affair: only answers to agents are counted by it.
    "decision": lambda kept, _log: "" if kept.event else kept.decision,
    "event": lambda kept, _log: kept.event or "",
    "attestation_id": lambda kept, _log: kept.attestation_id,
}


def leaf_in(text: str) -> Leaf | None:
    """The leaf, or None where the text is none any more."""
    try:
        return leaf.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None


def same_moment(at: object, kept: Leaf) -> bool:
    """Whether a column names the moment of the leaf; SQLite reads a decimal to within its last digit."""
    return isinstance(at, float) and -_ROUNDING <= at * 1000 - kept.time_ms < 1 + _ROUNDING


class RowCheck:
    """One log, row by row, in order."""

    def __init__(self, reader: Reader, log_id: str, keys: SubjectKeys | None, findings: Findings) -> None:
        self.contents: Counter[str] = Counter()
        self._log_id = log_id
        self._keys = keys
        self._findings = findings
        self._dropped = reader.dropped()
        self._last: dict[int, tuple[int, bytes]] = {}
        """The newest kept hash of each level, and its position there."""

    def row(self, row: KeptActivity) -> Leaf | None:
        """The leaf of the row, once everything in the row was held against it."""
        kept = leaf_in(row.leaf) if _well_typed(row) else None
        wrong = ["its leaf, or its row, cannot be read"]
        if kept is not None:
            wrong = [*self._nodes(row), *self._columns(row, kept), *self._content(row, kept)]
        for what in wrong:
            self._findings.add(f"entry {row.log_index}", what)
        return kept

    def _columns(self, row: KeptActivity, kept: Leaf) -> Iterator[str]:
        for name, expected in _COLUMNS.items():
            if getattr(row, name) != expected(kept, self._log_id):
                said = _short(getattr(row, name))
                yield f"its column `{name}` says `{said}`, its leaf `{expected(kept, self._log_id)}`"
        if not same_moment(row.at, kept):
            yield f"its column `at` says `{row.at}`, its leaf `{kept.time_ms / 1000}`"

    def _nodes(self, row: KeptActivity) -> Iterator[str]:
        """Whether each kept hash is that of the two below it; the lowest is held against the leaf with the export."""
        hashes = _hashes(row.nodes)
        position = row.log_index
        if len(hashes) != 1 + _completed(position):
            yield "its kept hashes are not as many as it completes subtrees"
            hashes = hashes[:1]
        for level, found in enumerate(hashes):
            left = self._last.get(level - 1)
            # Where a row is missing there is nothing to compare with, and the gap is told elsewhere.
            beside = left[1] if left is not None and left[0] == 2 * position else None
            if level and beside is not None and node_hash(beside, hashes[level - 1]) != found:
                yield f"the kept hash of the {1 << level} entries that end with it is not theirs"
            position >>= 1
        self._remember(row.log_index, hashes)

    def _remember(self, position: int, hashes: list[bytes]) -> None:
        for level, found in enumerate(hashes):
            self._last[level] = (position >> level, found)

    def _content(self, row: KeptActivity, kept: Leaf) -> Iterator[str]:
        state, wrong = self._content_state(row, kept)
        self.contents[state] += 1
        if wrong:
            yield wrong

    def _content_state(self, row: KeptActivity, kept: Leaf) -> tuple[str, str]:
        if not row.payload:
            early = row.sequence > self._dropped
            return EXPIRED, "its content was removed before its time was over" if early else ""
        if kept.commitment is None:
            return _uncommitted(row, kept)
        return (UNOPENED, "") if self._keys is None else _opened(row, kept.commitment, self._keys)


def _opened(row: KeptActivity, commitment: str, keys: SubjectKeys) -> tuple[str, str]:
    try:
        key = keys(row.subject_id)
        if key is None:
            return ERASED, ""
        text = key.open(row.activity_id, row.payload)
    except VaultError as error:
        return UNOPENED, f"its content cannot be opened: {error}"
    agrees = hmac.compare_digest(key.commitment(row.activity_id, text), commitment)
    return CHECKED, "" if agrees else "its content is not what its leaf commits to"


_TYPES = tuple(KeptActivity.__annotations__.values())


def _well_typed(row: KeptActivity) -> bool:
    """Whether the row holds what its table allows: a hand that knows SQLite may have put anything there."""
    return all(isinstance(value, kind) for value, kind in zip(row, _TYPES, strict=True)) and row.log_index >= 0


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _uncommitted(row: KeptActivity, kept: Leaf) -> tuple[str, str]:
    if kept.v == 1:
        return OLD, ""
    empty = row.payload == NOTHING and row.subject_id is None
    return NONE, "" if empty else "it has content that its leaf does not commit to"


def _hashes(nodes: Any) -> list[bytes]:
    try:
        data = bytes.fromhex(nodes)
    except (TypeError, ValueError):
        return []
    return [data[begin : begin + _HASH] for begin in range(0, len(data), _HASH)]


def _completed(index: int) -> int:
    """How many subtrees of two leaves and more end with this one."""
    return ((index + 1) & -(index + 1)).bit_length() - 1
