"""An amount or a rate as somebody claims it: a JSON number, `$1,234.56`, `(12.00)`, `EUR 5`, `14.49 %`."""

import re
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.packs.reading import number_of
from qwed.packs.result import Unreadable
from qwed.words.exact import EXACT, WHOLE_DIGITS

_SIGNS = {"$": "USD", "US$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR", "\u00a5": ""}
"""A sign that several currencies share says nothing."""
_CLAIM = re.compile(
    r"""(?P<open>\()?(?P<sign>[-\u2212+])?\s?(?P<before>US\$|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3}(?=[\s\d-]))?\s?(?P<inner>[-\u2212])?
        (?P<digits>\d{1,24}|\d{1,3}(?:,\d{3}){1,7}|\d{1,2}(?:,\d{2}){1,10},\d{3})(?P<rest>\.\d{1,18})?
        \s?(?P<after>%|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3})?(?P<close>\))?""",
    re.VERBOSE | re.ASCII,
)
_LONGEST = 80


class Claimed(NamedTuple):
    """A number as it was written."""

    value: Decimal
    """Of a percentage the fraction: `14.49 %` is 0.1449."""
    decimals: int
    """How many decimals `value` was written with."""
    percent: bool = False
    currency: str = ""
    """The ISO 4217 code where the claim names one."""


def claimed_of(name: str, value: Any) -> Claimed:
    """The claim exactly; Unreadable says what to write where it reads in two ways or in none."""
    if not isinstance(value, str):
        return _plain(number_of(name, value))
    text = value.strip()
    found = _CLAIM.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or bool(found["open"]) != bool(found["close"]):
        raise Unreadable(
            f"`{name}` is no amount that reads in one way, write it as in `1234.56`, `$1,234.56` or `5.25%`"
        )
    return _read(name, found)


def _read(name: str, found: re.Match[str]) -> Claimed:
    digits = found["digits"].replace(",", "")
    if len(digits) > WHOLE_DIGITS or (found["before"] and found["after"] not in (None, "%")):
        raise Unreadable(f"`{name}` is no amount that reads in one way, write it as in `1234.56`")
    exact = Decimal(digits + (found["rest"] or ""))
    minus = [found["open"], found["sign"] in ("-", "\u2212") or None, found["inner"]]
    if sum(map(bool, minus)) > 1:
        raise Unreadable(f"`{name}` has two signs, write one")
    exact = EXACT.minus(exact) if any(minus) else exact
    if found["after"] == "%":
        return _plain(exact.scaleb(-2, EXACT))._replace(percent=True)
    mark = found["before"] or found["after"] or ""
    return _plain(exact)._replace(currency=_SIGNS.get(mark, mark))


def _plain(exact: Decimal) -> Claimed:
    exponent = exact.as_tuple().exponent
    return Claimed(exact, max(0, -exponent) if isinstance(exponent, int) else 0)
