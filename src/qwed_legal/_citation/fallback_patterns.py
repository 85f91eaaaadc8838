"""Explanations for text that resembles a citation but belongs to no known system."""

import re
from difflib import get_close_matches
from functools import cache
from itertools import islice

from qwed_legal._citation.law_reports import SERIES
from qwed_legal._citation.laws import codes_by_name
from qwed_legal._citation.neutral import bracket_courts, canadian_courts
from qwed_legal._citation.reporters import candidate_names, publications_by_name

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
_BACK_REFERENCE = re.compile(r"(?:Id|Ibid|id|ibid|Supra|supra|Infra)\b|.{1,120}\bsupra\b")


def is_back_reference(text: str) -> bool:
    """Return True if the text only refers to another citation: `Id. at 5`, `supra note 3`."""
    return _BACK_REFERENCE.match(text) is not None


def explain_unknown(text: str) -> str | None:
    """Return why the text is not a citation although it resembles one, or None if nothing can be said."""
    if _ECLI.search(text):
        return "it names an ECLI but does not have its form: `ECLI:`, country, court, year, ordinal"
    for pattern in (_VOLUME_PAGE, _SQUARE, _SECTION):
        match = pattern.search(text)
        if match is not None:
            return _unknown_name_issue(match["name"].strip())
    return _incomplete_issue(text)


def _unknown_name_issue(name: str) -> str:
    if name in known_names():
        return f"`{name}` is known, but this is not how it is cited"
    near = get_close_matches(name, known_names(), n=3, cutoff=0.5)
    return f"`{name}` is not a known reporter, court or code" + (
        f"; similar names are {', '.join(near)}" if near else ""
    )


def _incomplete_issue(text: str) -> str | None:
    words = (
        at for at, character in enumerate(text[:400]) if character.isupper() and (at == 0 or text[at - 1] in " ,(")
    )
    for at in islice(words, 20):
        if True:
            for name, begin, end in candidate_names(text, at):
                is_known = name in publications_by_name() or name in codes_by_name()
                if (
                    begin == at
                    and is_known
                    and "." in text[begin:end]
                    and end - begin > 2
                    and re.search(r"[0-9]", text)
                ):
                    return (
                        f"`{text[begin:end]}` is known, but volume, page or section is missing or not where it belongs"
                    )
    return None


@cache
def known_names() -> tuple[str, ...]:
    """Return every name of a reporter, report, court or code in its usual spelling."""
    editions = {publication.edition for publications in publications_by_name().values() for publication in publications}
    codes = {publication.edition for publications in codes_by_name().values() for publication in publications}
    return tuple(sorted(editions | codes | SERIES | set(bracket_courts()) | set(canadian_courts())))
