"""Parser of European Case Law Identifiers, and of case numbers of the Court of Justice of the European Union."""

import re
from collections.abc import Iterator
from datetime import date

from qwed_legal._citation.citation_types import CitationCore

RULE = (
    "an ECLI has five parts: `ECLI`, country, court of 1 to 7 characters beginning with a "
    "letter, year, and an ordinal of at most 25 "
    "letters, digits and dots (Council conclusions 2011/C 127/01, annex, paragraph 1)"
)
CASE_RULE = (
    "a case of the Union's courts is cited by court, number and year of its registration, then the parties and the "
    "ECLI (Court of Justice, method of citing the case-law)"
)
_COUNTRIES = """
AT BE BG CY CZ DE DK EE EL ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK GB UK NO IS LI CH AL BA MD ME MK RS
TR UA EU CE EP
"""
"""Members and former members of the Union, neighbouring and candidate states, the Union, the Council of Europe, the
EPO."""
_EU_COURTS = {
    "C": (1954, 9999, "Court of Justice"),
    "T": (1989, 9999, "General Court"),
    "F": (2005, 2016, "Civil Service Tribunal"),
}
_ECLI = re.compile(r"(?P<prefix>[Ee][Cc][Ll][Ii]) ?:(?P<rest>[^\s,;()]{0,80})")
_BARE_ECLI = re.compile(r"EU:(?P<court>[CTF]):(?P<year>[0-9]{4}):(?P<ordinal>[0-9]{1,5})(?![0-9A-Za-z:])")
_CASE = re.compile(
    r"(?:(?:Joined )?Cases? )?(?P<court>[CTF])[-\u2011](?P<number>[0-9]{1,4})"
    r"/(?P<short>[0-9]{2})(?: (?P<suffix>P|PPU|P-R|R|RENV|REV|RX|DEP)\b)?"
    r"(?:(?:,| and| to) [CTF]-[0-9]{1,4}/[0-9]{2}(?: P)?){0,9}(?![0-9A-Za-z/])"
)
_OLD_CASE = re.compile(
    r"(?:Joined )?Cases? (?P<number>[0-9]{1,3})(?:(?:, | and |-)[0-9]{1,3}){0,9}/(?P<short>5[3-9]|[678][0-9])"
    r"(?![0-9A-Za-z/])"
)
"""Case numbers until 1989, when there was one court and no letter."""
_NUMBER = r"(?:ECLI:)?EU:[CTF]:[0-9]{4}:[0-9]{1,5}(?![0-9A-Za-z])"
_PARTIES_AND_ECLI = re.compile(
    rf"(?P<name>(?:,|:)? [A-Z][^\[\]\n:;]{{1,200}}?)(?:,? |, ?| ?\()(?P<ecli>{_NUMBER})\)?"
    rf"|(?P<alone>(?:,|:)? [A-Z][A-Za-z .,'&()\u00c0-\u024f/-]{{2,160}}$)|, ?(?P<bare>{_NUMBER})"
)


def parse_ecli(text: str, start: int, today: date) -> Iterator[CitationCore]:
    """Yield the ECLI, or the case number of the Union's courts, at this position."""
    match = _ECLI.match(text, start)
    if match is not None:
        yield _parse_identifier(match, today)
    bare = _BARE_ECLI.match(text, start)
    if bare is not None:
        yield _ecli_core(bare["court"], "EU", bare["year"], bare["ordinal"], bare.end(), [], today)
    case = _CASE.match(text, start) or _OLD_CASE.match(text, start)
    if case is not None:
        yield _case_number_core(text, case, today)


def _parse_identifier(match: re.Match[str], today: date) -> CitationCore:
    end = match.end() - len(match["rest"]) + len(match["rest"].rstrip("."))
    pieces = match["rest"].rstrip(".").split(":")
    issues = [] if match[0].startswith("ECLI:") else ["an ECLI begins with `ECLI:`, in capitals and without a blank"]
    if len(pieces) != 4:
        issues.append(f"an ECLI has five parts, this has {len(pieces) + 1}")
        return CitationCore(kind="ecli", end=end, parts={"kind": "ecli"}, issues=tuple(issues), rule=RULE)
    return _ecli_core(pieces[1], pieces[0], pieces[2], pieces[3], end, issues, today)


