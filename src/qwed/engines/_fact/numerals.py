"""Readings of a written numeral: `1.000` is one or a thousand, and `3.10` may be a version that comes after `3.9`.

A numeral whose form is not in the table is a label, which equals only the same spelling.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

_SPACES = "\u00a0\u2007\u2009\u202f"
_APOSTROPHES = "'\u2018\u2019"
RUN = (
    rf"(?:(?<!\d)\d{{1,3}}(?:\ \d{{3}})+(?:[,.]\d+)?(?![.,]?\d)"
    rf"|\d+(?:[.,{_APOSTROPHES}{_SPACES}]\d+)*"
    rf"|(?<![\w.,])\.\d+)"
)
"""Longest run of digits and separators, whatever its form."""
_VERSION_PART = Fraction(1, 10**12)
_MAX_VERSION_DIGITS = 9


class Numeral(NamedTuple):
    """One number in each of its readings; they are equal unless the spelling leaves a choice."""

    usual: Fraction
    version: Fraction
    """Reading as a version or clause number, in which 3.10 is not 3.1."""
    grouped: Fraction
    """Reading of a single point before three digits as the separator of thousands."""
    has_commas: bool = False
    """True if commas separate its thousands, so that a point in the same text does not."""

    def times(self, factor: Fraction | int) -> "Numeral":
        """Return the number of units or thousands, which is no version."""
        return Numeral(self.usual * factor, self.usual * factor, self.grouped * factor, self.has_commas)

    def negated(self) -> "Numeral":
        """Return minus the number."""
        return Numeral(-self.usual, -self.version, -self.grouped, self.has_commas)


def plain_numeral(value: Fraction | int) -> Numeral:
    """Return a number that has one reading."""
    return Numeral(Fraction(value), Fraction(value), Fraction(value))


def _grouped(text: str) -> Numeral:
    return plain_numeral(Fraction(re.sub(r"[^\d.]", "", text)))


def _comma_grouped(text: str) -> Numeral:
    return _grouped(text)._replace(has_commas=True)


def _decimal_comma(text: str) -> Numeral:
    whole, _, decimals = text.rpartition(",")
    return plain_numeral(Fraction(f"{re.sub('[^0-9]', '', whole)}.{decimals}"))


def _decimal(text: str) -> Numeral:
    return Numeral(Fraction(text), _version_key(text), Fraction(text))


def _decimal_or_grouped(text: str) -> Numeral:
    return _decimal(text)._replace(grouped=Fraction(text.replace(".", "")))


def _version_key(text: str) -> Fraction:
    """Return a number that orders `3.9` before `3.10`, and tells `3.0` from `3`."""
    whole, _, part = text.partition(".")
    if len(part) > _MAX_VERSION_DIGITS:
        return Fraction(text)
    return Fraction(whole or "0") + (int(part) + 1) * _VERSION_PART


_FORMS: Mapping[re.Pattern[str], Callable[[str], Numeral]] = {
    re.compile(form): reading
    for form, reading in (
        # Digits with a zero before them are a code.
        (r"0|[1-9]\d*", lambda text: plain_numeral(int(text))),
        (r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?", _comma_grouped),
        (rf"[1-9]\d{{0,2}}(?:[{_APOSTROPHES}{_SPACES}]\d{{3}})+(?:\.\d+)?", _grouped),
        (rf"[1-9]\d{{0,2}}(?:[ .{_APOSTROPHES}{_SPACES}]\d{{3}})+,\d+", _decimal_comma),
        (r"[1-9]\d{0,2}\.\d{3}", _decimal_or_grouped),
        (r"(?:0|[1-9]\d*)?\.\d+", _decimal),
    )
}
_LONGEST = 60


def numeral_of(text: str) -> Numeral | None:
    """Return the readings of the numeral, or None if its form is not understood."""
    if len(text) > _LONGEST:
        return None
    reading = next((read for form, read in _FORMS.items() if form.fullmatch(text)), None)
    return None if reading is None else reading(text)
