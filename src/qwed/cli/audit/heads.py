"""Heads that somebody saved, against a log as it is now: whoever kept one finds whatever was changed under it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qwed.ledger import verifier
from qwed.ledger.verifier import Finding, Head, Invalid, Keys, Tree
from qwed.witness.lines import heads_in

MOST_TOLD = 10
"""Findings about the heads of one log: what is wrong with the first is wrong with all that follow."""


class Saved(NamedTuple):
    """A head as it was saved, and on which line."""

    line: int
    head: Head
    text: Mapping[str, Any]


class HeadsOfLog:
    """The saved heads of one log: what they all say, and the signatures of the newest and of the first of each key."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: dict[tuple[int, bytes], int] = {}
        """Size and root, and the first line that has them."""
        self._first: dict[str, Saved] = {}
        self._newest: Saved | None = None

    def add(self, saved: Saved) -> None:
        """Take one in."""
        self.count += 1
        self.lines.setdefault((saved.head.size, saved.head.root), saved.line)
        self._first.setdefault(saved.head.kid, saved)
        if self._newest is None or saved.head.size >= self._newest.head.size:
            self._newest = saved

    def unsigned(self, keys: Keys) -> Iterator[tuple[Saved, str]]:
        """Those that none of these keys has signed, and why not."""
        looked_at = {saved.line: saved for saved in (*self._first.values(), self._newest) if saved is not None}
        for saved in looked_at.values():
            try:
                verifier.read_head(saved.text, keys)
            except Invalid as wrong:
                yield saved, str(wrong)

    def all_signed(self, keys: Keys) -> bool:
        """Whether these keys have signed what was looked at."""
        return next(self.unsigned(keys), None) is None


class SavedHeads:
    """All heads of a file, by the log they are of."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.logs: dict[str, HeadsOfLog] = {}
        self.unreadable: list[Finding] = []
        for line in heads_in(file):
            if line.head is not None:
                self._add(line.number, line.head)

    def where(self, line: int) -> str:
        """A line, as it is told."""
        return f"line {line} of {self.file.name}"

    def _add(self, number: int, text: Mapping[str, Any]) -> None:
        try:
            head = verifier.read_head(text, None)
        except Invalid as wrong:
            if len(self.unreadable) < MOST_TOLD:
                self.unreadable.append(Finding(self.where(number), str(wrong)))
        else:
            self.logs.setdefault(head.log_id, HeadsOfLog()).add(Saved(number, head, text))


class Roots:
    """The roots that a growing log has at the sizes of the saved heads."""

    def __init__(self, saved: HeadsOfLog | None) -> None:
        self._saved = saved or HeadsOfLog()
        self._wanted = {size for size, _root in self._saved.lines}
        self._tree = Tree()
        self._found = {0: self._tree.root()}

    def add(self, leaf: str) -> None:
        """The log has one more leaf."""
        if not self._wanted:
            return
        self._tree.add(verifier.leaf_hash(leaf.encode(errors="replace")))
        if self._tree.size in self._wanted:
            self._found[self._tree.size] = self._tree.root()

    def compared(self, file: SavedHeads | None, keys: Keys) -> Iterator[Finding]:
        """What is wrong, seen from the saved heads."""
        if file is None:
            return
        told = 0
        for (size, root), line in self._saved.lines.items():
            wrong = self._against(size, root)
            if wrong is not None and told < MOST_TOLD:
                told += 1
                yield Finding(f"the head of size {size} on {file.where(line)}", wrong)
        for saved, why in self._saved.unsigned(keys):
            yield Finding(f"the head of size {saved.head.size} on {file.where(saved.line)}", why)

    def _against(self, size: int, root: bytes) -> str | None:
        if size > self._tree.size:
            entries = f"{self._tree.size} {'entry' if self._tree.size == 1 else 'entries'}"
            return f"the log has only {entries}: its end was cut off, or an older copy of it was put back"
        if self._found[size] != root:
            return f"the first {size} entries of the log are not those it was signed for"
        return None
