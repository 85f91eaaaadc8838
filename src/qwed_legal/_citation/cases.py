"""Parser of case citations: `347 U.S. 483`, `5 U.S. (1 Cranch) 137`, `2015-Ohio-1234`, `2010 WL 123456`."""

import re
from collections.abc import Iterator
from datetime import date

from qwed_legal._citation.citation_types import CitationCore
from qwed_legal._citation.reporters import Publication, find_publications, match_forms, publications_by_name
from qwed_legal._citation.text import is_plain_number
from qwed_legal._citation.volumes import last_volume, reporter_series, volume_years

_NOMINATIVE = {
    "Dall": (1, 4, 0),
    "Cranch": (5, 13, 4),
    "Wheat": (14, 25, 13),
    "Pet": (26, 41, 25),
    "How": (42, 65, 41),
    "Black": (66, 67, 65),
    "Wall": (68, 90, 67),
}
"""Volumes 1 to 90 of the U.S. Reports were printed under the reporter's name: 5 U.S. is 1 Cranch."""
_ONLINE = ("specialty_west", "specialty_lexis")
_NOT_BY_YEAR = ("NLRB No.", "COA", "MT", "CO")
"""Neutral citations with volumes, or with two-digit years, among the examples of reporters-db."""
_MAX_VOLUMES = 999
_MAX_PAGES = 9_999
_MAX_ONLINE = 99_999_999
_UNDATED = 1750
"""Year that reporters-db uses for an unknown first year."""
_LEEWAY = 5
"""Allowed error of an edition's years: they name the printing of the volume, or its first and last term."""
RULE = (
    "a case is cited by volume, reporter and first page (The Bluebook, rules 10.3 and 10.4; names of reporters by "
    "reporters-db); the volume must be one the series has, and the year one of that volume"
)


def parse_case(text: str, start: int, today: date) -> Iterator[CitationCore]:
    """Yield every reading of a case citation here, the longest reporter name first."""
    for hit in find_publications(text, start, publications_by_name()):
        for match, end in match_forms(text, start, hit):
            yield _case_core(hit.publication, match, end, today)
        short = _SHORT_FORM.match(text[start : hit.start] + "\x00" + text[hit.end :])
        if short is not None and hit.start > start:
            yield _short_form_core(hit.publication, short, start + short.end() + hit.end - hit.start - 1, today)


_SHORT_FORM = re.compile(
    r"(?P<volume>\d{1,4}) \x00,? at (?P<page>\*?\d{1,6})(?P<to>-\d{1,6})?(?: n\.? ?\d+)?(?![0-9A-Za-z])", re.ASCII
)


def _short_form_core(publication: Publication, match: re.Match[str], end: int, today: date) -> CitationCore:
    core = _case_core(publication, match, end, today)
    parts = {**core.parts, "kind": "short", "page": None, "pin_cite": match["page"] + (match["to"] or "")}
    issues = tuple(issue for issue in core.issues if "page" not in issue)
    return CitationCore(
        kind="short", end=end, parts=parts, issues=issues, years=core.years, rule=RULE, steps=core.steps
    )


def _case_core(publication: Publication, match: re.Match[str], end: int, today: date) -> CitationCore:
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    parts["reporter"] = publication.edition
    kind = "journal" if publication.kind == "journal" else "case"
    issues = [*_number_issues(parts, publication), *_nominative_issues(parts)]
    years, steps = _case_years(parts, publication, today, issues)
    return CitationCore(
        kind=kind,
        end=end,
        parts={"kind": kind, **parts, "reporter_name": publication.name},
        issues=tuple(issues),
        years=years,
        places=publication.places if kind == "case" and publication.kind not in _ONLINE else None,
        rule=RULE,
        steps=(f"`{publication.edition}` is {publication.name}", *steps),
    )


