"""Parser of neutral citations of the United Kingdom and other common law countries: year, court and number."""

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import NamedTuple

from qwed.model.data_files import read_rows
from qwed_legal._citation.citation_types import CitationCore

RULE = (
    "a neutral citation is the year in square brackets, the court and the number of the "
    "judgment (Practice Direction of 11 January 2001, "
    "[2001] 1 WLR 194, and of 14 January 2002, [2002] 1 WLR 346)"
)


class NeutralCourt(NamedTuple):
    """Court that numbers its judgments."""

    first: int
    last: int
    most: int
    """Upper bound on the judgments of a year."""
    before: tuple[str, ...] = ()
    """Divisions before the number, one of which is required."""
    after: tuple[str, ...] = ()
    """Divisions behind the number, in parentheses."""
    required: bool = False
    square: bool = True


_AUSTRALIAN = (
    "FCA FCAFC FamCA FamCAFC FedCFamC1A FedCFamC2F FCCA NSWCA NSWCCA NSWSC NSWLEC NSWDC VSC "
    "VSCA VCC QCA QSC QDC SASC SASCFC SASCA SADC "
    "WASC WASCA WADC TASSC TASCCA TASFC ACTSC ACTCA NTSC NTCA NTCCA AATA"
)
_CANADIAN = (
    "SCC FCA FC TCC CMAC ONCA ONSC ONCJ BCCA BCSC BCPC ABCA ABQB ABKB ABPC ABCJ SKCA SKQB "
    "SKKB MBCA MBQB MBKB QCCA QCCS QCCQ NBCA NBQB NBKB "
    "NSCA NSSC NSPC PECA PESC NLCA NLSC NLTD YKCA YKSC NWTCA NWTSC NUCA NUCJ"
)


def _court(first: str, last: str, most: str, before: str, behind: str, required: str) -> NeutralCourt:
    ahead, after = (tuple(filter(None, text.split("|"))) for text in (before, behind))
    return NeutralCourt(int(first), int(last) or 9999, int(most), ahead, after, required=required == "yes")


@cache
def bracket_courts() -> dict[str, NeutralCourt]:
    """Return the courts whose citations have the year in square brackets."""
    rows = {name: _court(*row) for name, *row in read_rows(__file__, "neutral_courts.txt", 7)}
    return {name: NeutralCourt(1998, 9999, 5_000) for name in _AUSTRALIAN.split()} | rows


@cache
def canadian_courts() -> dict[str, NeutralCourt]:
    """Return the courts whose citations have the year without brackets."""
    return {
        name: NeutralCourt(2000 if name == "SCC" else 1998, 9999, 20_000, square=False) for name in _CANADIAN.split()
    }


_SQUARE = re.compile(
    r"\[(?P<year>[0-9]{1,5})\] (?P<court>[A-Z][A-Za-z0-9]{1,10})(?: (?P<before>Civ|Crim|Admin|"
    r"Ch|QB|Fam|Comm|Pat|TCC|Admlty|[A-Z][a-z]+))? (?P<level>B)?(?P<number>[0-9]{1,7})(?: "
    r"\((?P<after>[A-Za-z0-9 ]{1,30})\))?(?![0-9A-Za-z])"
)
_PLAIN = re.compile(
    r"(?P<year>[0-9]{4}) (?P<court>[A-Z]{2,6}) (?P<number>[0-9]{1,7})(?: \((?:CanLII|QC CA|QC CS)\))?(?![0-9A-Za-z])"
)


def parse_neutral(text: str, start: int, today: date) -> Iterator[CitationCore]:
    """Yield the neutral citation at this position."""
    match = _SQUARE.match(text, start)
    court = bracket_courts().get(match["court"]) if match else None
    if match is not None and court is not None:
        yield _neutral_core(match, court, match["before"], match["after"], today)
    plain = _PLAIN.match(text, start)
    other = canadian_courts().get(plain["court"]) if plain else None
    if plain is not None and other is not None:
        yield _neutral_core(plain, other, None, None, today)


def _neutral_core(
    match: re.Match[str], court: NeutralCourt, before: str | None, after: str | None, today: date
) -> CitationCore:
    issues = (
        *_year_issues(match["court"], court, match["year"], today),
        *_number_issues(match["court"], court, match),
        *_division_issues(match, court, before, after),
    )
    division = before or after
    parts = {
        "kind": "neutral",
        "year": match["year"],
        "court": match["court"],
        "number": match["number"],
        "division": division,
    }
    step = f"{match['court']} has numbered its judgments since {court.first}" + (
        f" and until {court.last}" if court.last < 9999 else ""
    )
    return CitationCore(kind="neutral", end=match.end(), parts=parts, issues=issues, rule=RULE, steps=(step,))


def _year_issues(name: str, court: NeutralCourt, year: str, today: date) -> Iterator[str]:
    if len(year) != 4:
        yield f"the year `{year}` is not four digits"
    elif int(year) > today.year:
        yield f"the year {year} has not come yet"
    elif not court.first <= int(year) <= court.last:
        until = f" until {court.last}" if court.last < 9999 else ""
        yield f"{name} has numbered its judgments since {court.first}{until}, not in {year}"


def _number_issues(name: str, court: NeutralCourt, match: re.Match[str]) -> Iterator[str]:
    number = match["number"]
    if number.startswith("0"):
        yield f"the number `{number}` is zero or has a zero in front"
    elif int(number) > court.most:
        yield f"{name} never had {number} judgments in a year"


def _division_issues(match: re.Match[str], court: NeutralCourt, before: str | None, after: str | None) -> Iterator[str]:
    name, year = match["court"], match["year"]
    early = (
        name == "EWHC"
        and year in ("2000", "2001")
        and before in ("Admin", "Ch", "QB", "Fam", "Comm", "Pat", "TCC", "Admlty")
    )
    if match.groupdict().get("level") and name != "EWFC":
        yield f"{name} has no `B` before the number, which is of judgments of the Family Court below the High Court"
    if court.before and before not in court.before:
        yield f"{name} is cited with its division before the number: {' or '.join(court.before)}"
    if before and not court.before and not early:
        yield f"{name} has no division before the number"
    if after and after not in court.after:
        yield f"{name} has no division `{after}`" + (f": it has {', '.join(court.after)}" if court.after else "")
    if court.required and not after and not early:
        yield f"{name} is cited with its division in parentheses: {', '.join(court.after)}"
    if name == "EWHC" and ((after == "KB" and year < "2022") or (after == "QB" and year > "2022")):
        yield f"the King's Bench Division is named so since September 2022, not `{after}` in {year}"
