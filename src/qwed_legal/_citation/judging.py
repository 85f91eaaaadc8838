"""Whether the parts of a citation agree: its year, its court, its pages."""

import re

from qwed_legal._citation.caption import Caption
from qwed_legal._citation.courts import mismatch, place_of
from qwed_legal._citation.found import Core, Draft
from qwed_legal._citation.tail import pages_of
from qwed_legal._citation.volumes import series

_FIRST_YEAR = 1400
_CASES = ("case", "short")
_PUBLISHERS = re.compile(
    r"(?:West|LexisNexis|Lexis|McKinney|Vernon|Bender|Consol\.|Gould|Deering|Purdon|Supp\.|Cum\. Supp\.|Repl\. Vol\."
    r"|ed\.|Am\. L\. Inst\.|Sess\.|West Ann\.|Michie|through|effective|repealed|amended|codified"
    r"|[0-9]{1,3}(?:st|nd|d|rd|th) (?:ed\.|Cong\.|Sess\.)|Unif\. L\. Comm'n|[IVX]{1,4}"
    r"|[A-Z][a-z]{2,9}\.?|[0-9]{1,2},?| |,|&|-)+"
)


def judge(draft: Draft, caption: Caption) -> None:
    """Adds what does not agree to the issues of the draft, and puts year and court among its parts."""
    for core in draft.cores:
        for issue in core.issues:
            draft.wrong(issue)
    year = draft.parts.pop("year_named", None) or caption.year
    court = draft.parts.pop("court_named", None)
    draft.parts.pop("date", None)
    _year(draft, year)
    if court is not None:
        _court(draft, court)
    _pins(draft)
    _twice(draft)


def _year(draft: Draft, year: int | None) -> None:
    if year is None:
        return
    own = draft.parts.get("year")
    draft.parts["year"] = str(year)
    if year > draft.today.year:
        draft.wrong(f"the year {year} has not come yet")
    elif year < _FIRST_YEAR:
        draft.wrong(f"the year {year} is before all reports of cases")
    if own and own.isdigit() and abs(int(own) - year) > 1 and draft.cores[0].kind in ("case", "neutral", "statute"):
        draft.wrong(f"the citation is of {own}, the parentheses say {year}")
    for core in draft.cores:
        if core.years is not None and not core.years[0] <= year <= core.years[1]:
            draft.wrong(f"{_shown(core)} is of {_span(core.years)}, not of {year}")


def _shown(core: Core) -> str:
    named = (
        core.parts.get("volume") or core.parts.get("title") or core.parts.get("congress"),
        core.parts.get("reporter"),
    )
    return "`" + " ".join(str(each) for each in named if each) + "`"


def _span(years: tuple[int, int]) -> str:
    return str(years[0]) if years[0] == years[1] else f"{years[0]} to {years[1]}"


def _court(draft: Draft, court: str) -> None:
    if draft.cores[0].kind not in _CASES:
        if draft.cores[0].kind != "journal" and not _PUBLISHERS.fullmatch(court) and place_of(court) is None:
            draft.wrong(f"`{court}` is no publisher and no supplement")
        return
    draft.parts["court"] = court
    for core in draft.cores:
        if core.kind in _CASES:
            wrong = mismatch(core.parts["reporter"], core.places, court)
            if wrong is not None:
                draft.wrong(wrong)


def _pins(draft: Draft) -> None:
    for number, pin in draft.parts.pop("pins", ()):
        core = draft.cores[number]
        first = core.parts.get("page")
        found = series().get(str(core.parts.get("reporter")))
        if core.kind in ("case", "journal") and first and first.isdigit() and not pin.startswith("*"):
            if core.places is None and core.kind == "case":
                continue
            wrong = pages_of(pin, int(first), found.pages if found else None)
            if wrong is not None:
                draft.wrong(wrong)


def _twice(draft: Draft) -> None:
    """A case stands once in each series."""
    printed = [core.parts["reporter"] for core in draft.cores if core.kind == "case" and core.places]
    if len(set(printed)) < len(printed):
        draft.wrong("the same reporter is named twice: two cases are separated by a semicolon")
