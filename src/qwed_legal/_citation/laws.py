"""Parser of codes, session laws and registers of the states, by reporters-db and by the states' own names."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any

from qwed_legal._citation.citation_types import CitationCore
from qwed_legal._citation.codes import BY_SECTION, SUBJECTS, names_longest_first
from qwed_legal._citation.reporters import NAME_PLACEHOLDER, Publication, find_publications, match_forms, reporters_data
from qwed_legal._citation.sections import SECTION, SIGN
from qwed_legal._citation.states import state_names
from qwed_legal._citation.text import normalise_name

_FEDERAL = ("Fed. Reg.", "Stat.", "C.F.R.", "U.S.C.", "Pub. L.", "FR")
"""Codes that `federal` parses."""
RULE = "a state's law is cited by its code and the section (The Bluebook, table T1.3; names by reporters-db)"


def parse_state_law(text: str, start: int, _today: date) -> Iterator[CitationCore]:
    """Yield the state law cited at this position."""
    for pattern in _code_patterns():
        match = pattern.match(text, start)
        if match is not None:
            yield _law_core(match["code"], match, match.end())
    for hit in find_publications(text, start, codes_by_name()):
        for match, end in match_forms(text, start, hit):
            yield _law_core(hit.publication.edition, match, end)


def _law_core(code: str, match: re.Match[str], end: int) -> CitationCore:
    parts: dict[str, Any] = {name: value for name, value in match.groupdict().items() if value is not None}
    parts |= {"kind": "statute", "reporter": code}
    year = parts.get("year")
    years = (int(year), int(year)) if year else None
    return CitationCore(kind="statute", end=end, parts=parts, years=years, rule=RULE, steps=(f"`{code}` is a code",))


@cache
def codes_by_name() -> Mapping[str, tuple[Publication, ...]]:
    """Return the codes of reporters-db by every variation of their names."""
    by_name: dict[str, list[Publication]] = {}
    for name, rows in reporters_data().LAWS.items():
        for row in rows:
            if name in _FEDERAL:
                continue
            forms = tuple(
                form
                for template in (*row["regexes"], *_section_forms(row))
                if (form := _compile_form(template)) is not None
            )
            publication = Publication(name, row["name"], "law", None, None, forms, frozenset())
            for spelling in (name, *row["variations"]):
                by_name.setdefault(normalise_name(spelling.replace("\u2019", "'")), []).append(publication)
    return {name: tuple(rows) for name, rows in by_name.items()}


def _section_forms(row: dict[str, Any]) -> tuple[str, ...]:
    """Return additional forms by section; a code may be cited so whatever its forms in reporters-db."""
    if row["cite_type"] not in ("leg_statute", "admin_compilation"):
        return ()
    return (
        "$reporter § $law_section",
        "$reporter tit\\. (?P<title>[0-9]+(?:-?[A-Z])?), § $law_section",
        "$reporter ch\\. (?P<chapter>[0-9]+[A-Z]*), § $law_section",
        "$reporter art\\. (?P<article>[0-9]+[A-Z]?)(?:, § $law_section)?",
    )


def _compile_form(template: str) -> re.Pattern[str] | None:
    from reporters_db.utils import recursive_substitute

    variables = dict(reporters_data().REGEX_VARIABLES) | {
        "edition": NAME_PLACEHOLDER,
        "reporter": f"(?P<reporter>{NAME_PLACEHOLDER})",
        "law_section": SECTION,
    }
    spaced = template.replace(" § ", f" {SIGN}?").replace("tit\\.", "[Tt]it\\.").replace(" art ", " art\\.? ")
    pattern = recursive_substitute(spaced.replace("ch\\\\.", "ch\\."), variables)
    # The subjects of codes cited by subject come from a table; reporters-db accepts any word.
    if (
        ("(?P<subject>" in pattern and "(?P<rule>" not in pattern)
        or pattern.count("(?P<section>") > 1
        or "(?P<reporter>" + NAME_PLACEHOLDER not in pattern
    ):
        return None
    return re.compile(f"(?:{pattern})(?![0-9A-Za-z])")


@cache
def _code_patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of forms that reporters-db lacks."""
    codes = [f"{before}(?:{_alternatives(subjects)}){after}" for before, subjects, after in SUBJECTS]
    codes += [_alternatives(BY_SECTION), r"N\.Y\. ?C\.P\.L\.R\.|C\.?P\.?L\.?R\.?"]
    rows = [rf"(?P<code>{code}),? {SIGN}?{SECTION}" for code in codes]
    return tuple(re.compile(rf"(?:{row})(?![0-9A-Za-z])") for row in (*rows, *_OTHER_FORMS, _constitution_pattern()))


_OTHER_FORMS = (
    rf"(?P<code>Me\. Rev\. Stat\.) [Tt]it\. (?P<title>[0-9]{{1,3}}(?:-?[A-Z])?), {SIGN}{SECTION}",
    rf"{SIGN}{SECTION}, (?P<code>Fla\. Stat\.?)",
    rf"(?P<chapter>[0-9]{{1,4}}) (?P<code>ILCS|I\.L\.C\.S\.|Ill\. Comp\. Stat\.(?: Ann\.)?) "
    rf"(?P<act>[0-9]{{1,5}}) ?/ ?{SECTION}",
    r"(?P<title>[0-9]{1,3}(?:-?[A-Z])?) (?P<code>Pa\. ?C\. ?S\.(?: ?A\.)?|Pa\. Cons\. Stat\.(?: Ann\.)?|V\.S\.A\."
    rf"|M\.R\.S\.(?: ?A\.)?|Del\. C\.|G\.C\.A\.|O\.S\.|Okla\. Stat\.) {SIGN}?{SECTION}",
    r"(?P<code>(?:M\. ?)?G\. ?L\.|Mass\. Gen\. Laws(?: Ann\.)?) (?:c\.|ch\.) ?(?P<chapter>[0-9]{1,3}[A-Z]{0,2}),? "
    rf"{SIGN}{SECTION}",
)
"""Illinois by chapter and act, codes by title, Massachusetts by chapter."""


def _constitution_pattern() -> str:
    states = "|".join(map(_loose_pattern, state_names()))
    return (
        rf"(?P<code>(?:{states}) Const\.(?: of [0-9]{{4}},)?) "
        r"(?:(?:art\.|article) ?(?P<article>[IVXL]{1,8}|[0-9]{1,3}[A-Z]?)"
        r"|amend\. (?P<amendment>[IVXL]{1,9}|[0-9]{1,3}))(?:-?[A-Z])?"
        r"(?:, (?:\u00a7{1,2}|sec\.) ?(?P<section>[0-9]{1,3}[a-z]?)(?:\([a-z0-9]{1,3}\)){0,4}(?:, cl\. ?[0-9]{1,2})?)?"
    )


def _alternatives(table: str) -> str:
    return "|".join(map(_loose_pattern, names_longest_first(table)))


def _loose_pattern(name: str) -> str:
    return re.escape(name).replace("\\ ", " ?").replace("\\.", "\\.?")
