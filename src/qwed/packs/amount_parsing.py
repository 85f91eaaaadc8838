"""Parser of claimed amounts and rates: a JSON number, `$1,234.56`, `(12.00)`, `EUR 5`, `$5 million`, `5 %`."""

import re
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.decimals import EXACT, WHOLE_DIGITS
from qwed.packs.result import UnreadableInputError
from qwed.packs.unwrap import unwrap
from qwed.packs.value_parsing import number_of

_SIGNS = {"$": "USD", "US$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR", "\u00a5": ""}
"""A sign shared by several currencies maps to no code."""
_CLAIM = re.compile(
    r"""(?P<open>\()?(?P<sign>[-\u2212+])?\s?(?P<before>US\$|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3}(?=[\s\d-]))?\s?(?P<inner>[-\u2212])?
        (?P<digits>\d{1,24}|\d{1,3}(?:,\d{3}){1,7}|\d{1,2}(?:,\d{2}){1,10},\d{3})(?P<rest>\.\d{1,18})?
        (?:\s?(?P<scale>(?i:thousand|million|billion|trillion|mn|bn)))?\s?(?P<after>%|[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3})?(?P<close>\))?""",
    re.VERBOSE | re.ASCII,
)
_LONGEST = 80
_SCALES = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
"""Spelled out only: `k` and `M` mean different things to different writers."""


class ClaimedAmount(NamedTuple):
    """A number as it was written."""

    value: Decimal
    """A percentage as a fraction: `14.49 %` is 0.1449."""
    decimals: int
    """Number of decimals that `value` was written with."""
    percent: bool = False
    currency: str = ""
    """ISO 4217 code, if the claim names one."""


def parse_claimed_amount(name: str, value: Any) -> ClaimedAmount:
    """Return the claim exactly; raise UnreadableInputError if it is ambiguous or not an amount."""
    value = unwrap(value)
    if not isinstance(value, str):
        return _plain(number_of(name, value))
    text = value.strip()
    match = _CLAIM.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        raise UnreadableInputError(
            f"`{name}` is not an unambiguous amount, write it as in `1234.56`, `$1,234.56` or `5.25%`"
        )
    return _read(name, match)


def _read(name: str, match: re.Match[str]) -> ClaimedAmount:
    digits = match["digits"].replace(",", "")
    scale = _SCALES[match["scale"].lower()] if match["scale"] else 0
    two_currencies = match["before"] and match["after"] not in (None, "%")
    if len(digits) + scale > WHOLE_DIGITS or two_currencies or (scale and match["after"] == "%"):
        raise UnreadableInputError(f"`{name}` is not an unambiguous amount, write it as in `1234.56`")
    exact = EXACT.multiply(Decimal(digits + (match["rest"] or "")), Decimal(10**scale))
    signs = [match["open"], match["sign"] in ("-", "\u2212") or None, match["inner"]]
    if sum(map(bool, signs)) > 1:
        raise UnreadableInputError(f"`{name}` has two signs, write one")
    exact = EXACT.minus(exact) if any(signs) else exact
    if match["after"] == "%":
        return _plain(exact.scaleb(-2, EXACT))._replace(percent=True)
    currency_mark = match["before"] or match["after"] or ""
    return _plain(exact)._replace(currency=_SIGNS.get(currency_mark, currency_mark))


def _plain(exact: Decimal) -> ClaimedAmount:
    exponent = exact.as_tuple().exponent
    return ClaimedAmount(exact, max(0, -exponent) if isinstance(exponent, int) else 0)
