"""The table of limitation periods: how its lines read, and which of them holds for a claim.

A line in capitals names a place and the book that the lines below cite. Each of them is `claim period section`; the
period is in years, or in months with `m`; a section that starts with `=` is of another book.
- `since=` and `before=`: the days of the incident that it holds for.
- `latest=`: a day that the period never passes.
- `short=`, `long=`: the period of some of these claims, which the dates do not tell from the others.
- `year_end`: the period starts with the end of the year.
After `|` stands what else has to be looked at: when it starts if not with the incident, and who has more or less time.
Sections are cited as they stand in 2026.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

from qwed_legal._limitations import elsewhere, states_a_to_i, states_k_to_n, states_n_to_o, states_p_to_w

_DAYS = ("since", "before", "latest")
_PERIODS = ("short", "long")
_TABLES = (states_a_to_i, states_k_to_n, states_n_to_o, states_p_to_w, elsewhere)


class Row(NamedTuple):
    """One period."""

    place: str
    claim: str
    months: int
    statute: str
    since: date = date.min
    before: date = date.max
    latest: date = date.max
    short: int = 0
    """Months after which some of these claims are late already; 0 where there are none."""
    long: int = 0
    """Months for which some of these claims are in time still; 0 where there are none."""
    year_end: bool = False
    note: str = ""

    @property
    def years(self) -> int | float:
        """The period in years; halves and quarters are exact."""
        return self.months // 12 if self.months % 12 == 0 else self.months / 12

    @property
    def period(self) -> str:
        """As it is said: `4 years`, `30 months`."""
        return spoken(self.months)

    @property
    def readings(self) -> tuple[int, ...]:
        """The periods, in months, that such a claim may have, the shortest first."""
        return tuple(filter(None, (self.short, self.months, self.long)))


def spoken(months: int) -> str:
    """A period as it is said."""
    many, unit = (months // 12, "year") if months % 12 == 0 else (months, "month")
    return f"{many} {unit}" + ("" if many == 1 else "s")


def _months(period: str) -> int:
    return int(period[:-1]) if period.endswith("m") else int(period) * 12


def _row(place: str, book: str, line: str) -> Row:
    said, _, note = line.partition(" | ")
    claim, period, *words = said.split()
    marks = dict(word.split("=") for word in words if word.split("=")[0] in (*_DAYS, *_PERIODS))
    cited = " ".join(word for word in words if word.split("=")[0] not in marks and word != "year_end")
    read: dict[str, Any] = {name: date.fromisoformat(marks[name]) for name in _DAYS if name in marks}
    read |= {name: _months(marks[name]) for name in _PERIODS if name in marks}
    return Row(
        place,
        claim,
        _months(period),
        cited[1:] if cited.startswith("=") else f"{book} {cited}",
        year_end="year_end" in words,
        note=note,
        **read,
    )


def _rows() -> Iterator[Row]:
    place = book = ""
    for table in _TABLES:
        for line in filter(None, table.TABLE.split("\n")):
            if line[0].isupper():
                place, _, book = line.partition(" ")
            else:
                yield _row(place, book, line)


def _by_place() -> dict[str, dict[str, tuple[Row, ...]]]:
    read: dict[str, dict[str, tuple[Row, ...]]] = {}
    for row in _rows():
        claims = read.setdefault(row.place, {})
        claims[row.claim] = (*claims.get(row.claim, ()), row)
    return read


ROWS: Mapping[str, Mapping[str, tuple[Row, ...]]] = MappingProxyType(_by_place())
"""By place and claim; more than one row where the law changed."""
