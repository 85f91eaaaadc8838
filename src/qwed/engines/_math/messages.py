"""Verdicts and messages of the math engine, shared by the quick path and the full engine."""

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, NamedTuple

from qwed.engines._math.syntax_tree import Claim, MathNode, MathRefusalError, Number, clip
from qwed.model import Status, Verdict

ENGINE = "math"
PARSE_CHECKS = ("syntax_valid", "within_limits")
_FIFTEEN_DIGITS = Context(prec=15)
_MAX_DECIMALS = 40
_MAX_REPAIR = 60


class FormattedValue(NamedTuple):
    """Value as text: exact, approximate if the exact form is not a plain decimal, and whether it is rational."""

    exact: str
    approximate: str = ""
    rational: bool = False

    def __str__(self) -> str:
        return f"{self.exact} (about {self.approximate})" if self.approximate else self.exact


_REFUSALS: dict[str, tuple[Status, tuple[str, ...]]] = {
    "syntax_valid": (Status.BLOCKED, ()),
    "within_limits": (Status.BLOCKED, ()),
    "parameters_valid": (Status.BLOCKED, ()),
    "unambiguous": (Status.BLOCKED, PARSE_CHECKS),
    "defined": (Status.BLOCKED, PARSE_CHECKS),
    "is_formal": (Status.INCONCLUSIVE, ()),
    "decidable": (Status.INCONCLUSIVE, PARSE_CHECKS),
}

_SIGN_TEXTS = {
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}


def refused_verdict(refusal: MathRefusalError) -> Verdict:
    """Return the verdict on a text that was not decided, with the position where it is known."""
    status, passed = _REFUSALS[refusal.check]
    return Verdict(
        status=status,
        engine=ENGINE,
        message=refusal.message,
        checks_passed=passed,
        checks_failed=(refusal.check,),
        result={} if refusal.position is None else {"position": refusal.position},
    )


def division_by_zero() -> MathRefusalError:
    """Return the refusal of a division by zero."""
    return MathRefusalError("defined", "division by zero: the expression has no value")


def zero_to_the_zero() -> MathRefusalError:
    """Return the refusal of 0^0, whose value depends on convention."""
    return MathRefusalError("defined", "0 to the power 0 has no agreed value: write the value you mean")


def format_rational(value: Number) -> FormattedValue:
    """Format a rational number as an integer, a finite decimal or a fraction."""
    below = value.denominator
    if below == 1:
        return FormattedValue(str(value.numerator), rational=True)
    twos = (below & -below).bit_length() - 1
    fives, rest = 0, below >> twos
    while rest % 5 == 0 and fives <= _MAX_DECIMALS:
        fives, rest = fives + 1, rest // 5
    places = max(twos, fives)
    if rest == 1 and places <= _MAX_DECIMALS:
        return FormattedValue(_decimal(value, places), rational=True)
    return FormattedValue(f"{value.numerator}/{below}", approximate(value), rational=True)


