"""How the math engine words what it found: one place, so the quick path and the full one cannot differ."""

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, NamedTuple

from qwed.engines._math.tree import Claim, Node, Number, Refused, clip
from qwed.words import Status, Verdict

ENGINE = "math"
READ = ("syntax_valid", "within_limits")
_FIFTEEN_DIGITS = Context(prec=15)
_MAX_DECIMALS = 40
_MAX_REPAIR = 60


class Shown(NamedTuple):
    """A value as text: exact, about where the exact form is no plain decimal, and whether it is rational."""

    exact: str
    about: str = ""
    rational: bool = False

    def __str__(self) -> str:
        return f"{self.exact} (about {self.about})" if self.about else self.exact


_REFUSALS: dict[str, tuple[Status, tuple[str, ...]]] = {
    "syntax_valid": (Status.BLOCKED, ()),
    "within_limits": (Status.BLOCKED, ()),
    "parameters_valid": (Status.BLOCKED, ()),
    "unambiguous": (Status.BLOCKED, READ),
    "defined": (Status.BLOCKED, READ),
    "is_formal": (Status.INCONCLUSIVE, ()),
    "decidable": (Status.INCONCLUSIVE, READ),
}

_IS = {"=": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}


def refused(refusal: Refused) -> Verdict:
    """The verdict on a text that was not decided, with the place where that is known."""
    status, passed = _REFUSALS[refusal.check]
    return Verdict(
        status=status,
        engine=ENGINE,
        message=refusal.message,
        checks_passed=passed,
        checks_failed=(refusal.check,),
        result={} if refusal.position is None else {"position": refusal.position},
    )


def division_by_zero() -> Refused:
    """The refusal of a quotient that has no value."""
    return Refused("defined", "division by zero: the expression has no value")


def zero_to_the_zero() -> Refused:
    """The refusal of the power on which conventions differ."""
    return Refused("defined", "0 to the power 0 has no agreed value: write the value you mean")


def show(value: Number) -> Shown:
    """A rational number: whole, as a decimal that ends, or as a fraction."""
    below = value.denominator
    if below == 1:
        return Shown(str(value.numerator), rational=True)
    twos = (below & -below).bit_length() - 1
    fives, rest = 0, below >> twos
    while rest % 5 == 0 and fives <= _MAX_DECIMALS:
        fives, rest = fives + 1, rest // 5
    places = max(twos, fives)
    if rest == 1 and places <= _MAX_DECIMALS:
        return Shown(_decimal(value, places), rational=True)
    return Shown(f"{value.numerator}/{below}", about(value), rational=True)


def about(value: Number) -> str:
    """`value` to fifteen digits."""
    return str(_FIFTEEN_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _decimal(value: Number, places: int) -> str:
    scaled = abs(value.numerator) * 10**places // value.denominator
    digits = str(scaled).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def computed(text: str, value: Shown, extra: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict on a bare expression: nothing was claimed, its value is the answer."""
    return Verdict(
        status=Status.SIMPLIFIED,
        engine=ENGINE,
        message=f"{clip(text)} is {_clipped(value)}",
        checks_passed=READ,
        result={"value": value.exact, **_approximately(value), **(extra or {})},
    )


def compared(claim: Claim, left: Number, right: Number) -> Verdict:
    """The verdict on a claim about two rational numbers."""
    return judged(claim, HOLDS[claim.sign](left - right), show(left), show(right))


HOLDS: dict[str, Callable[[Any], bool]] = {
    "=": lambda difference: bool(difference == 0),
    "!=": lambda difference: bool(difference != 0),
    "<": lambda difference: bool(difference < 0),
    "<=": lambda difference: bool(difference <= 0),
    ">": lambda difference: bool(difference > 0),
    ">=": lambda difference: bool(difference >= 0),
}
"""What a claim says about left minus right."""


def judged(claim: Claim, holds: bool, left: Shown, right: Shown) -> Verdict:
    """The verdict on a claim about two constants, with the right value where there is one."""
    result: dict[str, Any] = {"left": left.exact, "right": right.exact}
    if holds:
        message = f"{clip(claim.text)} holds: {_clipped(left)} {_IS[claim.sign]} {_clipped(right)}"
        if left.exact == right.exact:
            message = f"{clip(claim.text)} holds: both sides are {_clipped(left)}"
        return held(message, result)
    expected, corrected = _repair(claim, left, right)
    if expected is not None:
        result |= {"expected": expected.exact, **_approximately(expected)}
    return failed(_denial(claim, left, right), result, corrected)


def _denial(claim: Claim, left: Shown, right: Shown) -> str:
    if claim.sign == "!=":
        return f"both sides of {clip(claim.text)} are {_clipped(left)}"
    relation = _IS[claim.sign].removeprefix("is").strip()
    subject = clip(claim.left_text)
    if claim.left_text != left.exact:
        subject = f"{subject} is {_clipped(left)},"
        return " ".join(part for part in (subject, "not", relation, _clipped(right)) if part)
    return " ".join(part for part in (subject, "is not", relation, _clipped(right)) if part)


def held(message: str, result: Mapping[str, Any], check: str = "claim_holds") -> Verdict:
    """A proven claim."""
    return Verdict(status=Status.VERIFIED, engine=ENGINE, message=message, checks_passed=(*READ, check), result=result)


def failed(message: str, result: Mapping[str, Any], corrected: Mapping[str, Any] | None = None) -> Verdict:
    """A refuted claim."""
    return Verdict(
        status=Status.FAILED,
        engine=ENGINE,
        message=message,
        checks_passed=READ,
        checks_failed=("claim_holds",),
        corrected=corrected,
        result=result,
    )


def _repair(claim: Claim, left: Shown, right: Shown) -> tuple[Shown | None, Mapping[str, str] | None]:
    """What should stand beside the expression, and the repaired claim; nothing where either side may be wrong."""
    left_stated, right_stated = _is_stated(claim.left), _is_stated(claim.right)
    if claim.sign != "=" or left_stated == right_stated:
        return None, None
    expected = left if right_stated else right
    known = claim.left_text if right_stated else claim.right_text
    if not expected.rational or len(expected.exact) > _MAX_REPAIR or expected.exact == known:
        return expected, None
    sides = (claim.left_text, expected.exact) if right_stated else (expected.exact, claim.right_text)
    return expected, {"query": f"{sides[0]} = {sides[1]}"}


def _is_stated(node: Node | None) -> bool:
    """Whether the side is a plain number: what somebody says the result is."""
    if node is not None and node.kind == "negative":
        node = node.args[0]
    return node is not None and node.kind == "number"


def _approximately(value: Shown) -> dict[str, str]:
    return {"approximately": value.about} if value.about else {}


def _clipped(value: Shown) -> str:
    if len(value.exact) <= 80:
        return str(value)
    return f"about {value.about}" if value.about else f"{value.exact[:60]}... ({len(value.exact)} characters)"