def _ecli_core(
    court: str, country: str, year: str, ordinal: str, end: int, issues: list[str], today: date
) -> CitationCore:
    issues = [*issues, *_format_issues(country, court, year, ordinal), *_year_issues(country, court, year, today)]
    parts = {"kind": "ecli", "country": country, "court": court, "year": year, "ordinal": ordinal}
    steps = (f"country {country}, court {court}, year {year}, ordinal {ordinal}",)
    return CitationCore(kind="ecli", end=end, parts=parts, issues=tuple(issues), rule=RULE, steps=steps)


def _format_issues(country: str, court: str, year: str, ordinal: str) -> Iterator[str]:
    if country not in _COUNTRIES.split():
        yield f"`{country[:20]}` is not a country or organisation that issues ECLIs"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,6}", court, re.ASCII):
        yield f"the court `{court[:20]}` is not 1 to 7 letters and digits that begin with a letter"
    if not re.fullmatch(r"[0-9]{4}", year, re.ASCII):
        yield f"the year `{year[:20]}` is not four digits"
    if not re.fullmatch(r"[A-Za-z0-9.]{1,25}", ordinal, re.ASCII):
        yield f"the ordinal `{ordinal[:40]}` is not 1 to 25 letters, digits and dots"
    if country == "EU" and not re.fullmatch(r"[1-9][0-9]{0,3}", ordinal, re.ASCII):
        yield f"the Union's courts number their decisions from 1 within the year, `{ordinal[:20]}` is not such a number"


def _year_issues(country: str, court: str, year: str, today: date) -> Iterator[str]:
    if not re.fullmatch(r"[0-9]{4}", year, re.ASCII):
        return
    if int(year) > today.year:
        yield f"the year {year} has not come yet"
    if country != "EU":
        yield from (f"the year {year} is before every court that issues ECLIs",) if int(year) < 1800 else ()
    elif court not in _EU_COURTS:
        yield f"the Union's courts are C, T and F, not `{court[:20]}`"
    elif not _EU_COURTS[court][0] <= int(year) <= _EU_COURTS[court][1]:
        yield f"the {_EU_COURTS[court][2]} ({court}) gave no decisions in {year}"


def _case_number_core(text: str, match: re.Match[str], today: date) -> CitationCore:
    court = match.groupdict().get("court") or "C"
    short = int(match["short"])
    year = 2000 + short if 2000 + short <= today.year and match.re is _CASE else 1900 + short
    first, last, name = _EU_COURTS[court]
    issues: list[str] = []
    if not first <= year <= last or not match["number"].strip("0"):
        issues.append(f"the {name} ({court}) has no case of that number in {year}")
    parts = {"kind": "eu_case", "court": court, "number": match["number"], "year": str(year)}
    end = _take_parties(text, match.end(), parts, issues, today)
    step = f"{court} is the {name}, number {match['number']} of {year}"
    return CitationCore(kind="eu_case", end=end, parts=parts, issues=tuple(issues), rule=CASE_RULE, steps=(step,))


def _take_parties(text: str, at: int, parts: dict[str, str], issues: list[str], today: date) -> int:
    """Parse the parties and the ECLI behind a case number, and return the end offset."""
    match = _PARTIES_AND_ECLI.match(text, at)
    if match is None:
        return at
    name, ecli = match["name"] or match["alone"], match["ecli"] or match["bare"]
    if name:
        parts["parties"] = name.strip(" ,:(")
    if ecli:
        parts["ecli"] = ecli
        country, court, year, ordinal = ecli.removeprefix("ECLI:").split(":")
        issues.extend((*_format_issues(country, court, year, ordinal), *_year_issues(country, court, year, today)))
    return match.end()