def approximate(value: Number) -> str:
    """Format `value` to fifteen digits."""
    return str(_FIFTEEN_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _decimal(value: Number, places: int) -> str:
    scaled = abs(value.numerator) * 10**places // value.denominator
    digits = str(scaled).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def computed_verdict(text: str, value: FormattedValue, extra: Mapping[str, Any] | None = None) -> Verdict:
    """Return the verdict on a bare expression, which claims nothing: its value."""
    return Verdict(
        status=Status.SIMPLIFIED,
        engine=ENGINE,
        message=f"{clip(text)} is {_shorten(value)}",
        checks_passed=PARSE_CHECKS,
        result={"value": value.exact, **_approximation(value), **(extra or {})},
    )


def compare_rationals(claim: Claim, left: Number, right: Number) -> Verdict:
    """Return the verdict on a claim about two rational numbers."""
    return comparison_verdict(claim, HOLDS[claim.sign](left - right), format_rational(left), format_rational(right))


HOLDS: dict[str, Callable[[Any], bool]] = {
    "=": lambda difference: bool(difference == 0),
    "!=": lambda difference: bool(difference != 0),
    "<": lambda difference: bool(difference < 0),
    "<=": lambda difference: bool(difference <= 0),
    ">": lambda difference: bool(difference > 0),
    ">=": lambda difference: bool(difference >= 0),
}
"""Condition on left minus right for each comparison sign."""


def comparison_verdict(claim: Claim, holds: bool, left: FormattedValue, right: FormattedValue) -> Verdict:
    """Return the verdict on a claim about two constants, with the right value if there is one."""
    result: dict[str, Any] = {"left": left.exact, "right": right.exact}
    if holds:
        message = f"{clip(claim.text)} holds: {_shorten(left)} {_SIGN_TEXTS[claim.sign]} {_shorten(right)}"
        if left.exact == right.exact:
            message = f"{clip(claim.text)} holds: both sides are {_shorten(left)}"
        return verified_verdict(message, result)
    expected, corrected = _repair(claim, left, right)
    if expected is not None:
        result |= {"expected": expected.exact, **_approximation(expected)}
    return failed_verdict(_refutation(claim, left, right), result, corrected)


def _refutation(claim: Claim, left: FormattedValue, right: FormattedValue) -> str:
    if claim.sign == "!=":
        return f"both sides of {clip(claim.text)} are {_shorten(left)}"
    relation = _SIGN_TEXTS[claim.sign].removeprefix("is").strip()
    subject = clip(claim.left_text)
    if claim.left_text != left.exact:
        subject = f"{subject} is {_shorten(left)},"
        return " ".join(part for part in (subject, "not", relation, _shorten(right)) if part)
    return " ".join(part for part in (subject, "is not", relation, _shorten(right)) if part)


def verified_verdict(message: str, result: Mapping[str, Any], check: str = "claim_holds") -> Verdict:
    """Return the verdict on a proven claim."""
    return Verdict(
        status=Status.VERIFIED, engine=ENGINE, message=message, checks_passed=(*PARSE_CHECKS, check), result=result
    )


def failed_verdict(message: str, result: Mapping[str, Any], corrected: Mapping[str, Any] | None = None) -> Verdict:
    """Return the verdict on a refuted claim."""
    return Verdict(
        status=Status.FAILED,
        engine=ENGINE,
        message=message,
        checks_passed=PARSE_CHECKS,
        checks_failed=("claim_holds",),
        corrected=corrected,
        result=result,
    )


def _repair(
    claim: Claim, left: FormattedValue, right: FormattedValue
) -> tuple[FormattedValue | None, Mapping[str, str] | None]:
    """Return the expected value and the corrected claim, or None for each if either side may be wrong."""
    left_stated, right_stated = _is_stated(claim.left), _is_stated(claim.right)
    if claim.sign != "=" or left_stated == right_stated:
        return None, None
    expected = left if right_stated else right
    expression_text = claim.left_text if right_stated else claim.right_text
    if not expected.rational or len(expected.exact) > _MAX_REPAIR or expected.exact == expression_text:
        return expected, None
    sides = (claim.left_text, expected.exact) if right_stated else (expected.exact, claim.right_text)
    return expected, {"query": f"{sides[0]} = {sides[1]}"}


def _is_stated(node: MathNode | None) -> bool:
    """Return True if the side is a plain number, that is, a stated result."""
    if node is not None and node.kind == "negative":
        node = node.args[0]
    return node is not None and node.kind == "number"


def _approximation(value: FormattedValue) -> dict[str, str]:
    return {"approximately": value.approximate} if value.approximate else {}


def _shorten(value: FormattedValue) -> str:
    if len(value.exact) <= 80:
        return str(value) if value.approximate else value.exact
    return (
        f"about {value.approximate}" if value.approximate else f"{value.exact[:60]}... ({len(value.exact)} characters)"
    )
