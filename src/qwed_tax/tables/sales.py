"""General statewide sales tax rates of the US states, dated, without county, city and district taxes.

Where a local part is levied everywhere in the state at one rate (California, Nevada, Utah, Virginia), it is included.
Sources: the states' revenue departments, as gathered by the Federation of Tax Administrators (state sales tax rates)
and the Tax Foundation (state and local sales tax rates).
"""

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from qwed.model.data_files import read_table


class SalesTaxRate(NamedTuple):
    """General rate of a state from `since` to before `until`."""

    since: date
    until: date
    rate: Fraction
    local: Fraction
    """Most that counties, cities and districts together add to it; 0 if they add nothing."""

    @property
    def highest(self) -> Fraction:
        """Return the highest rate in the state."""
        return self.rate + self.local


_OPEN = date(2027, 1, 1)
"""Later rates are unknown."""

# Code, name, percent, `+` with the most that local taxes add (rounded up) or `=` where there are none, first day if
# later than 2019-01-01, last day if there is one.
_TABLE = read_table(__file__, "sales_tax.txt")


def _row(line: str) -> tuple[str, str, SalesTaxRate]:
    words = line.split()
    place = next(number for number, word in enumerate(words) if word[0] in "+=")
    days = [date.fromisoformat(word) for word in words[place + 1 :]]
    since = days[0] if days else date(2019, 1, 1)
    until = date.fromordinal(days[1].toordinal() + 1) if len(days) > 1 else _OPEN
    rate, local = Fraction(words[place - 1]) / 100, Fraction(words[place].strip("+=") or 0) / 100
    return words[0], " ".join(words[1 : place - 1]), SalesTaxRate(since, until, rate, local)


_ROWS = tuple(_row(line) for line in _TABLE.split("\n") if line)
STATES: Mapping[str, str] = MappingProxyType({code: name for code, name, _ in _ROWS})
RATES: Mapping[str, tuple[SalesTaxRate, ...]] = MappingProxyType(
    {code: tuple(rate for each, _, rate in _ROWS if each == code) for code in STATES}
)
HIGHEST = max(rate.highest for rates in RATES.values() for rate in rates)
"""No place in the US has a higher rate."""
LAST_DAY = date.fromordinal(_OPEN.toordinal() - 1)
SOURCE = "general statewide rates as of 2026, Federation of Tax Administrators and Tax Foundation"
