"""Parser of the law reports of the United Kingdom, and of certain ones of India, Canada and Australia."""

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from qwed.model.data_files import read_table
from qwed_legal._citation.citation_types import CitationCore

RULE = (
    "law reports whose volumes are numbered within the year have it in square brackets, "
    "those numbered throughout have it in round ones "
    "(OSCOLA, 4th edition, 2.1.2 and 2.1.3)"
)


class LawReport(NamedTuple):
    """Series of law reports."""

    first: int
    last: int
    volumes: int
    """Maximum number of volumes in a year, or in the series."""
    needed: bool
    """True if the volume must be named."""


# Numbered within the year: first year, last year or 0, maximum volumes of a year, 1 if the volume must be named.
_SQUARE_TABLE = read_table(__file__, "law_reports_square.txt")
# Numbered throughout: first year, last year or 0, maximum volumes.
_ROUND_TABLE = read_table(__file__, "law_reports_round.txt")


def _parse_table(table: str) -> dict[str, tuple[int, ...]]:
    cells = (cell.partition(":") for line in table.strip().splitlines() for cell in line.split(" | "))
    return {name.strip(): tuple(map(int, numbers.split())) for name, _, numbers in cells}


_SQUARE = {name: LawReport(row[0], row[1], row[2], bool(row[3])) for name, row in _parse_table(_SQUARE_TABLE).items()}
_ROUND = {name: LawReport(row[0], row[1], row[2], True) for name, row in _parse_table(_ROUND_TABLE).items()}
SERIES = frozenset((*_SQUARE, *_ROUND))
_NAME = "|".join(sorted((re.escape(name).replace("\\ ", " ?") for name in SERIES), key=len, reverse=True))
# Dots are allowed only with the year in square brackets: otherwise T.C. is an American court.
_STOPS = re.compile(r"([A-Z](?![a-z])|[a-z](?=\\ |$))")
_DOTTED = "|".join(
    sorted((_STOPS.sub(r"\1\\.?", re.escape(name)).replace("\\ ", " ?") for name in _SQUARE), key=len, reverse=True)
)
_IN_SQUARE = re.compile(
    rf"\[(?P<year>[0-9]{{4}})\] (?:(?P<volume>[0-9]{{1,3}}) )?(?P<report>{_NAME}|{_DOTTED}) "
    rf"?(?P<page>[A-Z]?[0-9]{{1,6}})(?: ?\((?:HL|CA|PC|SC|QB|KB|Ch|Ch D|Fam|Comm|HC|Const|DC|"
    rf"CS|SCt|[A-Z]{{2,4}}|Can)\))?(?![0-9A-Za-z])"
)
_IN_ROUND = re.compile(
    rf"(?:\((?P<year>[0-9]{{4}})(?:-(?P<to>[0-9]{{2,4}}))?\) )?(?P<volume>[0-9]{{1,3}}) "
    rf"(?P<report>{_NAME}) ?(?P<page>[0-9]{{1,6}})(?: ?\((?:HL|CA|PC|SC|Exch|QB|KB|CP|HC|DC|Ch|"
    rf"Const)\))?(?![0-9A-Za-z])"
)
_LR = re.compile(
    r"(?:\((?P<year>[0-9]{4})(?:-(?P<to>[0-9]{2,4}))?\) )?LR (?P<volume>[0-9]{1,3}) "
    r"(?P<report>HL|QB|CP|Ex|Exch|Eq|Ch App|Ch|PC|P & D|CCR) (?P<page>[0-9]{1,6})(?: ?\((?:HL|"
    r"CA|PC|Exch|QB|CP)\))?(?![0-9A-Za-z])"
)
_SCOTS = re.compile(
    r"(?P<year>[0-9]{4}) (?P<report>SC \(HL\)|SC|SLT|SCLR|SCCR|JC|GWD|SC \(UKSC\)|SLT \(Sh "
    r"Ct\)) (?P<page>[0-9]{1,5})(?![0-9A-Za-z])"
)
_INDIA = re.compile(
    r"AIR (?P<year>[0-9]{4}) (?P<report>SC|Bom|Cal|Mad|All|Del|Ker|Kant|AP|Guj|Pat|P&H|MP|Ori|"
    r"Raj|Gau|HP|J&K|PC|FC) (?P<page>[0-9]{1,5})(?![0-9A-Za-z])"
)


def parse_law_report(text: str, start: int, today: date) -> Iterator[CitationCore]:
    """Yield the law report cited at this position."""
    for pattern in (_IN_SQUARE, _IN_ROUND, _LR):
        match = pattern.match(text, start)
        if match is not None:
            yield from _report_core(match, _report_name(pattern, match["report"]), pattern is _IN_SQUARE, today)
    for pattern, name, first in ((_SCOTS, "Scottish reports", 1907), (_INDIA, "All India Reporter", 1914)):
        match = pattern.match(text, start)
        if match is not None:
            issues = (
                () if first <= int(match["year"]) <= today.year else (f"the {name} have no volume of {match['year']}",)
            )
            parts = {"kind": "report", "year": match["year"], "reporter": match["report"], "page": match["page"]}
            yield CitationCore(
                kind="report",
                end=match.end(),
                parts=parts,
                issues=issues,
                rule=RULE,
                steps=(f"the {name} began in {first}",),
            )


def _report_name(pattern: re.Pattern[str], report: str) -> str:
    return f"LR {report.removesuffix('ch') if report == 'Exch' else report}" if pattern is _LR else _series_name(report)


def _report_core(match: re.Match[str], name: str, square: bool, today: date) -> Iterator[CitationCore]:
    if name in _SQUARE and square:
        report = _SQUARE[name]
    elif name in _ROUND and not square:
        report = _ROUND[name]
    else:
        return
    report = report._replace(last=report.last or today.year)
    issues = tuple(_find_issues(match, name, report, today))
    parts = {
        "kind": "report",
        "year": match["year"],
        "volume": match["volume"],
        "reporter": name,
        "page": match["page"],
    }
    step = f"{name} began in {report.first} and has at most {report.volumes} volumes" + (" a year" if square else "")
    yield CitationCore(kind="report", end=match.end(), parts=parts, issues=issues, rule=RULE, steps=(step,))


def _series_name(report: str) -> str:
    return next(name for name in SERIES if name.replace(" ", "") == report.replace(" ", "").replace(".", ""))


def _find_issues(match: re.Match[str], name: str, report: LawReport, today: date) -> Iterator[str]:
    year, volume, page = match["year"], match["volume"], match["page"]
    if year and int(year) > today.year:
        yield f"the year {year} has not come yet"
    elif year and not report.first <= int(year) <= report.last:
        yield f"`{name}` was printed from {report.first} to {report.last}, not in {year}"
    if volume and (volume.startswith("0") or int(volume) > report.volumes):
        yield f"`{name}` has no volume {volume}: it has at most {report.volumes}"
    if not volume and report.needed:
        yield f"`{name}` is cited with the number of the volume"
    if page.lstrip("ABCDP").startswith("0"):
        yield f"page `{page}` is zero or has a zero in front"
    if name in ("QB", "KB") and year and not _is_bench_year(name, int(year)):
        yield f"there was no `{name}` in {year}"


def _is_bench_year(name: str, year: int) -> bool:
    """Return True if the division existed: Queen's Bench until 1901 and 1952 to 2022, King's Bench otherwise."""
    return year <= 1901 or 1952 <= year <= 2023 if name == "QB" else 1901 <= year <= 1952 or year >= 2022
