"""Parser of whole citations: caption, core citation, parallels and what follows."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from qwed_legal._citation.cases import parse_case
from qwed_legal._citation.citation_types import CitationCore, CitationParse
from qwed_legal._citation.consistency import check_consistency
from qwed_legal._citation.ecli import parse_ecli
from qwed_legal._citation.federal import parse_federal
from qwed_legal._citation.law_reports import parse_law_report
from qwed_legal._citation.laws import parse_state_law
from qwed_legal._citation.neutral import parse_neutral
from qwed_legal._citation.parenthetical import PIN, parse_court, parse_history, parse_remark
from qwed_legal._citation.parties import Caption, parse_caption

PARSERS: tuple[Callable[[str, int, date], Iterator[CitationCore]], ...] = (
    parse_ecli,
    parse_neutral,
    parse_federal,
    parse_case,
    parse_law_report,
    parse_state_law,
)
_MAX_STARTS = 40
_MAX_NESTED_STARTS = 12
_MAX_PARTS = 12
"""Limit on parallels, pin cites, remarks or later decisions; with more of one kind it is running text."""
_MAX_DEPTH = 4
_KINDS_WITH_SECTIONS = ("statute", "regulation", "constitution", "rule", "restatement", "public_law", "order")
"""Kinds that have sections and therefore no pin cites."""
_START = re.compile(r"(?<=, )\S|(?<=[ (])[0-9\[(]|(?<= )(?:ECLI:|EU:[CTF]:|LR [0-9]|AIR [0-9])")
_PARALLEL_SEPARATOR = re.compile(r"(?:,|;)? (?:also reported (?:at|in) |reprinted in )?| ?= ?")
_BARE_PIN = re.compile(r" (?P<pin>[0-9]{1,4}(?:-[0-9]{1,4})?)(?![0-9A-Za-z])")
"""Pin cite without a comma, as in British reports."""


def parse_citation(text: str, today: date) -> CitationParse:
    """Return the parse that gets furthest with the fewest issues."""
    return CitationParser(text, today).parse(0, 0)


class CitationParser:
    """Backtracking parser of one text, memoised by position."""

    def __init__(self, text: str, today: date) -> None:
        self.text = text
        self.today = today
        self._cores: dict[int, tuple[CitationCore, ...]] = {}
        self._drafts: dict[tuple[int, int], CitationParse] = {}

    def parse(self, at: int, depth: int) -> CitationParse:
        """Return the best parse of the text from this position on."""
        cached = self._drafts.get((at, depth))
        if cached is None:
            cached = self._drafts[at, depth] = self._parse(at, depth)
        return cached

    def _parse(self, at: int, depth: int) -> CitationParse:
        best = CitationParse(end=at)
        for start in self._starts(at, _MAX_STARTS if depth == 0 else _MAX_NESTED_STARTS):
            for draft in self._candidates(at, start, depth):
                if draft.end == len(self.text) and not draft.issues:
                    return draft
                if not best.cores or self._rank(draft) > self._rank(best):
                    best = draft
        return best

    def _starts(self, at: int, limit: int) -> Iterator[int]:
        yield at
        positions = (match.start() for match in _START.finditer(self.text, at + 1))
        yield from (start for _, start in zip(range(limit), positions, strict=False))

    def _candidates(self, at: int, start: int, depth: int) -> Iterator[CitationParse]:
        before = self.text[at:start]
        caption = parse_caption(before) if before else Caption(None, None)
        for core in self._cores_at(start):
            if caption is not None:
                yield self._parse_tail(caption, core, depth)
            elif core.kind == "journal":
                yield self._parse_tail(Caption(None, before.rstrip(", ")), core, depth)

    def _rank(self, draft: CitationParse) -> tuple[bool, int]:
        is_complete = draft.end == len(self.text)
        return is_complete, -len(draft.issues) if is_complete else draft.end

    def _cores_at(self, at: int) -> tuple[CitationCore, ...]:
        if at not in self._cores:
            self._cores[at] = tuple(core for system in PARSERS for core in system(self.text, at, self.today))
        return self._cores[at]

    def _parse_tail(self, caption: Caption, core: CitationCore, depth: int) -> CitationParse:
        draft = CitationParse(end=core.end, cores=[core], today=self.today, parts={**core.parts})
        caption_parts = {"signal": caption.signal, "parties": caption.parties, "docket": caption.docket}
        draft.parts |= {name: value for name, value in caption_parts.items() if value}
        if caption.issue:
            draft.add_issue(caption.issue)
        while draft.end < len(self.text) and self._step(draft, depth):
            pass
        check_consistency(draft, caption)
        return draft

    def _step(self, draft: CitationParse, depth: int) -> bool:
        """Consume one more part of the citation and return True, or return False."""
        return (
            self._take_court(draft)
            or self._take_remark(draft)
            or self._take_history(draft, depth)
            or self._take_parallel(draft)
            or self._take_pin(draft)
            or self._take_next(draft, depth)
        )

    def _take_court(self, draft: CitationParse) -> bool:
        at = draft.end + self.text.startswith(" ", draft.end)
        match = parse_court(self.text, at) if "date" not in draft.parts else None
        if match is None:
            return False
        court, draft.end = match
        draft.parts |= {"date": court.text, "year_named": court.year}
        if court.court:
            draft.parts["court_named"] = court.court
        return True

    def _take_remark(self, draft: CitationParse) -> bool:
        at = draft.end + self.text.startswith(" ", draft.end)
        end = parse_remark(self.text, at)
        return end is not None and self._add(draft, "parentheticals", self.text[at + 1 : end - 1], end)

    def _take_history(self, draft: CitationParse, depth: int) -> bool:
        match = parse_history(self.text, draft.end)
        if match is None or depth >= _MAX_DEPTH:
            return False
        later = self.parse(match[1], depth + 1)
        return bool(later.cores) and self._merge(draft, "history", {"action": match[0], **later.parts}, later)

    def _take_parallel(self, draft: CitationParse) -> bool:
        match = _PARALLEL_SEPARATOR.match(self.text, draft.end)
        if match is None:
            return False
        for core in sorted(self._cores_at(match.end()), key=lambda candidate: (len(candidate.issues), -candidate.end)):
            if core.kind in ("short", "statute") and draft.cores[0].kind != core.kind:
                continue
            if self._add(draft, "parallel", dict(core.parts), core.end):
                draft.cores.append(core)
                return True
        return False

    def _take_pin(self, draft: CitationParse) -> bool:
        if draft.cores[-1].kind in _KINDS_WITH_SECTIONS:
            return False
        match = PIN.match(self.text, draft.end)
        if match is None and draft.cores[-1].kind == "report":
            match = _BARE_PIN.match(self.text, draft.end)
        if match is None or not self._add(draft, "pins", (len(draft.cores) - 1, match["pin"]), match.end()):
            return False
        draft.parts.setdefault("pin_cite", match["pin"])
        return True

    def _take_next(self, draft: CitationParse, depth: int) -> bool:
        """Consume another citation in the same sentence."""
        if not self.text.startswith(("; ", ". "), draft.end) or depth >= _MAX_DEPTH:
            return False
        later = self.parse(draft.end + 2, depth + 1)
        return (
            later.end == len(self.text) and bool(later.cores) and self._merge(draft, "also", dict(later.parts), later)
        )

    def _merge(self, draft: CitationParse, name: str, parts: dict[str, Any], later: CitationParse) -> bool:
        for issue in later.issues:
            draft.add_issue(issue)
        return self._add(draft, name, parts, later.end)

    def _add(self, draft: CitationParse, name: str, value: Any, end: int) -> bool:
        values = draft.parts.setdefault(name, [])
        if len(values) >= _MAX_PARTS:
            return False
        values.append(value)
        draft.end = end
        return True
