"""Measurements of an image, with units, and their comparison with a claimed value."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.engines._image.loader import Picture


@dataclass(frozen=True)
class ImageFinding:
    """Result of one check: whether the claim holds (None if undecided), a message, and the measured values."""

    holds: bool | None
    message: str
    measured: Mapping[str, Any] = field(default_factory=dict)


Comparator = Callable[[Fraction, Fraction], bool]

_OPERATORS: tuple[tuple[str, str, Comparator], ...] = (
    (
        r">=|\u2265|(?:is |are )?(?:at least|no less than|not less than|no fewer than)|minimum(?: of)?",
        ">=",
        operator.ge,
    ),
    (r"<=|\u2264|(?:is |are )?(?:at most|no more than|not more than|up to)|maximum(?: of)?", "<=", operator.le),
    (r"!=|\u2260|(?:is|are) not(?: equal to)?|does not equal|isn't|differs from", "!=", operator.ne),
    (
        r">|(?:is |are )?(?:more|greater|larger|bigger|higher|longer) than|(?:is )?(?:over|above)|exceeds",
        ">",
        operator.gt,
    ),
    (r"<|(?:is |are )?(?:less|smaller|fewer|lower|shorter) than|(?:is )?(?:under|below)", "<", operator.lt),
    (r"==?|(?:is|are|equals|has|of)(?: exactly| equal to)?|equal to|exactly|:", "=", operator.eq),
)
OPERATOR = "|".join(f"(?:{pattern})" for pattern, _, _ in _OPERATORS)
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"

_UNITS = {
    "": (1, 1),
    "b": (1, 1),
    "kb": (1_000, 1_024),
    "mb": (1_000_000, 1_048_576),
    "kib": (1_024, 1_024),
    "mib": (1_048_576, 1_048_576),
}
BYTES = r"(?P<unit>b|bytes?|k|kb|kib|kilobytes?|m|mb|mib|megabytes?)"
_UNIT_NAMES = {
    "byte": "b",
    "bytes": "b",
    "k": "kb",
    "kilobyte": "kb",
    "kilobytes": "kb",
    "m": "mb",
    "megabyte": "mb",
    "megabytes": "mb",
}


def parse_operator(text: str) -> tuple[str, Comparator]:
    """Return the sign and the comparator for a phrase."""
    phrase = " ".join(text.casefold().split())
    return next((sign, compare) for pattern, sign, compare in _OPERATORS if re.fullmatch(pattern, phrase))


def parse_number(text: str) -> Fraction:
    """Parse a number exactly."""
    return Fraction(Decimal(text.replace(",", "")))


def measure(name: str, picture: Picture) -> Fraction | None:
    """Return the value of `width`, `height`, `pixels`, `megapixels`, `frames`, `bytes` or `aspect`."""
    pixels = picture.width * picture.height
    values: dict[str, Fraction | None] = {
        "width": Fraction(picture.width),
        "height": Fraction(picture.height),
        "pixels": Fraction(pixels),
        "megapixels": Fraction(pixels, 1_000_000),
        "frames": None if picture.frames is None else Fraction(picture.frames),
        "bytes": Fraction(len(picture.content)),
        "aspect": Fraction(picture.width, picture.height),
    }
    return values[name]


def compare_measure(name: str, phrase: str, claimed: Fraction, picture: Picture, decimals: int = 0) -> ImageFinding:
    """Compare the measured value with the claimed one by the phrase's operator."""
    actual = measure(name, picture)
    sign, compare = parse_operator(phrase)
    if actual is None:
        return ImageFinding(None, f"the {name} could not be counted: there are more than the limit")
    # A fraction written in decimals is taken as rounded.
    holds = compare(round(actual, decimals) if decimals and sign in ("=", "!=") else actual, claimed)
    message = f"{name} is {format_number(actual)}, {'as claimed' if holds else 'not'} {sign} {format_number(claimed)}"
    return ImageFinding(holds, message, {name: json_number(actual)})


def compare_file_size(phrase: str, text: str, unit: str, picture: Picture) -> ImageFinding:
    """Compare the size of the file; undecided if the claim holds for only one of the two meanings of the unit."""
    size = Fraction(len(picture.content))
    sign, compare = parse_operator(phrase)
    folded = unit.casefold()
    factors = _UNITS[_UNIT_NAMES.get(folded, folded)]
    answers = {_holds(compare, size, parse_number(text), factor, count_decimals(text)) for factor in factors}
    measured = {"bytes": len(picture.content)}
    if len(answers) == 2:
        return ImageFinding(None, f"it depends on how many bytes `{unit}` stands for: say KiB, MiB or bytes", measured)
    holds = answers.pop()
    message = f"the file has {len(picture.content)} bytes, {'as claimed' if holds else 'not'} {sign} {text} {unit}"
    return ImageFinding(holds, message, measured)


def _holds(compare: Comparator, size: Fraction, claimed: Fraction, factor: int, decimals: int) -> bool:
    if factor == 1 or compare not in (operator.eq, operator.ne):
        return bool(compare(size, claimed * factor))
    return bool(compare(round(size / factor, decimals), claimed))


def count_decimals(text: str) -> int:
    """Count the digits behind the decimal point."""
    return len(text.partition(".")[2])


def format_number(value: Fraction) -> str:
    """Format the number for a message."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def json_number(value: Fraction) -> int | float:
    """Convert the number for JSON."""
    return value.numerator if value.denominator == 1 else float(value)
