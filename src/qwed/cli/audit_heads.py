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
    """A head, and where it was saved."""

    where: str
    head: Head
    text: Mapping[str, Any]


class SavedHeads:
    """All heads of a file, by the log they are of."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.logs: dict[str, list[Saved]] = {}
        self.unreadable: list[Finding] = []
        self.others = 0
        """Lines that hold no head."""
        for line in heads_in(file):
            if line.head is None:
                self.others += 1
            else:
                self._add(line.number, line.head)

    def _add(self, number: int, text: Mapping[str, Any]) -> None:
        where = f"line {number} of {self.file.name}"
        try:
            head = verifier.read_head(text, None)
        except Invalid as wrong:
            self.unreadable.append(Finding(where, str(wrong)))
        else:
            self.logs.setdefault(head.log_id, []).append(Saved(where, head, text))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.logs.values()))


class Roots:
    """The roots that a growing log has at the sizes of some heads."""

    def __init__(self, saved: list[Saved]) -> None:
        self._wanted = {each.head.size for each in saved}
        self._tree = Tree()
        self._found = {0: self._tree.root()}

    def add(self, leaf: str) -> None:
        """The log has one more leaf."""
        if not self._wanted:
            return
        self._tree.add(verifier.leaf_hash(leaf.encode(errors="replace")))
        if self._tree.size in self._wanted:
            self._found[self._tree.size] = self._tree.root()

    def compared(self, saved: list[Saved], keys: Keys) -> Iterator[Finding]:
        """What is wrong, seen from these heads; the signature is looked at once for each key, and of the newest."""
        told = 0
        seen: set[str] = set()
        newest = max(saved, key=lambda each: each.head.size, default=None)
        for each in saved:
            wrong = self._against(each.head)
            if wrong is None and (each.head.kid not in seen or each is newest):
                seen.add(each.head.kid)
                wrong = signature_of(each, keys)
            if wrong is not None and told < MOST_TOLD:
                told += 1
                yield Finding(f"the head of size {each.head.size} on {each.where}", wrong)

    def _against(self, head: Head) -> str | None:
        if head.size > self._tree.size:
            return (
                f"the log has only {self._tree.size} entries: its end was cut off, or an older copy of it was put back"
            )
        if self._found[head.size] != head.root:
            return f"the first {head.size} entries of the log are not those it was signed for"
        return None


def signature_of(saved: Saved, keys: Keys) -> str | None:
    """What is wrong with the signature."""
    try:
        verifier.read_head(saved.text, keys)
    except Invalid as wrong:
        return str(wrong)
    return None
