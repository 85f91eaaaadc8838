"""Lookup of reporters, laws and journals of reporters-db by their names in a text."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from qwed_legal._citation.text import normalise_name
from qwed_legal._citation.volumes import reporter_series

NAME_PLACEHOLDER = "\x00"
"""Replaces the publication's name while a form is matched, so that forms are shared by all names."""
MAX_NAME_LENGTH = 80
_REGIONS = {
    "A.": "ct de dc me md nh nj pa ri vt",
    "N.E.": "il in ma ny oh",
    "N.W.": "ia mi mn ne nd sd wi",
    "P.": "ak az ca co hi id ks mt nv nm ok or ut wa wy",
    "S.E.": "ga nc sc va wv",
    "So.": "al fl la ms",
    "S.W.": "ar ky mo tn tx",
}
"""States of the National Reporter System (The Bluebook, table T1.3)."""
_NUMBERED_TYPES = ("neutral", "specialty_west", "specialty_lexis")
_NUMBERED_FORMS = ("volume_year", "year_page", "paragraph", "cch", "neutral", "louisiana", "(19|20)", "[PU]", "[nNpP]")


class Publication(NamedTuple):
    """Edition of a reporter, code or journal under its usual name."""

    edition: str
    name: str
    kind: str
    start: int | None
    end: int | None
    forms: tuple[re.Pattern[str], ...]
    places: frozenset[str]
    numbered: bool = False
    """True if its pages are numbers of decisions or paragraphs."""


class PublicationMatch(NamedTuple):
    """Occurrence of a publication's name in the text."""

    publication: Publication
    start: int
    end: int


@cache
def reporters_data() -> Any:
    """Return the reporters-db package, imported on first use."""
    try:
        import reporters_db
    except ImportError as error:
        raise ImportError("citations need `reporters-db`: install `qwed[legal]`") from error
    return reporters_db


@cache
def publications_by_name() -> Mapping[str, tuple[Publication, ...]]:
    """Return the publications by the normalised name of every edition and variation."""
    by_name: dict[str, list[Publication]] = {}
    for rows in reporters_data().REPORTERS.values():
        for row in rows:
            for name, publication in _reporter_editions(row):
                publications = by_name.setdefault(normalise_name(_straighten_quotes(name)), [])
                if publication not in publications:
                    publications.append(publication)
    for name, journal in _journals():
        by_name.setdefault(normalise_name(name), []).append(journal)
    return {name: _prefer_known_series(name, tuple(publications)) for name, publications in by_name.items()}


def _prefer_known_series(name: str, publications: tuple[Publication, ...]) -> tuple[Publication, ...]:
    """Drop other publications if a known series has the name: `B.R.` is the Bankruptcy Reporter."""
    in_series = tuple(
        publication
        for publication in publications
        if normalise_name(publication.edition) == name and publication.edition in reporter_series()
    )
    return in_series or publications


def _straighten_quotes(name: str) -> str:
    return name.replace("\u2019", "'")


def _reporter_editions(row: dict[str, Any]) -> Iterator[tuple[str, Publication]]:
    places = _regional_states(row) or frozenset(map(_jurisdiction_code, row["mlz_jurisdiction"]))
    for edition, dates in row["editions"].items():
        forms = dates.get("regexes", ("$full_cite",))
        publication = Publication(
            edition,
            row["name"],
            row["cite_type"],
            dates["start"] and dates["start"].year,
            dates["end"] and dates["end"].year,
            tuple(compile_form(template) for template in (*forms, *_extra_forms(row))),
            places,
            row["cite_type"] in _NUMBERED_TYPES
            or any(word in template for template in forms for word in _NUMBERED_FORMS),
        )
        yield edition, publication
        yield from ((name, publication) for name, target in row["variations"].items() if target == edition)


def _regional_states(row: dict[str, Any]) -> frozenset[str]:
    first = next(iter(row["editions"]))
    return (
        frozenset(f"us:{state}" for state in _REGIONS.get(first, "").split())
        if row["cite_type"] == "state_regional"
        else frozenset()
    )


def _extra_forms(row: dict[str, Any]) -> tuple[str, ...]:
    return ("$volume $reporter (?P<page>_{2,5})",) if row["cite_type"] == "federal" else ()


def _journals() -> Iterator[tuple[str, Publication]]:
    forms = (compile_form("$full_cite"), compile_form("$volume $reporter (?P<page>[0-9]+) n\\. ?[0-9]+"))
    for name, row in reporters_data().JOURNALS.items():
        for journal in row:
            publication = Publication(name, journal["name"], "journal", None, None, forms, frozenset())
            yield from ((_straighten_quotes(spelling), publication) for spelling in (name, *journal["variations"]))


def _jurisdiction_code(jurisdiction: str) -> str:
    """Return `us:ca` for `us:ca:d1;court.appeal`, and `us` for every federal court."""
    parts = jurisdiction.split(";")[0].split(":")
    inside = parts[1] if len(parts) > 1 else ""
    if parts[0] != "us":
        return parts[0]
    return f"us:{inside}" if len(inside) == 2 and inside.isalpha() else "us" if inside != "tribal" else "us:tribal"


@cache
def compile_form(template: str) -> re.Pattern[str]:
    """Compile a form of reporters-db with the placeholder instead of the name."""
    from reporters_db.utils import recursive_substitute

    variables = dict(reporters_data().REGEX_VARIABLES) | {
        "edition": NAME_PLACEHOLDER,
        "reporter": f"(?P<reporter>{NAME_PLACEHOLDER})",
    }
    pattern = recursive_substitute(template, variables)
    # A leading zero is accepted here and reported later; the character behind a number must not belong to it.
    pattern = pattern.replace("[1-9]\\d*)", "\\d+)").replace(
        "(?P<reporter>$edition)", f"(?P<reporter>{NAME_PLACEHOLDER})"
    )
    return re.compile(f"(?:{pattern})(?![0-9A-Za-z])", re.ASCII)


def candidate_names(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield possible names from here on, the longest first: normalised name, start and end."""
    for begin in _name_starts(text, start):
        stop = min(len(text), begin + MAX_NAME_LENGTH)
        ends = [at for at in range(begin + 1, stop + 1) if _is_name_end(text, at)]
        for end in reversed(ends):
            yield normalise_name(text[begin:end]), begin, end


def _name_starts(text: str, start: int) -> Iterator[int]:
    """Yield the offsets at which a name can begin: here, or behind a possible volume."""
    for at in range(start, min(len(text), start + 26)):
        if text[at].isalpha() and (at == start or not text[at - 1].isalpha()):
            yield at
            if at > start and text[at - 1] in " (-":
                return


def _is_name_end(text: str, at: int) -> bool:
    if at == len(text):
        return True
    return not text[at].isalnum() or (text[at].isdigit() and not text[at - 1].isdigit()) or text[at - 1] in ". )"


def find_publications(
    text: str, start: int, shelves: Mapping[str, tuple[Publication, ...]]
) -> Iterator[PublicationMatch]:
    """Yield the publications whose names occur here, the longest name first."""
    for name, begin, end in candidate_names(text, start):
        for publication in shelves.get(name, ()):
            yield PublicationMatch(publication, begin, end)


def match_forms(text: str, start: int, hit: PublicationMatch) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the matching forms of the publication, each with its end in the text."""
    masked = text[start : hit.start] + NAME_PLACEHOLDER + text[hit.end : hit.end + 120]
    for pattern in hit.publication.forms:
        match = pattern.match(masked)
        if match is not None:
            yield match, start + match.end() + hit.end - hit.start - 1
