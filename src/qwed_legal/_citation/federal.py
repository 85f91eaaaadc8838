"""Parser of federal law of the United States: Code, regulations, statutes, Constitution and rules of procedure."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple

from qwed.model.data_files import read_patterns
from qwed_legal._citation.citation_types import CitationCore
from qwed_legal._citation.sections import SECTION, SIGN

_CODE_TITLES = 54
_RESERVED_TITLE = 53
_REGULATION_TITLES = 50
_ARTICLES = 7
_AMENDMENTS = 27
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50}
_WORDS = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth"]

FederalCheck = tuple[list[str], tuple[int, int] | None, tuple[str, ...]]
"""Issues, possible years, and lookup steps."""


class FederalForm(NamedTuple):
    """Citation form of federal law."""

    kind: str
    reporter: str
    pattern: re.Pattern[str]
    check: Callable[[dict[str, str], date], FederalCheck]
    rule: str


def parse_federal(text: str, start: int, today: date) -> Iterator[CitationCore]:
    """Yield the federal law cited at this position."""
    for form in _FORMS:
        match = form.pattern.match(text, start)
        if match is None:
            continue
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        issues, years, steps = form.check(parts, today)
        components: dict[str, Any] = {"kind": form.kind, "reporter": form.reporter, **parts}
        yield CitationCore(
            kind=form.kind,
            end=match.end(),
            parts=components,
            issues=tuple(issues),
            years=years,
            rule=form.rule,
            steps=steps,
        )


def _title_check(most: int, name: str, reserved: int = 0) -> Callable[[dict[str, str], date], FederalCheck]:
    def check(parts: dict[str, str], today: date) -> FederalCheck:
        title = parts["title"]
        if title.startswith("0") or not 1 <= int(title) <= most or int(title) == reserved:
            suffix = f", and title {reserved} is reserved" if reserved else ""
            return [f"{name} has no title {title}: it has titles 1 to {most}{suffix}"], None, ()
        return [], (1925, today.year + 1), (f"{name} has titles 1 to {most}, and {title} is one of them",)

    return check


def _accept_any(_parts: dict[str, str], _today: date) -> FederalCheck:
    return [], None, ()


def _check_congress(parts: dict[str, str], today: date) -> FederalCheck:
    congress = int(parts["congress"])
    last = (today.year - 1789) // 2 + 1
    if not 1 <= congress <= last or int(parts["number"]) == 0:
        return [f"there is no public law {congress}-{parts['number'][:9]}: the last Congress is the {last}th"], None, ()
    first = 1789 + 2 * (congress - 1)
    return (
        [],
        (first, first + 2),
        (f"Congress {congress} sat from {first} to {first + 2}: 1789 + 2 x ({congress} - 1)",),
    )


def _check_statutes_at_large(parts: dict[str, str], today: date) -> FederalCheck:
    volume = int(parts["volume"])
    last = today.year - 1886
    if not 1 <= volume <= last:
        return [f"volume {volume} is beyond the last volume of the Statutes at Large ({last})"], None, ()
    if volume < 52:
        return [], (1789, 1937), (f"volume {volume} is before 1938",)
    year = volume + 1886
    return [], (year - 1, year + 1), (f"volume {volume} is of {volume} + 1886 = {year}",)


def _check_federal_register(parts: dict[str, str], today: date) -> FederalCheck:
    volume = int(parts["volume"])
    if not 1 <= volume <= today.year - 1935:
        return [f"volume {volume} is beyond the last volume of the Federal Register ({today.year - 1935})"], None, ()
    if int(parts["page"].replace(",", "")) == 0:
        return ["page 0 does not exist"], None, ()
    year = volume + 1935
    return [], (year, year), (f"volume {volume} is of {volume} + 1935 = {year}",)


def parse_roman(text: str) -> int:
    """Parse a well-formed Roman numeral; 0 for anything else."""
    if text.isdigit():
        return int(text[:6])
    if not re.fullmatch(r"X{0,4}(?:IX|IV|V?I{0,3})", text):
        return 0
    values = [_ROMAN[letter] for letter in text]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _check_constitution(parts: dict[str, str], _today: date) -> FederalCheck:
    most, name = (_AMENDMENTS, "amendment") if "amendment" in parts else (_ARTICLES, "article")
    numeral = parts["amendment"] if "amendment" in parts else parts.get("article")
    if numeral is None:
        return [], None, ()
    number = parse_roman(numeral)
    if not 1 <= number <= most:
        return [f"the Constitution has no {name} {numeral}: it has {most}"], None, ()
    return [], None, (f"{name} {numeral} is number {number} of {most}",)


_RULES = {
    "Civ. P.": (1, 87),
    "Crim. P.": (1, 62),
    "App. P.": (1, 48),
    "Evid.": (101, 1103),
    "Bankr. P.": (1001, 9040),
}


def _check_rule(parts: dict[str, str], _today: date) -> FederalCheck:
    body = next(name for name in _RULES if name.replace(" ", "") == parts["body"].replace(" ", ""))
    first, last = _RULES[body]
    number = int(parts["rule"])
    if not first <= number <= last:
        return [f"the Federal Rules ({body}) have no rule {number}: they are {first} to {last}"], None, ()
    return [], None, (f"the Federal Rules ({body}) run from {first} to {last}",)


_CHECKS = {
    "-": _accept_any,
    "code": _title_check(_CODE_TITLES, "the United States Code", _RESERVED_TITLE),
    "regulations": _title_check(_REGULATION_TITLES, "the Code of Federal Regulations"),
    "congress": _check_congress,
    "statutes_at_large": _check_statutes_at_large,
    "federal_register": _check_federal_register,
    "constitution": _check_constitution,
    "rule": _check_rule,
}


def _form(heading: str, pattern: str) -> FederalForm:
    kind, reporter, check, rule = heading.split("\t")
    return FederalForm(kind, reporter, re.compile(rf"(?:{pattern})(?![0-9A-Za-z])"), _CHECKS[check], rule)


_FORMS = tuple(
    _form(heading, pattern)
    for heading, patterns in read_patterns(__file__, "federal_forms.txt", {"SIGN": SIGN, "SECTION": SECTION})
    for pattern in patterns
)
