"""GST rates by country and day, each with its legal source."""

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple


class GstRates(NamedTuple):
    """Rates of a country from `since` to before `until`, in percent."""

    since: date
    until: date
    slabs: tuple[Fraction, ...]
    source: str


_FIRST_SLABS = "CGST Act 2017 s. 9 and IGST Act 2017 s. 5, Notifications 1/2017 and 11/2017-Central Tax (Rate)"
_NEXT_SLABS = "the same, with 1.5 % by Notification 6/2022-Central Tax (Rate)"
_TWO_SLABS = "Notifications 9/2025 and 15/2025-Central Tax (Rate) after the 56th meeting of the GST Council"
_END = date.max
_ENDED = {"MY": date(2018, 9, 1)}

# Country, first day, rates in percent, source; a row holds until the next one of its country.
_TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("IN", "2017-07-01", "0 0.25 3 5 12 18 28", _FIRST_SLABS),
    ("IN", "2022-07-18", "0 0.25 1.5 3 5 12 18 28", _NEXT_SLABS),
    ("IN", "2025-09-22", "0 0.25 1.5 3 5 18 40", _TWO_SLABS),
    ("AU", "2000-07-01", "0 10", "A New Tax System (Goods and Services Tax) Act 1999, s. 9-70"),
    ("NZ", "1989-07-01", "0 12.5", "Goods and Services Tax Act 1985, s. 8"),
    ("NZ", "2010-10-01", "0 15", "Goods and Services Tax Act 1985, s. 8, as amended in 2010"),
    ("SG", "2007-07-01", "0 7", "Goods and Services Tax Act 1993, s. 16"),
    ("SG", "2023-01-01", "0 8", "Goods and Services Tax Act 1993, s. 16, as amended in 2022"),
    ("SG", "2024-01-01", "0 9", "Goods and Services Tax Act 1993, s. 16, as amended in 2022"),
    ("MY", "2015-04-01", "0 6", "Goods and Services Tax Act 2014"),
    ("MY", "2018-06-01", "0", "Goods and Services Tax (Rate of Tax) (Amendment) Order 2018, repealed on 2018-09-01"),
    ("CA", "2006-07-01", "0 6", "Excise Tax Act, s. 165(1)"),
    ("CA", "2008-01-01", "0 5", "Excise Tax Act, s. 165(1)"),
)


def _read() -> dict[str, tuple[GstRates, ...]]:
    read: dict[str, tuple[GstRates, ...]] = {}
    for place, (country, first, rates, source) in enumerate(_TABLE):
        following = _TABLE[place + 1] if place + 1 < len(_TABLE) else None
        until = date.fromisoformat(following[1]) if following and following[0] == country else _ENDED.get(country, _END)
        slabs = tuple(Fraction(rate) for rate in rates.split())
        read[country] = (*read.get(country, ()), GstRates(date.fromisoformat(first), until, slabs, source))
    return read


GST: Mapping[str, tuple[GstRates, ...]] = MappingProxyType(_read())

SPECIAL: Mapping[Fraction, str] = MappingProxyType(
    {
        Fraction("0.1"): "supplies to merchant exporters (Notification 40/2017-Central Tax (Rate))",
        Fraction(1): "the composition levy and affordable housing",
        Fraction(6): "the composition levy of services and bricks without input tax credit",
        Fraction("7.5"): "housing before the deduction for land",
        Fraction(12): "bricks with input tax credit since 2025-09-22 (Notification 14/2025-Central Tax (Rate))",
        Fraction(28): "tobacco and pan masala until 2026-01-31 (Notification 19/2025-Central Tax (Rate))",
    }
)
"""Rates of India for few goods; an amount alone does not show whether one applies."""
SPECIAL_UNTIL: Mapping[Fraction, date] = MappingProxyType({Fraction(28): date(2026, 2, 1)})
"""End dates of special rates."""
CURRENCY: Mapping[str, str] = MappingProxyType({"IN": "INR", "MY": "MYR"})
"""Currencies with their own sign; the other countries write `$`."""
