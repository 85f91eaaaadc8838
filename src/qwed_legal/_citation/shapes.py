"""What is no citation of a known system: is it shaped like one, and which names are near?"""

import re
from difflib import get_close_matches
from functools import cache
from itertools import islice

from qwed_legal._citation.laws import shelves
from qwed_legal._citation.neutral import canadian, courts
from qwed_legal._citation.reporters import books, names_at
from qwed_legal._citation.reports import SERIES

SYSTEMS = (
    "US cases",
    "US statutes and regulations",
    "US state codes",
    "US constitution and rules",
    "journals",
    "UK neutral citations",
    "UK law reports",
    "ECLI",
    "EU case numbers",
    ("neutral citations of Ireland, Canada, Australia, New Zealand, South Africa, Singapore, Hong Kong and India"),
)
_VOLUME_PAGE = re.compile(
    r"(?<![\w.])(?P<volume>[0-9]{1,6}),? (?P<name>[A-Z][A-Za-z0-9.'& ()-]{0,60}?),? (?P<page>[0-9]{1,8})(?![0-9])"
)
_SQUARE = re.compile(r"\[(?P<year>[0-9]{1,5})\] (?:[0-9]{1,3} )?(?P<name>[A-Z][A-Za-z&' ]{1,20}?)(?: ?[0-9]| *$)")
_SECTION = re.compile(r"(?P<name>[A-Z][A-Za-z.'& ]{1,50}) ?\u00a7")
_ECLI = re.compile(r"\bECLI\b", re.IGNORECASE)
_POINTING = re.compile(r"(?:Id|Ibid|id|ibid|Supra|supra|Infra)\b|.{1,120}\bsupra\b")


def pointing(text: str) -> bool:
    """Whether it only points to a citation that stands elsewhere: `Id. at 5`, `supra note 3`."""
    return _POINTING.match(text) is not None


def shaped(text: str) -> str | None:
    """Why it is no citation although it is shaped like one; None where nothing about it is known."""
    if _ECLI.search(text):
        return "it names an ECLI and is none: `ECLI:`, country, court, year, ordinal"
    for pattern in (_VOLUME_PAGE, _SQUARE, _SECTION):
        found = pattern.search(text)
        if found is not None:
            return _unknown(found["name"].strip())
    return _incomplete(text)


def _unknown(name: str) -> str:
    if name in names():
        return f"`{name}` is known, but this is not how it is cited"
    near = get_close_matches(name, names(), n=3, cutoff=0.5)
    return f"`{name}` is no reporter, court or code that is known" + (f"; near are {', '.join(near)}" if near else "")


def _incomplete(text: str) -> str | None:
    words = (at for at, each in enumerate(text[:400]) if each.isupper() and (at == 0 or text[at - 1] in " ,("))
    for at in islice(words, 20):
        if True:
            for name, begin, end in names_at(text, at):
                known = name in books() or name in shelves()
                if begin == at and known and "." in text[begin:end] and end - begin > 2 and re.search(r"[0-9]", text):
                    return (
                        f"`{text[begin:end]}` is known, but volume, page or section is missing or not where it belongs"
                    )
    return None


@cache
def names() -> tuple[str, ...]:
    """Every name of a reporter, report, court or code, as it is usually written."""
    editions = {book.edition for shelf in books().values() for book in shelf}
    codes = {book.edition for shelf in shelves().values() for book in shelf}
    return tuple(sorted(editions | codes | SERIES | set(courts()) | set(canadian())))
