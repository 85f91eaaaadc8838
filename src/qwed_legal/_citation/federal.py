"""Parser of federal law of the United States: Code, regulations, statutes, Constitution and rules of procedure."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple

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
    for form in FORMS:
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


def _make_form(
    kind: str, reporter: str, pattern: str, check: Callable[[dict[str, str], date], FederalCheck], rule: str
) -> FederalForm:
    return FederalForm(kind, reporter, re.compile(rf"(?:{pattern})(?![0-9A-Za-z])"), check, rule)


_USC = r"U\. ?S\. ?C\.(?: ?[ASU]\.)?|USC[AS]?|U\.S\. Code|United States Code(?: Annotated)?"
_SUBSECTIONS = r"(?: ?\([0-9A-Za-z]{1,5}\)){0,8}"
FORMS = (
    _make_form(
        "statute",
        "U.S.C.",
        (
            rf"(?:[Tt]itle )?(?P<title>[0-9]{{1,4}}),? (?P<code>{_USC}),?(?: [Aa]pp\.(?: [0-9]{{1,2}})"
            rf"?)? {SIGN}?{SECTION}"
        ),
        _title_check(_CODE_TITLES, "the United States Code", _RESERVED_TITLE),
        "the United States Code is cited by title and section (1 U.S.C.; The Bluebook, rule 12.3)",
    ),
    _make_form(
        "statute",
        "U.S.C.",
        (
            rf"(?P<title>[0-9]{{1,4}}),? (?P<code>{_USC}),? (?:[Cc]h(?:apter|s?\.) "
            rf"?[0-9]{{1,4}}[A-Z]?(?:-[0-9]{{1,3}}[A-Z]?)?|[Pp]t\. [A-Z0-9]{{1,4}})"
        ),
        _title_check(_CODE_TITLES, "the United States Code", _RESERVED_TITLE),
        "the United States Code is cited by title (1 U.S.C.; The Bluebook, rule 12.3)",
    ),
    _make_form(
        "statute",
        "I.R.C.",
        rf"(?:I\.R\.C\.|IRC|Internal Revenue Code|Int\. Rev\. Code) {SIGN}?{SECTION}",
        _accept_any,
        "the Internal Revenue Code is cited by section (The Bluebook, rule 12.9.1)",
    ),
    _make_form(
        "regulation",
        "C.F.R.",
        (
            rf"(?P<title>[0-9]{{1,4}}),? (?P<code>C\. ?F\. ?R\.|CFR|Code of Federal Regulations),? "
            rf"(?:(?:[Pp]ts?\.?|[Pp]arts?) (?P<part>[0-9]{{1,5}}(?:-[0-9]{{1,5}})?)(?:,? "
            rf"(?:[Ss]ub(?:pt|part)\.? [A-Z]{{1,3}}|app\. [A-Z]))?|{SIGN}?{SECTION})"
        ),
        _title_check(_REGULATION_TITLES, "the Code of Federal Regulations"),
        ("the Code of Federal Regulations is cited by title and section (44 U.S.C. s. 1510; The Bluebook, rule 14.2)"),
    ),
    _make_form(
        "regulation",
        "Treas. Reg.",
        rf"(?:Treas\. Reg\.|Temp\. Treas\. Reg\.|Prop\. Treas\. Reg\.) {SIGN}{SECTION}",
        _accept_any,
        "Treasury regulations are cited by section (The Bluebook, rule 14.5.1)",
    ),
    _make_form(
        "public_law",
        "Pub. L.",
        (
            rf"(?:Pub\. ?L\.|P\. ?L\.|PL|Public Law)(?: (?:Nos?\.?|Number))? (?P<congress>[0-9]{{1,3}})"
            rf"-(?P<number>[0-9]{{1,5}})(?:, (?:div\. [A-Z]{{1,2}}, )?(?:tit\. [IVX]{{1,6}}, )"
            rf"?{SIGN}{SECTION})?"
        ),
        _check_congress,
        (
            "a public law is numbered within its Congress, and a Congress has two years (1 U.S.C. s. "
            "106a; 20th Amendment)"
        ),
    ),
    _make_form(
        "session_law",
        "Stat.",
        r"(?P<volume>[0-9]{1,4}) Stat\. (?P<page>[0-9]{1,5}[A-Z]?(?:-[0-9]{1,4})?)",
        _check_statutes_at_large,
        "the Statutes at Large have one volume for each year since 1938 (1 U.S.C. s. 112)",
    ),
    _make_form(
        "register",
        "Fed. Reg.",
        (
            r"(?P<volume>[0-9]{1,4}) (?:Fed\. ?Reg\.|F\. ?R\.|FR) (?P<page>[0-9]{1,3}(?:,[0-9]{3})|"
            r"[0-9]{1,6})"
        ),
        _check_federal_register,
        "the Federal Register has one volume for each year since 1936 (44 U.S.C. ch. 15)",
    ),
    _make_form(
        "constitution",
        "U.S. Const.",
        (
            r"U\. ?S\. ?(?:Const\.|CONST\.|Constitution,?)(?: (?:(?:[Aa]rt\.|[Aa]rticle) "
            r"(?P<article>[IVXL]{1,8}|[0-9]{1,3})|(?:[Aa]mends?\.|[Aa]mendment) "
            r"(?P<amendment>[IVXL]{1,9}|[0-9]{1,3})|pmbl\.))?(?:, (?:\u00a7{1,2}|sec\.|section) "
            r"?(?P<section>[0-9]{1,2})(?:, (?:cl\.|clause) ?(?P<clause>[0-9]{1,2}))?|, cl\. "
            r"?[0-9]{1,2})?"
        ),
        _check_constitution,
        "the Constitution has seven articles and twenty-seven amendments",
    ),
    _make_form(
        "rule",
        "Fed. R.",
        (
            rf"(?:Fed\. ?R\. ?|Federal Rules? of |F\. ?R\. ?)(?P<body>Civ\. ?P\.|Crim\. ?P\.|App\. "
            rf"?P\.|Evid\.|Bankr\. ?P\.) ?(?P<rule>[0-9]{{1,5}})(?:\.[0-9]{{1,2}})?{_SUBSECTIONS}(?: advisory "
            rf"committee(?:'s)? notes?)?"
        ),
        _check_rule,
        "the Federal Rules are cited by body and number (28 U.S.C. s. 2072; The Bluebook, rule 12.9.3)",
    ),
    _make_form(
        "rule",
        "Sup. Ct. R.",
        rf"Sup\. ?Ct\. ?R\. (?P<rule>[1-9]|[1-4][0-9]){_SUBSECTIONS}(?:\.[0-9]{{1,2}}){{0,2}}{_SUBSECTIONS}",
        _accept_any,
        "rules of the Supreme Court 1 to 49",
    ),
    _make_form(
        "model_code",
        "U.C.C.",
        rf"(?:U\.C\.C\.|UCC) {SIGN}?(?P<section>(?:[1-9]|2A|4A|12)-[0-9]{{3}}[A-Z]?){_SUBSECTIONS}",
        _accept_any,
        "the Uniform Commercial Code is cited by article and section",
    ),
    _make_form(
        "guideline",
        "U.S.S.G.",
        (
            rf"(?:U\.S\.S\.G\.|USSG|U\.S\. Sentencing Guidelines Manual) "
            rf"{SIGN}(?P<section>[1-8][A-Z][0-9]\.[0-9]{{1,2}}){_SUBSECTIONS}"
        ),
        _accept_any,
        "the Sentencing Guidelines have chapters 1 to 8",
    ),
    _make_form(
        "restatement",
        "Restatement",
        (
            rf"Restatement(?: \((?:First|Second|Third)\))? (?:of )?(?:the )?(?:Law of )?(?:Law "
            rf"Governing )?[A-Z][A-Za-z&.,: ]{{2,60}}? {SIGN}{SECTION}(?:(?:,)? (?:cmts?\.|illus\.|"
            rf"reporters' note) ?[a-z0-9]{{0,3}})?"
        ),
        _accept_any,
        "Restatements are cited by subject and section (The Bluebook, rule 12.9.4)",
    ),
    _make_form(
        "order",
        "Exec. Order",
        r"(?:Exec\.|Executive) Order(?: No\.)? (?P<number>[0-9]{1,2},?[0-9]{3}|[0-9]{1,5})",
        _accept_any,
        "executive orders are cited by number (The Bluebook, table T1.2)",
    ),
)
