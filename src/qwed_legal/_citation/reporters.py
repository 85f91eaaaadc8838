"""The reporters, laws and journals of reporters-db, found by the name that stands in the text."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from qwed_legal._citation.text import key
from qwed_legal._citation.volumes import series

MARK = "\x00"
"""Stands for the reporter's name while a form is matched: there are a hundred forms, and not one for each name."""
LONGEST_NAME = 80
_REGIONS = {
    "A.": "ct de dc me md nh nj pa ri vt",
    "N.E.": "il in ma ny oh",
    "N.W.": "ia mi mn ne nd sd wi",
    "P.": "ak az ca co hi id ks mt nv nm ok or ut wa wy",
    "S.E.": "ga nc sc va wv",
    "So.": "al fl la ms",
    "S.W.": "ar ky mo tn tx",
}
"""The states of the National Reporter System (The Bluebook, table T1.3)."""
_COUNTED = ("neutral", "specialty_west", "specialty_lexis")
_COUNTING = ("volume_year", "year_page", "paragraph", "cch", "neutral", "louisiana", "(19|20)", "[PU]", "[nNpP]")


class Book(NamedTuple):
    """One edition of a reporter, one code or one journal, under its usual name."""

    edition: str
    name: str
    kind: str
    start: int | None
    end: int | None
    forms: tuple[re.Pattern[str], ...]
    places: frozenset[str]
    numbered: bool = False
    """Whether its pages are numbers of decisions or paragraphs, not of sheets."""


class Hit(NamedTuple):
    """A book whose name stands in the text, and where."""

    book: Book
    start: int
    end: int


@cache
def data() -> Any:
    """The package, imported when it is first needed."""
    try:
        import reporters_db
    except ImportError as missing:
        raise ImportError("citations need `reporters-db`: install `qwed[legal]`") from missing
    return reporters_db


@cache
def books() -> Mapping[str, tuple[Book, ...]]:
    """Every edition and every variation, by what `key` makes of its name."""
    found: dict[str, list[Book]] = {}
    for row in data().REPORTERS.values():
        for each in row:
            for name, book in _editions(each):
                shelf = found.setdefault(key(_straight(name)), [])
                if book not in shelf:
                    shelf.append(book)
    for name, each in _journals():
        found.setdefault(key(name), []).append(each)
    return {name: _ours(name, tuple(shelf)) for name, shelf in found.items()}


def _ours(name: str, shelf: tuple[Book, ...]) -> tuple[Book, ...]:
    """`B.R.` is the Bankruptcy Reporter, though somebody once wrote another one so."""
    known = tuple(book for book in shelf if key(book.edition) == name and book.edition in series())
    return known or shelf


def _straight(name: str) -> str:
    return name.replace("\u2019", "'")


def _editions(row: dict[str, Any]) -> Iterator[tuple[str, Book]]:
    places = _regional(row) or frozenset(map(_place, row["mlz_jurisdiction"]))
    for edition, dates in row["editions"].items():
        forms = dates.get("regexes", ("$full_cite",))
        book = Book(
            edition,
            row["name"],
            row["cite_type"],
            dates["start"] and dates["start"].year,
            dates["end"] and dates["end"].year,
            tuple(form(each) for each in (*forms, *_always(row))),
            places,
            row["cite_type"] in _COUNTED or any(word in each for each in forms for word in _COUNTING),
        )
        yield edition, book
        yield from ((name, book) for name, meant in row["variations"].items() if meant == edition)


def _regional(row: dict[str, Any]) -> frozenset[str]:
    first = next(iter(row["editions"]))
    return (
        frozenset(f"us:{state}" for state in _REGIONS.get(first, "").split())
        if row["cite_type"] == "state_regional"
        else frozenset()
    )


def _always(row: dict[str, Any]) -> tuple[str, ...]:
    return ("$volume $reporter (?P<page>_{2,5})",) if row["cite_type"] == "federal" else ()


def _journals() -> Iterator[tuple[str, Book]]:
    forms = (form("$full_cite"), form("$volume $reporter (?P<page>[0-9]+) n\\. ?[0-9]+"))
    for name, row in data().JOURNALS.items():
        for each in row:
            book = Book(name, each["name"], "journal", None, None, forms, frozenset())
            yield from ((_straight(called), book) for called in (name, *each["variations"]))


def _place(jurisdiction: str) -> str:
    """`us:ca` of `us:ca:d1;court.appeal`, `us` of every federal court."""
    parts = jurisdiction.split(";")[0].split(":")
    inside = parts[1] if len(parts) > 1 else ""
    if parts[0] != "us":
        return parts[0]
    return f"us:{inside}" if len(inside) == 2 and inside.isalpha() else "us" if inside != "tribal" else "us:tribal"


@cache
def form(template: str) -> re.Pattern[str]:
    """A form of reporters-db with the mark in place of the name."""
    from reporters_db.utils import recursive_substitute

    variables = dict(data().REGEX_VARIABLES) | {"edition": MARK, "reporter": f"(?P<reporter>{MARK})"}
    pattern = recursive_substitute(template, variables)
    # A zero in front is read, to be named; what follows a number must not be part of it.
    pattern = pattern.replace("[1-9]\\d*)", "\\d+)").replace("(?P<reporter>$edition)", f"(?P<reporter>{MARK})")
    return re.compile(f"(?:{pattern})(?![0-9A-Za-z])", re.ASCII)


def names_at(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """What may be a name from here on, the longest first: its key, where it begins and where it ends."""
    for begin in _begins(text, start):
        stop = min(len(text), begin + LONGEST_NAME)
        ends = [at for at in range(begin + 1, stop + 1) if _ends(text, at)]
        for end in reversed(ends):
            yield key(text[begin:end]), begin, end


def _begins(text: str, start: int) -> Iterator[int]:
    """Where a name can begin: at once, or after what may be a volume."""
    for at in range(start, min(len(text), start + 26)):
        if text[at].isalpha() and (at == start or not text[at - 1].isalpha()):
            yield at
            if at > start and text[at - 1] in " (-":
                return


def _ends(text: str, at: int) -> bool:
    if at == len(text):
        return True
    return not text[at].isalnum() or (text[at].isdigit() and not text[at - 1].isdigit()) or text[at - 1] in ". )"


def hits(text: str, start: int, shelves: Mapping[str, tuple[Book, ...]]) -> Iterator[Hit]:
    """The books whose names stand here, the longest name first."""
    for name, begin, end in names_at(text, start):
        for book in shelves.get(name, ()):
            yield Hit(book, begin, end)


def matched(text: str, start: int, hit: Hit) -> Iterator[tuple[re.Match[str], int]]:
    """The forms of the book that stand here, each with where it ends in the text."""
    shown = text[start : hit.start] + MARK + text[hit.end : hit.end + 120]
    for each in hit.book.forms:
        found = each.match(shown)
        if found is not None:
            yield found, start + found.end() + hit.end - hit.start - 1
