"""Comparison of a log with heads that were saved earlier."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qwed.ledger import verifier
from qwed.ledger.verifier import HeadClaims, InvalidEvidenceError, Keys, LogFinding, Tree
from qwed.witness.head_file import heads_in

MAX_HEAD_FINDINGS = 10
"""Maximum findings per log: one wrong head usually makes all later ones wrong."""


class SavedHead(NamedTuple):
    """Saved head and its line in the file."""

    line: int
    head: HeadClaims
    text: Mapping[str, Any]


class LogHeads:
    """Saved heads of one log; signatures are kept for the newest head and the first head of each key."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: dict[tuple[int, bytes], int] = {}
        """First line of each pair of size and root."""
        self._first: dict[str, SavedHead] = {}
        self._newest: SavedHead | None = None

    def add(self, saved: SavedHead) -> None:
        """Add a saved head."""
        self.count += 1
        self.lines.setdefault((saved.head.size, saved.head.root), saved.line)
        self._first.setdefault(saved.head.kid, saved)
        if self._newest is None or saved.head.size >= self._newest.head.size:
            self._newest = saved

    def unsigned_heads(self, keys: Keys) -> Iterator[tuple[SavedHead, str]]:
        """Yield the heads that none of these keys signed, with the reason."""
        by_line = {saved.line: saved for saved in (*self._first.values(), self._newest) if saved is not None}
        for saved in by_line.values():
            try:
                verifier.read_head(saved.text, keys)
            except InvalidEvidenceError as error:
                yield saved, str(error)

    def all_signed(self, keys: Keys) -> bool:
        """Return True if these keys signed all heads whose signature is kept."""
        return next(self.unsigned_heads(keys), None) is None


class SavedHeads:
    """Heads of a file, grouped by log."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.logs: dict[str, LogHeads] = {}
        self.unreadable: list[LogFinding] = []
        for line in heads_in(file):
            if line.head is not None:
                self._add(line.number, line.head)

    def location(self, line: int) -> str:
        """Return the text for a line number in findings."""
        return f"line {line} of {self.file.name}"

    def _add(self, number: int, text: Mapping[str, Any]) -> None:
        try:
            head = verifier.read_head(text, None)
        except InvalidEvidenceError as error:
            if len(self.unreadable) < MAX_HEAD_FINDINGS:
                self.unreadable.append(LogFinding(self.location(number), str(error)))
        else:
            self.logs.setdefault(head.log_id, LogHeads()).add(SavedHead(number, head, text))


class RootTracker:
    """Computes the roots of a growing log at the sizes of the saved heads."""

    def __init__(self, saved: LogHeads | None) -> None:
        self._saved = saved or LogHeads()
        self._sizes = {size for size, _root in self._saved.lines}
        self._tree = Tree()
        self._roots = {0: self._tree.root()}

    def add(self, leaf: str) -> None:
        """Append one leaf."""
        if not self._sizes:
            return
        self._tree.add(verifier.leaf_hash(leaf.encode(errors="replace")))
        if self._tree.size in self._sizes:
            self._roots[self._tree.size] = self._tree.root()

    def compare(self, file: SavedHeads | None, keys: Keys) -> Iterator[LogFinding]:
        """Yield the differences between the log and the saved heads."""
        if file is None:
            return
        count = 0
        for (size, root), line in self._saved.lines.items():
            difference = self._difference(size, root)
            if difference is not None and count < MAX_HEAD_FINDINGS:
                count += 1
                yield LogFinding(f"the head of size {size} on {file.location(line)}", difference)
        for saved, reason in self._saved.unsigned_heads(keys):
            yield LogFinding(f"the head of size {saved.head.size} on {file.location(saved.line)}", reason)

    def _difference(self, size: int, root: bytes) -> str | None:
        if size > self._tree.size:
            entries = f"{self._tree.size} {'entry' if self._tree.size == 1 else 'entries'}"
            return f"the log has only {entries}: it was truncated, or an older copy was restored"
        if self._roots[size] != root:
            return f"the first {size} entries of the log do not match the signed head"
        return None
