"""Comparison of a claim with the computed value, to the decimals that the claim is written with."""

from collections.abc import Sequence
from decimal import Decimal

from qwed.model.currency import CURRENCIES
from qwed.packs.amount_parsing import ClaimedAmount
from qwed.packs.result import UnreadableInputError, status_of
from qwed_finance._decimal import (
    FINE,
    ONE,
    TOLERANCE,
    Computation,
    format_step,
    percent_to_fraction,
    require_max_value,
    round_half_up,
)
from qwed_finance.result import FinanceResult

_FLOAT_DIGITS = 12
"""Significant digits of a float that are not noise."""
_RATE_DECIMALS = 6
HALF = Decimal("0.5")


def judge_claim(
    claim: ClaimedAmount, readings: Sequence[Computation], precision: int, hints: Sequence[Computation] = ()
) -> FinanceResult:
    """Return VERIFIED if the claim is one of the `readings`; a matching `hint` explains a wrong claim."""
    _require_kind(claim, readings[0])
    for reading in (*readings, *hints):
        require_max_value(reading.value)
    precision = min(precision, CURRENCIES.get(claim.currency, precision))
    match = next((reading for reading in readings if is_rounded_to(claim, reading, precision)), None)
    best = match or readings[0]
    claimed, computed = round_claim_and_value(claim, best, precision)
    return FinanceResult(
        status=status_of(match is not None),
        message=_message(claim, best, computed, match is not None, _hint(claim, hints, precision)),
        rule=best.rule,
        by_hand=(*best.steps, _last_step(best, computed)),
        llm_value=claimed,
        computed_value=computed,
        difference=FINE.subtract(claimed, computed),
        formula_used=best.formula,
        precision=precision,
        currency=claim.currency or None,
    )


def is_rounded_to(claim: ClaimedAmount, worked: Computation, precision: int) -> bool:
    """Return True if the exact value rounds to the claim; a tie may round either way."""
    unit = ONE.scaleb(-_compared_decimals(claim, worked, precision), FINE)
    half_unit = FINE.add(FINE.multiply(HALF, unit), TOLERANCE)
    candidates = (claim.value, _without_noise(claim, worked, precision)[0])
    return any(FINE.abs(FINE.subtract(candidate, worked.value)) <= half_unit for candidate in candidates)


def round_claim_and_value(claim: ClaimedAmount, worked: Computation, precision: int) -> tuple[Decimal, Decimal]:
    """Return the claim without float noise, and the computed value rounded as the claim is."""
    decimals = _compared_decimals(claim, worked, precision)
    return _without_noise(claim, worked, precision)[0], round_half_up(
        worked.value, max(decimals, _RATE_DECIMALS if worked.rate else 0)
    )


def _finest_decimal(claim: ClaimedAmount, worked: Computation, precision: int) -> int:
    """Return the last decimal that is reliable in a float of this size."""
    largest = max(FINE.abs(worked.scale), FINE.abs(claim.value), FINE.abs(worked.value))
    return max(_min_decimals(claim, worked, precision), _FLOAT_DIGITS - max(0, largest.adjusted() + 1))


def _min_decimals(claim: ClaimedAmount, worked: Computation, precision: int) -> int:
    # `14.5%` has one decimal of a percent; 0.145 may be the float of 14.50 %.
    return precision + (0 if not worked.rate else 1 if claim.percent else 2)


def _without_noise(claim: ClaimedAmount, worked: Computation, precision: int) -> tuple[Decimal, int]:
    """Return the intended claim and its number of decimals: 1234.5600000001 means 1234.56."""
    finest = _finest_decimal(claim, worked, precision)
    if claim.decimals <= finest:
        return claim.value, claim.decimals
    intended = round_half_up(claim.value, finest).normalize(FINE)
    exponent = intended.as_tuple().exponent
    return intended, max(0, -exponent) if isinstance(exponent, int) else 0


def _compared_decimals(claim: ClaimedAmount, worked: Computation, precision: int) -> int:
    return max(_min_decimals(claim, worked, precision), _without_noise(claim, worked, precision)[1])


def _require_kind(claim: ClaimedAmount, expected: Computation) -> None:
    if expected.rate and claim.currency:
        raise UnreadableInputError("the claim is an amount and a rate is expected, write it as in `0.065` or `6.5%`")
    if not expected.rate and claim.percent:
        raise UnreadableInputError("the claim is a percentage and an amount is expected, write it as in `1234.56`")
    in_percent = ClaimedAmount(percent_to_fraction(claim.value), claim.decimals + 2, True)
    if expected.rate and not claim.percent and FINE.abs(claim.value) > 1 and is_rounded_to(in_percent, expected, 2):
        raise UnreadableInputError(
            f"a rate is a fraction: write `{claim.value:f}%` or {percent_to_fraction(claim.value):f}"
        )


def format_value(value: Decimal, worked: Computation) -> str:
    """Format the value for a message; a rate is in percent."""
    if worked.rate:
        return f"{value.scaleb(2, FINE).normalize(FINE):f} %"
    return f"{value:f}"


def _message(claim: ClaimedAmount, best: Computation, computed: Decimal, holds: bool, hint: str) -> str:
    label = f" ({best.label})" if best.label else ""
    value = format_value(computed, best)
    if holds:
        return f"it comes to {value}{label}, as claimed"
    return f"{format_value(claim.value, best)} is claimed, but it comes to {value}{label}{hint}"


def _hint(claim: ClaimedAmount, hints: Sequence[Computation], precision: int) -> str:
    match = next((hint for hint in hints if is_rounded_to(claim, hint, precision)), None)
    return f": what is claimed is {match.label}" if match else ""


def _last_step(best: Computation, computed: Decimal) -> str:
    return f"rounded: {computed:f}" if computed != best.value else f"that is {format_step(computed)}"
