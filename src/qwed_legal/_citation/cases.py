"""Cases in a reporter: `347 U.S. 483`, `5 U.S. (1 Cranch) 137`, `2015-Ohio-1234`, `2010 WL 123456`."""

import re
from collections.abc import Iterator
from datetime import date

from qwed_legal._citation.found import Core
from qwed_legal._citation.reporters import Book, books, hits, matched
from qwed_legal._citation.text import whole
from qwed_legal._citation.volumes import last_volume, series, years_of

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
"""Neutral citations with volumes, or with years of two digits, among the examples of reporters-db."""
_MOST_VOLUMES = 999
_MOST_PAGES = 9_999
_MOST_ONLINE = 99_999_999
_UNDATED = 1750
"""What reporters-db writes where the first year is not known."""
_LEEWAY = 5
"""Years by which an edition's dates may be off: they name the volume's printing, or its first and last term."""
RULE = (
    "a case is cited by volume, reporter and first page (The Bluebook, rules 10.3 and 10.4; names of reporters by "
    "reporters-db); the volume must be one the series has, and the year one of that volume"
)


def cases_at(text: str, start: int, today: date) -> Iterator[Core]:
    """Every way to read a case here, the longest name of a reporter first."""
    for hit in hits(text, start, books()):
        for found, end in matched(text, start, hit):
            yield _core(hit.book, found, end, today)
        short = _SHORT.match(text[start : hit.start] + "\x00" + text[hit.end :])
        if short is not None and hit.start > start:
            yield _short(hit.book, short, start + short.end() + hit.end - hit.start - 1, today)


_SHORT = re.compile(
    r"(?P<volume>\d{1,4}) \x00,? at (?P<page>\*?\d{1,6})(?P<to>-\d{1,6})?(?: n\.? ?\d+)?(?![0-9A-Za-z])", re.ASCII
)


def _short(book: Book, found: re.Match[str], end: int, today: date) -> Core:
    core = _core(book, found, end, today)
    parts = {**core.parts, "kind": "short", "page": None, "pin_cite": found["page"] + (found["to"] or "")}
    issues = tuple(each for each in core.issues if "page" not in each)
    return Core(kind="short", end=end, parts=parts, issues=issues, years=core.years, rule=RULE, steps=core.steps)


def _core(book: Book, found: re.Match[str], end: int, today: date) -> Core:
    parts = {name: value for name, value in found.groupdict().items() if value is not None}
    parts["reporter"] = book.edition
    kind = "journal" if book.kind == "journal" else "case"
    issues = [*_numbers(parts, book), *_nominative(parts)]
    years, steps = _years(parts, book, today, issues)
    return Core(
        kind=kind,
        end=end,
        parts={"kind": kind, **parts, "reporter_name": book.name},
        issues=tuple(issues),
        years=years,
        places=book.places if kind == "case" and book.kind not in _ONLINE else None,
        rule=RULE,
        steps=(f"`{book.edition}` is {book.name}", *steps),
    )


def _numbers(parts: dict[str, str], book: Book) -> Iterator[str]:
    volume, page = parts.get("volume", "1"), parts.get("page", "1")
    counted = book.numbered or _of_a_year(volume, page, book)
    if volume.isdigit() and not whole(volume) and not (book.numbered and len(volume) == 2):
        yield f"volume `{volume[:20]}` is zero or has a zero in front"
    if book.kind == "neutral" and re.fullmatch("[0-9]{1,3}", volume) and book.edition not in _NOT_BY_YEAR:
        yield f"`{book.edition}` numbers its decisions within the year: `{volume}` is no year"
    if page.isdigit() and int(page[:12]) == 0:
        yield f"page `{page[:20]}` is no page"
    elif page.isdigit() and not whole(page) and not counted:
        yield f"page `{page[:20]}` has a zero in front"
    most = _MOST_ONLINE if counted else _most_pages(book)
    digits = "".join(each for each in page if each.isdigit())
    if digits and int(digits[:12]) > most:
        yield f"page `{page[:20]}` is beyond what a volume of `{book.edition}` has ({most})"


def _of_a_year(volume: str, page: str, book: Book) -> bool:
    """Whether the decisions of a year are counted: `2023 NY Slip Op 51350`, `2004 Fed. App. 0437P`."""
    printed = book.edition in series() and page.isdigit()
    return len(volume) == 4 and int(volume[:4] if volume.isdigit() else 0) >= _UNDATED and not printed


def _most_pages(book: Book) -> int:
    found = series().get(book.edition)
    return found.pages if found else _MOST_PAGES if book.kind != "specialty" else 999_999


def _nominative(parts: dict[str, str]) -> Iterator[str]:
    called = parts.get("reporter_nominative", "").rstrip(".")
    if parts["reporter"] != "U.S." or called not in _NOMINATIVE:
        return
    first, last, before = _NOMINATIVE[called]
    volume, own = parts["volume"], parts.get("volume_nominative")
    if not first <= int(volume[:6]) <= last or (own and int(own) + before != int(volume[:6])):
        yield f"{volume} U.S. is not {own or ''} {called}: {called} 1 is {first} U.S. and the last is {last} U.S."


def _years(
    parts: dict[str, str], book: Book, today: date, issues: list[str]
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    volume = parts.get("volume", "")
    if not volume.isdigit():
        return _span(book, today), ()
    number = int(volume[:9])
    found = series().get(book.edition)
    if found is not None and book.kind != "journal" and not _of_a_year(volume, parts.get("page", "1"), book):
        return _of_series(book.edition, number, today, issues)
    if _UNDATED - 150 <= number <= 9999 and len(volume) == 4:
        return _of_year(number, today, issues)
    if number > _MOST_VOLUMES:
        issues.append(f"volume {volume[:20]} is beyond what `{book.edition}` can have ({_MOST_VOLUMES})")
    return _span(book, today), ()


def _of_series(
    edition: str, number: int, today: date, issues: list[str]
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    found = series()[edition]
    most = last_volume(found, today)
    if not 1 <= number <= most:
        issues.append(f"volume {number} is beyond the last volume that `{edition}` can have ({most})")
        return None, ()
    years = years_of(found, number, today)
    return years, (f"volume {number} of {edition} has cases of {years[0]} to {years[1]}",)


def _of_year(number: int, today: date, issues: list[str]) -> tuple[tuple[int, int], tuple[str, ...]]:
    if number > today.year:
        issues.append(f"the year {number} has not come yet")
    return (number - 1, number + 1), (f"the citation is numbered within the year {number}",)


def _span(book: Book, today: date) -> tuple[int, int] | None:
    if book.start in (None, _UNDATED) and book.end is None:
        return None
    first = 1600 if book.start in (None, _UNDATED) else (book.start or 1600) - _LEEWAY
    return first, (book.end + _LEEWAY if book.end else today.year)
