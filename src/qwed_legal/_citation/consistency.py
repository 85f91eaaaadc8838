"""Consistency checks between the parts of a citation: year, court and pages."""

import re

from qwed_legal._citation.citation_types import CitationCore, CitationParse
from qwed_legal._citation.courts import classify_court, court_mismatch
from qwed_legal._citation.parenthetical import pin_issue
from qwed_legal._citation.parties import Caption
from qwed_legal._citation.volumes import reporter_series

_FIRST_YEAR = 1400
_CASES = ("case", "short")
_PUBLISHERS = re.compile(
    r"(?:West|LexisNexis|Lexis|McKinney|Vernon|Bender|Consol\.|Gould|Deering|Purdon|Supp\.|Cum\. Supp\.|Repl\. Vol\."
    r"|ed\.|Am\. L\. Inst\.|Sess\.|West Ann\.|Michie|through|effective|repealed|amended|codified"
    r"|[0-9]{1,3}(?:st|nd|d|rd|th) (?:ed\.|Cong\.|Sess\.)|Unif\. L\. Comm'n|[IVX]{1,4}"
    r"|[A-Z][a-z]{2,9}\.?|[0-9]{1,2},?| |,|&|-)+"
)


def check_consistency(draft: CitationParse, caption: Caption) -> None:
    """Add inconsistencies to the issues of the parse, and the year and court to its parts."""
    for core in draft.cores:
        for issue in core.issues:
            draft.add_issue(issue)
    year = draft.parts.pop("year_named", None) or caption.year
    court = draft.parts.pop("court_named", None)
    draft.parts.pop("date", None)
    _check_year(draft, year)
    if court is not None:
        _check_court(draft, court)
    _check_pins(draft)
    _check_duplicates(draft)


def _check_year(draft: CitationParse, year: int | None) -> None:
    if year is None:
        return
    own = draft.parts.get("year")
    draft.parts["year"] = str(year)
    if year > draft.today.year:
        draft.add_issue(f"the year {year} has not come yet")
    elif year < _FIRST_YEAR:
        draft.add_issue(f"the year {year} is before all reports of cases")
    if own and own.isdigit() and abs(int(own) - year) > 1 and draft.cores[0].kind in ("case", "neutral", "statute"):
        draft.add_issue(f"the citation is of {own}, the parentheses say {year}")
    for core in draft.cores:
        if core.years is not None and not core.years[0] <= year <= core.years[1]:
            draft.add_issue(f"{_format_core(core)} is of {_format_years(core.years)}, not of {year}")


def _format_core(core: CitationCore) -> str:
    parts = (
        core.parts.get("volume") or core.parts.get("title") or core.parts.get("congress"),
        core.parts.get("reporter"),
    )
    return "`" + " ".join(str(part) for part in parts if part) + "`"


def _format_years(years: tuple[int, int]) -> str:
    return str(years[0]) if years[0] == years[1] else f"{years[0]} to {years[1]}"


def _check_court(draft: CitationParse, court: str) -> None:
    if draft.cores[0].kind not in _CASES:
        if draft.cores[0].kind != "journal" and not _PUBLISHERS.fullmatch(court) and classify_court(court) is None:
            draft.add_issue(f"`{court}` is neither a publisher nor a supplement")
        return
    draft.parts["court"] = court
    for core in draft.cores:
        if core.kind in _CASES:
            problem = court_mismatch(core.parts["reporter"], core.places, court)
            if problem is not None:
                draft.add_issue(problem)


def _check_pins(draft: CitationParse) -> None:
    for number, pin in draft.parts.pop("pins", ()):
        core = draft.cores[number]
        first = core.parts.get("page")
        series = reporter_series().get(str(core.parts.get("reporter")))
        if core.kind in ("case", "journal") and first and first.isdigit() and not pin.startswith("*"):
            if core.places is None and core.kind == "case":
                continue
            problem = pin_issue(pin, int(first), series.pages if series else None)
            if problem is not None:
                draft.add_issue(problem)


def _check_duplicates(draft: CitationParse) -> None:
    """Report a reporter that is named twice: a case appears once in each series."""
    printed = [core.parts["reporter"] for core in draft.cores if core.kind == "case" and core.places]
    if len(set(printed)) < len(printed):
        draft.add_issue("the same reporter is named twice: two cases are separated by a semicolon")
