"""A whole citation: what stands before it, itself and its parallels, and what follows."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from qwed_legal._citation.caption import Caption, caption_of
from qwed_legal._citation.cases import cases_at
from qwed_legal._citation.ecli import ecli_at
from qwed_legal._citation.federal import federal_at
from qwed_legal._citation.found import Core, Draft
from qwed_legal._citation.judging import judge
from qwed_legal._citation.laws import laws_at
from qwed_legal._citation.neutral import neutral_at
from qwed_legal._citation.reports import reports_at
from qwed_legal._citation.tail import PIN, court_at, history_at, remark_at

SYSTEMS: tuple[Callable[[str, int, date], Iterator[Core]], ...] = (
    ecli_at,
    neutral_at,
    federal_at,
    cases_at,
    reports_at,
    laws_at,
)
_MOST_STARTS = 40
_LATER_STARTS = 12
_MOST_PARTS = 12
"""Parallels, pages, remarks or later decisions: a citation with more of one kind is a text."""
_DEPTH = 4
_SECTIONED = ("statute", "regulation", "constitution", "rule", "restatement", "public_law", "order")
"""What has sections has no pages to point to."""
_START = re.compile(r"(?<=, )\S|(?<=[ (])[0-9\[(]|(?<= )(?:ECLI:|EU:[CTF]:|LR [0-9]|AIR [0-9])")
_BETWEEN = re.compile(r"(?:,|;)? (?:also reported (?:at|in) |reprinted in )?| ?= ?")
_BARE_PIN = re.compile(r" (?P<pin>[0-9]{1,4}(?:-[0-9]{1,4})?)(?![0-9A-Za-z])")
"""British reports have the page pointed to without a comma."""


def read(text: str, today: date) -> Draft:
    """The reading that gets furthest with the fewest issues."""
    return Reader(text, today).read(0, 0)


class Reader:
    """One text as it is being read; what was read at a place once is not read there again."""

    def __init__(self, text: str, today: date) -> None:
        self.text = text
        self.today = today
        self._cores: dict[int, tuple[Core, ...]] = {}
        self._drafts: dict[tuple[int, int], Draft] = {}

    def read(self, at: int, depth: int) -> Draft:
        """The best reading of the text from a place on."""
        known = self._drafts.get((at, depth))
        if known is None:
            known = self._drafts[at, depth] = self._read(at, depth)
        return known

    def _read(self, at: int, depth: int) -> Draft:
        best = Draft(end=at)
        for start in self._starts(at, _MOST_STARTS if depth == 0 else _LATER_STARTS):
            for draft in self._drafted(at, start, depth):
                if draft.end == len(self.text) and not draft.issues:
                    return draft
                if not best.cores or self._rank(draft) > self._rank(best):
                    best = draft
        return best

    def _starts(self, at: int, most: int) -> Iterator[int]:
        yield at
        found = (each.start() for each in _START.finditer(self.text, at + 1))
        yield from (start for _, start in zip(range(most), found, strict=False))

    def _drafted(self, at: int, start: int, depth: int) -> Iterator[Draft]:
        before = self.text[at:start]
        caption = caption_of(before) if before else Caption(None, None)
        for core in self._cores_at(start):
            if caption is not None:
                yield self._follow(caption, core, depth)
            elif core.kind == "journal":
                yield self._follow(Caption(None, before.rstrip(", ")), core, depth)

    def _rank(self, draft: Draft) -> tuple[bool, int]:
        whole = draft.end == len(self.text)
        return whole, -len(draft.issues) if whole else draft.end

    def _cores_at(self, at: int) -> tuple[Core, ...]:
        if at not in self._cores:
            self._cores[at] = tuple(core for system in SYSTEMS for core in system(self.text, at, self.today))
        return self._cores[at]

    def _follow(self, caption: Caption, core: Core, depth: int) -> Draft:
        draft = Draft(end=core.end, cores=[core], today=self.today, parts={**core.parts})
        named = {"signal": caption.signal, "parties": caption.parties, "docket": caption.docket}
        draft.parts |= {name: value for name, value in named.items() if value}
        if caption.issue:
            draft.wrong(caption.issue)
        while draft.end < len(self.text) and self._step(draft, depth):
            pass
        judge(draft, caption)
        return draft

    def _step(self, draft: Draft, depth: int) -> bool:
        """Takes one more part of the citation; whether there was one."""
        return (
            self._court(draft)
            or self._remark(draft)
            or self._history(draft, depth)
            or self._parallel(draft)
            or self._pin(draft)
            or self._next(draft, depth)
        )

    def _court(self, draft: Draft) -> bool:
        at = draft.end + self.text.startswith(" ", draft.end)
        found = court_at(self.text, at) if "date" not in draft.parts else None
        if found is None:
            return False
        named, draft.end = found
        draft.parts |= {"date": named.text, "year_named": named.year}
        if named.court:
            draft.parts["court_named"] = named.court
        return True

    def _remark(self, draft: Draft) -> bool:
        at = draft.end + self.text.startswith(" ", draft.end)
        end = remark_at(self.text, at)
        return end is not None and self._add(draft, "parentheticals", self.text[at + 1 : end - 1], end)

    def _history(self, draft: Draft, depth: int) -> bool:
        found = history_at(self.text, draft.end)
        if found is None or depth >= _DEPTH:
            return False
        later = self.read(found[1], depth + 1)
        return bool(later.cores) and self._take(draft, "history", {"action": found[0], **later.parts}, later)

    def _parallel(self, draft: Draft) -> bool:
        found = _BETWEEN.match(self.text, draft.end)
        if found is None:
            return False
        for core in sorted(self._cores_at(found.end()), key=lambda each: (len(each.issues), -each.end)):
            if core.kind in ("short", "statute") and draft.cores[0].kind != core.kind:
                continue
            if self._add(draft, "parallel", dict(core.parts), core.end):
                draft.cores.append(core)
                return True
        return False

    def _pin(self, draft: Draft) -> bool:
        if draft.cores[-1].kind in _SECTIONED:
            return False
        found = PIN.match(self.text, draft.end)
        if found is None and draft.cores[-1].kind == "report":
            found = _BARE_PIN.match(self.text, draft.end)
        if found is None or not self._add(draft, "pins", (len(draft.cores) - 1, found["pin"]), found.end()):
            return False
        draft.parts.setdefault("pin_cite", found["pin"])
        return True

    def _next(self, draft: Draft, depth: int) -> bool:
        """One more citation in the same sentence."""
        if not self.text.startswith(("; ", ". "), draft.end) or depth >= _DEPTH:
            return False
        later = self.read(draft.end + 2, depth + 1)
        return later.end == len(self.text) and bool(later.cores) and self._take(draft, "also", dict(later.parts), later)

    def _take(self, draft: Draft, name: str, parts: dict[str, Any], later: Draft) -> bool:
        for issue in later.issues:
            draft.wrong(issue)
        return self._add(draft, name, parts, later.end)

    def _add(self, draft: Draft, name: str, value: Any, end: int) -> bool:
        found = draft.parts.setdefault(name, [])
        if len(found) >= _MOST_PARTS:
            return False
        found.append(value)
        draft.end = end
        return True
