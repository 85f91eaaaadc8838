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
_TABLE = """
AL Alabama 4 +9
AK Alaska 0 +8
AZ Arizona 5.6 +6
AR Arkansas 6.5 +7
CA California 7.25 +4
CO Colorado 2.9 +8.5
CT Connecticut 6.35 =
DE Delaware 0 =
DC District of Columbia 6 = 2019-01-01 2026-09-30
FL Florida 6 +2.5
GA Georgia 4 +5
HI Hawaii 4 +0.5
ID Idaho 6 +3
IL Illinois 6.25 +6
IN Indiana 7 =
IA Iowa 6 +2
KS Kansas 6.5 +6
KY Kentucky 6 =
LA Louisiana 4.45 +9 2019-01-01 2024-12-31
LA Louisiana 5 +9 2025-01-01
ME Maine 5.5 =
MD Maryland 6 =
MA Massachusetts 6.25 =
MI Michigan 6 =
MN Minnesota 6.875 +4
MS Mississippi 7 +3
MO Missouri 4.225 +9
MT Montana 0 +4
NE Nebraska 5.5 +3
NV Nevada 6.85 +2
NH New Hampshire 0 =
NJ New Jersey 6.625 +4
NM New Mexico 5.125 +5 2019-01-01 2022-06-30
NM New Mexico 5 +5 2022-07-01 2023-06-30
NM New Mexico 4.875 +5 2023-07-01
NY New York 4 +5
NC North Carolina 4.75 +3
ND North Dakota 5 +4
OH Ohio 5.75 +2.5
OK Oklahoma 4.5 +7.5
OR Oregon 0 =
PA Pennsylvania 6 +2
RI Rhode Island 7 =
SC South Carolina 6 +4
SD South Dakota 4.5 +5 2019-01-01 2023-06-30
SD South Dakota 4.2 +5 2023-07-01
TN Tennessee 7 +3
TX Texas 6.25 +2
UT Utah 6.1 +5 2019-04-01
VT Vermont 6 +1
VA Virginia 5.3 +2.5
WA Washington 6.5 +4.5
WV West Virginia 6 +1
WI Wisconsin 5 +3
WY Wyoming 4 +4
"""


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
