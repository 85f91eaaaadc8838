"""FICA by year: wage bases of the Social Security Administration, rates of 26 U.S.C. 3101 and 3102(f)."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from qwed.model.data_files import read_table

_BASES = read_table(__file__, "wage_bases.txt")
WAGE_BASE: Mapping[int, int] = MappingProxyType(
    {int(year): int(base) for year, base in (line.split() for line in _BASES.split("\n") if line)}
)
"""The contribution and benefit base of 42 U.S.C. 430, as the SSA lists it; Medicare has had none since 1994."""

SOCIAL_SECURITY = Fraction(62, 1000)
HOLIDAY = Fraction(42, 1000)
"""The employee's rate of 2011 and 2012: Pub. L. 111-312, section 601, and Pub. L. 112-96."""
HOLIDAY_YEARS = (2011, 2012)
MEDICARE = Fraction(145, 10_000)
ADDITIONAL_MEDICARE = Fraction(9, 1000)
ADDITIONAL_SINCE = 2013
WITHHOLDING_THRESHOLD = 200_000
"""26 U.S.C. 3102(f): per employer, whatever the filing status."""
LIABILITY_THRESHOLD: Mapping[str, int] = MappingProxyType(
    {
        "single": 200_000,
        "married_filing_jointly": 250_000,
        "married_filing_separately": 125_000,
        "head_of_household": 200_000,
        "qualifying_surviving_spouse": 200_000,
    }
)
"""26 U.S.C. 3101(b)(2): what the employee owes, computed on Form 8959."""


def social_security_rate(year: int) -> Fraction:
    """Return the employee's share."""
    return HOLIDAY if year in HOLIDAY_YEARS else SOCIAL_SECURITY
