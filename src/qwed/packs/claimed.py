"""An amount or a rate as somebody claims it: a JSON number, `$1,234.56`, `(12.00)`, `EUR 5`, `$5 million`, `5 %`."""

import re
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.packs.own import own
from qwed.packs.reading import number_of
from qwed.packs.result import Unreadable
from qwed.words.exact import EXACT, WHOLE_DIGITS

_SIGNS = {"$": "USD", "US$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR", "\u00a5": ""}
"""A sign that several currencies share says nothing."""
_CLAIM = re.compile(
    r"""(?P<open>\()?(?P<sign>[-\u2212+])?\s?(?P<before>US\$|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3}(?=[\s\d-]))?\s?(?P<inner>[-\u2212])?
        (?P<digits>\d{1,24}|\d{1,3}(?:,\d{3}){1,7}|\d{1,2}(?:,\d{2}){1,10},\d{3})(?P<rest>\.\d{1,18})?
        (?:\s?(?P<scale>(?i:thousand|million|billion|trillion|mn|bn)))?\s?(?P<after>%|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3})?(?P<close>\))?""",
    re.VERBOSE | re.ASCII,
)
_LONGEST = 80
_SCALES = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
"""In words: `k` and `M` are for some a thousand, for others a million."""


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
    value = own(value)
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
    scale = _SCALES[found["scale"].lower()] if found["scale"] else 0
    twice = found["before"] and found["after"] not in (None, "%")
    if len(digits) + scale > WHOLE_DIGITS or twice or (scale and found["after"] == "%"):
        raise Unreadable(f"`{name}` is no amount that reads in one way, write it as in `1234.56`")
    exact = EXACT.multiply(Decimal(digits + (found["rest"] or "")), Decimal(10**scale))
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
