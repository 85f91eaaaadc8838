"""Format and parser of the tables of limitation periods.

A line in capitals names a place and the code that the lines below cite. Each of these is `claim period section`; the
period is in years, or in months with `m`; a section that starts with `=` belongs to another code.
- `since=` and `before=`: the incident dates for which the line is valid.
- `latest=`: a day that the period never passes.
- `short=`, `long=`: the period of some of these claims, which the dates alone do not identify.
- `year_end`: the period starts with the end of the year.
Behind `|` is a caution: another start than the incident, and claimants with more or less time.
Sections are cited as of 2026.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

from qwed.model.data_files import read_table

_DAYS = ("since", "before", "latest")
_PERIODS = ("short", "long")
_FILES = tuple(
    f"{name}.txt" for name in ("states_a_to_i", "states_k_to_n", "states_n_to_o", "states_p_to_w", "non_us_states")
)


class LimitationRow(NamedTuple):
    """Limitation period of one claim type in one place."""

    place: str
    claim: str
    months: int
    statute: str
    since: date = date.min
    before: date = date.max
    latest: date = date.max
    short: int = 0
    """Shorter period in months for some of these claims; 0 if there are none."""
    long: int = 0
    """Longer period in months for some of these claims; 0 if there are none."""
    year_end: bool = False
    note: str = ""

    @property
    def years(self) -> int | float:
        """Period in years; halves and quarters are exact."""
        return self.months // 12 if self.months % 12 == 0 else self.months / 12

    @property
    def period(self) -> str:
        """Period in words: `4 years`, `30 months`."""
        return format_period(self.months)

    @property
    def possible_periods(self) -> tuple[int, ...]:
        """Periods in months that such a claim may have, the shortest first."""
        return tuple(filter(None, (self.short, self.months, self.long)))


def format_period(months: int) -> str:
    """Format a period in years or months."""
    count, unit = (months // 12, "year") if months % 12 == 0 else (months, "month")
    return f"{count} {unit}" + ("" if count == 1 else "s")


def _parse_months(period: str) -> int:
    return int(period[:-1]) if period.endswith("m") else int(period) * 12


def _parse_row(place: str, book: str, line: str) -> LimitationRow:
    fields, _, note = line.partition(" | ")
    claim, period, *words = fields.split()
    marks = dict(word.split("=") for word in words if word.split("=")[0] in (*_DAYS, *_PERIODS))
    cited = " ".join(word for word in words if word.split("=")[0] not in marks and word != "year_end")
    options: dict[str, Any] = {name: date.fromisoformat(marks[name]) for name in _DAYS if name in marks}
    options |= {name: _parse_months(marks[name]) for name in _PERIODS if name in marks}
    return LimitationRow(
        place,
        claim,
        _parse_months(period),
        cited[1:] if cited.startswith("=") else f"{book} {cited}",
        year_end="year_end" in words,
        note=note,
        **options,
    )


def _parse_rows() -> Iterator[LimitationRow]:
    place = book = ""
    for file in _FILES:
        for line in filter(None, read_table(__file__, file).split("\n")):
            if line[0].isupper():
                place, _, book = line.partition(" ")
            else:
                yield _parse_row(place, book, line)


def _by_place() -> dict[str, dict[str, tuple[LimitationRow, ...]]]:
    by_place: dict[str, dict[str, tuple[LimitationRow, ...]]] = {}
    for row in _parse_rows():
        claims = by_place.setdefault(row.place, {})
        claims[row.claim] = (*claims.get(row.claim, ()), row)
    return by_place


ROWS: Mapping[str, Mapping[str, tuple[LimitationRow, ...]]] = MappingProxyType(_by_place())
"""Rows by place and claim; more than one if the law changed."""
