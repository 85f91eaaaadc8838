"""Codes, session laws and registers of the states: those of reporters-db, and the names the states use themselves."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any

from qwed_legal._citation.codes import BY_SECTION, SUBJECTS, listed
from qwed_legal._citation.found import Core
from qwed_legal._citation.reporters import MARK, Book, data, hits, matched
from qwed_legal._citation.sections import SECTION, SIGN
from qwed_legal._citation.states import state_names
from qwed_legal._citation.text import key

_FEDERAL = ("Fed. Reg.", "Stat.", "C.F.R.", "U.S.C.", "Pub. L.", "FR")
"""Read by the forms of federal law."""
RULE = "a state's law is cited by its code and the section (The Bluebook, table T1.3; names by reporters-db)"


def laws_at(text: str, start: int, _today: date) -> Iterator[Core]:
    """State law that is cited here."""
    for pattern in _patterns():
        found = pattern.match(text, start)
        if found is not None:
            yield _core(found["code"], found, found.end())
    for hit in hits(text, start, shelves()):
        for found, end in matched(text, start, hit):
            yield _core(hit.book.edition, found, end)


def _core(code: str, found: re.Match[str], end: int) -> Core:
    parts: dict[str, Any] = {name: value for name, value in found.groupdict().items() if value is not None}
    parts |= {"kind": "statute", "reporter": code}
    year = parts.get("year")
    years = (int(year), int(year)) if year else None
    return Core(kind="statute", end=end, parts=parts, years=years, rule=RULE, steps=(f"`{code}` is a code",))


@cache
def shelves() -> Mapping[str, tuple[Book, ...]]:
    """Every code of reporters-db and every variation of its name."""
    found: dict[str, list[Book]] = {}
    for name, rows in data().LAWS.items():
        for row in rows:
            if name in _FEDERAL:
                continue
            forms = tuple(form for each in (*row["regexes"], *_more(row)) if (form := _form(each)) is not None)
            book = Book(name, row["name"], "law", None, None, forms, frozenset())
            for called in (name, *row["variations"]):
                found.setdefault(key(called.replace("\u2019", "'")), []).append(book)
    return {name: tuple(rows) for name, rows in found.items()}


def _more(row: dict[str, Any]) -> tuple[str, ...]:
    """A code is cited by its sections, whatever form stands in the table."""
    if row["cite_type"] not in ("leg_statute", "admin_compilation"):
        return ()
    return (
        "$reporter § $law_section",
        "$reporter tit\\. (?P<title>[0-9]+(?:-?[A-Z])?), § $law_section",
        "$reporter ch\\. (?P<chapter>[0-9]+[A-Z]*), § $law_section",
        "$reporter art\\. (?P<article>[0-9]+[A-Z]?)(?:, § $law_section)?",
    )


def _form(template: str) -> re.Pattern[str] | None:
    from reporters_db.utils import recursive_substitute

    variables = dict(data().REGEX_VARIABLES) | {
        "edition": MARK,
        "reporter": f"(?P<reporter>{MARK})",
        "law_section": SECTION,
    }
    spaced = template.replace(" § ", f" {SIGN}?").replace("tit\\.", "[Tt]it\\.").replace(" art ", " art\\.? ")
    pattern = recursive_substitute(spaced.replace("ch\\\\.", "ch\\."), variables)
    # What a code of subjects has as subjects is a table here, not any word.
    if (
        ("(?P<subject>" in pattern and "(?P<rule>" not in pattern)
        or pattern.count("(?P<section>") > 1
        or "(?P<reporter>" + MARK not in pattern
    ):
        return None
    return re.compile(f"(?:{pattern})(?![0-9A-Za-z])")


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Forms that are no rows of reporters-db."""
    codes = [f"{before}(?:{_any(subjects)}){after}" for before, subjects, after in SUBJECTS]
    codes += [_any(BY_SECTION), r"N\.Y\. ?C\.P\.L\.R\.|C\.?P\.?L\.?R\.?"]
    rows = [rf"(?P<code>{code}),? {SIGN}?{SECTION}" for code in codes]
    return tuple(re.compile(rf"(?:{row})(?![0-9A-Za-z])") for row in (*rows, *_OTHERS, _constitution()))


_OTHERS = (
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


def _constitution() -> str:
    states = "|".join(map(_loose, state_names()))
    return (
        rf"(?P<code>(?:{states}) Const\.(?: of [0-9]{{4}},)?) "
        r"(?:(?:art\.|article) ?(?P<article>[IVXL]{1,8}|[0-9]{1,3}[A-Z]?)"
        r"|amend\. (?P<amendment>[IVXL]{1,9}|[0-9]{1,3}))(?:-?[A-Z])?"
        r"(?:, (?:\u00a7{1,2}|sec\.) ?(?P<section>[0-9]{1,3}[a-z]?)(?:\([a-z0-9]{1,3}\)){0,4}(?:, cl\. ?[0-9]{1,2})?)?"
    )


def _any(table: str) -> str:
    return "|".join(map(_loose, listed(table)))


def _loose(name: str) -> str:
    return re.escape(name).replace("\\ ", " ?").replace("\\.", "\\.?")
