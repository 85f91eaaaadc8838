"""What is measured of an image for a claim: numbers with their units, and the comparison of two of them."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.engines._image.file import Picture


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds, None where that cannot be told; what was measured, and a sentence about it."""

    holds: bool | None
    message: str
    measured: Mapping[str, Any] = field(default_factory=dict)


Compare = Callable[[Fraction, Fraction], bool]

_OPERATORS: tuple[tuple[str, str, Compare], ...] = (
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


def compare_of(text: str) -> tuple[str, Compare]:
    """The sign and the comparison that a phrase stands for."""
    phrase = " ".join(text.casefold().split())
    return next((sign, compare) for pattern, sign, compare in _OPERATORS if re.fullmatch(pattern, phrase))


def number_of(text: str) -> Fraction:
    """The number exactly as it was written."""
    return Fraction(Decimal(text.replace(",", "")))


def measure(name: str, picture: Picture) -> Fraction | None:
    """The value of `width`, `height`, `pixels`, `megapixels`, `frames`, `bytes` or `aspect`."""
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


def compared(name: str, phrase: str, wanted: Fraction, picture: Picture, decimals: int = 0) -> Finding:
    """Whether the measured value stands to the wanted one as the phrase says."""
    found = measure(name, picture)
    sign, compare = compare_of(phrase)
    if found is None:
        return Finding(None, f"the {name} could not be counted: there are more than are walked")
    # Whoever writes a fraction in decimals has rounded it.
    holds = compare(round(found, decimals) if decimals and sign in ("=", "!=") else found, wanted)
    told = f"{name} is {shown(found)}, {'as claimed' if holds else 'not'} {sign} {shown(wanted)}"
    return Finding(holds, told, {name: shown_value(found)})


def compared_bytes(phrase: str, text: str, unit: str, picture: Picture) -> Finding:
    """The same for the size of the file; a claim that is true of one kind of kilobyte only is not decided."""
    size = Fraction(len(picture.content))
    sign, compare = compare_of(phrase)
    folded = unit.casefold()
    factors = _UNITS[_UNIT_NAMES.get(folded, folded)]
    answers = {_holds(compare, size, number_of(text), factor, decimals_of(text)) for factor in factors}
    measured = {"bytes": len(picture.content)}
    if len(answers) == 2:
        return Finding(None, f"it depends on how many bytes `{unit}` stands for: say KiB, MiB or bytes", measured)
    holds = answers.pop()
    told = f"the file has {len(picture.content)} bytes, {'as claimed' if holds else 'not'} {sign} {text} {unit}"
    return Finding(holds, told, measured)


def _holds(compare: Compare, size: Fraction, wanted: Fraction, factor: int, decimals: int) -> bool:
    if factor == 1 or compare not in (operator.eq, operator.ne):
        return bool(compare(size, wanted * factor))
    return bool(compare(round(size / factor, decimals), wanted))


def decimals_of(text: str) -> int:
    """How many digits stand behind the point."""
    return len(text.partition(".")[2])


def shown(value: Fraction) -> str:
    """The number as people write it."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def shown_value(value: Fraction) -> int | float:
    """The number as JSON writes it."""
    return value.numerator if value.denominator == 1 else float(value)