def _number_issues(parts: dict[str, str], publication: Publication) -> Iterator[str]:
    volume, page = parts.get("volume", "1"), parts.get("page", "1")
    counted = publication.numbered or _is_numbered_by_year(volume, page, publication)
    if volume.isdigit() and not is_plain_number(volume) and not (publication.numbered and len(volume) == 2):
        yield f"volume `{volume[:20]}` is zero or has a zero in front"
    if publication.kind == "neutral" and re.fullmatch("[0-9]{1,3}", volume) and publication.edition not in _NOT_BY_YEAR:
        yield f"`{publication.edition}` numbers its decisions within the year: `{volume}` is not a year"
    if page.isdigit() and int(page[:12]) == 0:
        yield f"page `{page[:20]}` does not exist"
    elif page.isdigit() and not is_plain_number(page) and not counted:
        yield f"page `{page[:20]}` has a zero in front"
    most = _MAX_ONLINE if counted else _max_pages(publication)
    digits = "".join(character for character in page if character.isdigit())
    if digits and int(digits[:12]) > most:
        yield f"page `{page[:20]}` is beyond what a volume of `{publication.edition}` has ({most})"


def _is_numbered_by_year(volume: str, page: str, publication: Publication) -> bool:
    """Return True if decisions are numbered within the year: `2023 NY Slip Op 51350`, `2004 Fed. App. 0437P`."""
    printed = publication.edition in reporter_series() and page.isdigit()
    return len(volume) == 4 and int(volume[:4] if volume.isdigit() else 0) >= _UNDATED and not printed


def _max_pages(publication: Publication) -> int:
    series = reporter_series().get(publication.edition)
    return series.pages if series else _MAX_PAGES if publication.kind != "specialty" else 999_999


def _nominative_issues(parts: dict[str, str]) -> Iterator[str]:
    reporter = parts.get("reporter_nominative", "").rstrip(".")
    if parts["reporter"] != "U.S." or reporter not in _NOMINATIVE:
        return
    first, last, before = _NOMINATIVE[reporter]
    volume, own = parts["volume"], parts.get("volume_nominative")
    if not first <= int(volume[:6]) <= last or (own and int(own) + before != int(volume[:6])):
        yield f"{volume} U.S. is not {own or ''} {reporter}: {reporter} 1 is {first} U.S. and the last is {last} U.S."


def _case_years(
    parts: dict[str, str], publication: Publication, today: date, issues: list[str]
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    volume = parts.get("volume", "")
    if not volume.isdigit():
        return _edition_years(publication, today), ()
    number = int(volume[:9])
    series = reporter_series().get(publication.edition)
    if (
        series is not None
        and publication.kind != "journal"
        and not _is_numbered_by_year(volume, parts.get("page", "1"), publication)
    ):
        return _series_years(publication.edition, number, today, issues)
    if _UNDATED - 150 <= number <= 9999 and len(volume) == 4:
        return _annual_years(number, today, issues)
    if number > _MAX_VOLUMES:
        issues.append(f"volume {volume[:20]} is beyond what `{publication.edition}` can have ({_MAX_VOLUMES})")
    return _edition_years(publication, today), ()


def _series_years(
    edition: str, number: int, today: date, issues: list[str]
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    series = reporter_series()[edition]
    most = last_volume(series, today)
    if not 1 <= number <= most:
        issues.append(f"volume {number} is beyond the last volume that `{edition}` can have ({most})")
        return None, ()
    years = volume_years(series, number, today)
    return years, (f"volume {number} of {edition} has cases of {years[0]} to {years[1]}",)


def _annual_years(number: int, today: date, issues: list[str]) -> tuple[tuple[int, int], tuple[str, ...]]:
    if number > today.year:
        issues.append(f"the year {number} has not come yet")
    return (number - 1, number + 1), (f"the citation is numbered within the year {number}",)


def _edition_years(publication: Publication, today: date) -> tuple[int, int] | None:
    if publication.start in (None, _UNDATED) and publication.end is None:
        return None
    first = 1600 if publication.start in (None, _UNDATED) else (publication.start or 1600) - _LEEWAY
    return first, (publication.end + _LEEWAY if publication.end else today.year)
