"""Tolerance of a claim about constants: what the request asks for, bounded by the claim's precision and the policy."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from qwed.engines._math.syntax_tree import Claim, MathRefusalError, clip
from qwed.model.tolerances import parse_tolerances

_NAME = "tolerance"
_HALF = Fraction(1, 2)
_NUMBER = (
    r"\s*[-+\u2212]?\s*(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)\.(?P<decimals>[0-9]{1,100})"
    r"(?:[eE](?P<exponent>[-+]?[0-9]{1,3}))?\s*(?P<percent>%)?\s*"
)
_LITERAL = re.compile(_NUMBER)
"""Number with decimals; without decimals it states an exact value."""
_QUANTITY = re.compile(rf"{_NUMBER}(?:(?!(?:pi|[eEiI])\b)[A-Za-z\u00b0][A-Za-z\u00b0/^*0-9. ]*)?")


@dataclass(frozen=True)
class Tolerance:
    """Largest difference that a request asks for, and the one that the policy permits."""

    requested: Fraction
    permitted: Fraction = Fraction(0)

    def bounded(self, claim: Claim) -> Fraction:
        """Return the tolerance for this claim: half a unit of its last decimal at most, or what the policy permits."""
        return min(self.requested, max(stated_precision(claim), self.permitted))


def parse_tolerance(parameters: Mapping[str, Any], entries: tuple[str, ...] = ()) -> Tolerance | None:
    """Return the tolerance that the parameters ask for, or None; raise MathRefusalError if it is no number."""
    requested = parameters.get(_NAME)
    if requested is None:
        return None
    return Tolerance(_exact(requested), Fraction(parse_tolerances(entries).get(_NAME, 0)))


def is_truncated(claim: Claim, left: Fraction, right: Fraction) -> bool:
    """Return True if the number that the claim states is half a unit too small, as in `3/4 = 0.7`."""
    stated, exact = (right, left) if _QUANTITY.fullmatch(claim.right_text) else (left, right)
    return abs(exact) - abs(stated) == stated_precision(claim) != 0


def stated_precision(claim: Claim) -> Fraction:
    """Return half a unit of the last decimal of the number that the claim states; 0 if it states none."""
    # Quantities are compared in the unit of the right side, so only the right side may have one here.
    match = _QUANTITY.fullmatch(claim.right_text) or _LITERAL.fullmatch(claim.left_text)
    if match is None:
        return Fraction(0)
    exponent = int(match["exponent"] or 0) - len(match["decimals"]) - (2 if match["percent"] else 0)
    return _HALF * Fraction(10) ** exponent


def _exact(tolerance: object) -> Fraction:
    problem = MathRefusalError("parameters_valid", f"tolerance {clip(str(tolerance))} must be a number of zero or more")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | str | Decimal):
        raise problem
    try:
        # repr is the shortest decimal that means this double, so 0.01 is one hundredth exactly
        exact = Decimal(repr(tolerance)) if isinstance(tolerance, float) else Decimal(tolerance)
    except InvalidOperation:
        raise problem from None
    if not exact.is_finite() or exact < 0 or abs(exact.adjusted()) > 100 or len(exact.as_tuple().digits) > 100:
        raise problem
    return Fraction(exact)
