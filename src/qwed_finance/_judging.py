"""A claim beside what was worked out: right to the decimals that it is written with, or wrong."""

from collections.abc import Sequence
from decimal import Decimal

from qwed.packs.claimed import Claimed
from qwed.packs.result import Unreadable, standing
from qwed_finance._exact import FINE, ONE, SLACK, Worked, brief, rounded, shift, within
from qwed_finance.result import FinanceResult

_FLOAT_DIGITS = 12
"""What a float says beyond them may be noise."""
_SHOWN_RATE = 6
HALF = Decimal("0.5")


def judge(claim: Claimed, readings: Sequence[Worked], precision: int, hints: Sequence[Worked] = ()) -> FinanceResult:
    """VERIFIED where the claim is one of the `readings`; a `hint` is what a wrong claim may have been taken from."""
    _require_kind(claim, readings[0])
    for each in (*readings, *hints):
        within(each.value)
    right = next((each for each in readings if agrees(claim, each, precision)), None)
    found = right or readings[0]
    claimed, computed = settled(claim, found, precision)
    return FinanceResult(
        status=standing(right is not None),
        message=_message(claim, found, computed, right is not None, _hint(claim, hints, precision)),
        rule=found.rule,
        by_hand=(*found.steps, _last(found, computed)),
        llm_value=claimed,
        computed_value=computed,
        difference=FINE.subtract(claimed, computed),
        formula_used=found.formula,
        precision=precision,
        currency=claim.currency or None,
    )


def agrees(claim: Claimed, worked: Worked, precision: int) -> bool:
    """Whether the exact value is rounded to the claim; a value halfway between two may be rounded to either."""
    unit = ONE.scaleb(-_decimals(claim, worked, precision), FINE)
    near = FINE.add(FINE.multiply(HALF, unit), SLACK)
    written = (claim.value, _written(claim, worked, precision)[0])
    return any(FINE.abs(FINE.subtract(each, worked.value)) <= near for each in written)


def settled(claim: Claimed, worked: Worked, precision: int) -> tuple[Decimal, Decimal]:
    """The claim without noise, and the computed value rounded as the claim is."""
    decimals = _decimals(claim, worked, precision)
    return _written(claim, worked, precision)[0], rounded(
        worked.value, max(decimals, _SHOWN_RATE if worked.rate else 0)
    )


def _finest(claim: Claimed, worked: Worked, precision: int) -> int:
    """The last decimal that a float of this size can be trusted with."""
    largest = max(FINE.abs(worked.scale), FINE.abs(claim.value), FINE.abs(worked.value))
    return max(_least(claim, worked, precision), _FLOAT_DIGITS - max(0, largest.adjusted() + 1))


def _least(claim: Claimed, worked: Worked, precision: int) -> int:
    # 14.5% is written to a tenth of a percent; 0.145 may be the float of 14.50 %.
    return precision + (0 if not worked.rate else 1 if claim.percent else 2)


def _written(claim: Claimed, worked: Worked, precision: int) -> tuple[Decimal, int]:
    """What was meant by the claim, and how many decimals it has: 1234.5600000001 means 1234.56."""
    finest = _finest(claim, worked, precision)
    if claim.decimals <= finest:
        return claim.value, claim.decimals
    meant = rounded(claim.value, finest).normalize(FINE)
    exponent = meant.as_tuple().exponent
    return meant, max(0, -exponent) if isinstance(exponent, int) else 0


def _decimals(claim: Claimed, worked: Worked, precision: int) -> int:
    return max(_least(claim, worked, precision), _written(claim, worked, precision)[1])


def _require_kind(claim: Claimed, asked: Worked) -> None:
    if asked.rate and claim.currency:
        raise Unreadable("the claim is an amount and a rate was asked for, write it as in `0.065` or `6.5%`")
    if not asked.rate and claim.percent:
        raise Unreadable("the claim is a percentage and an amount was asked for, write it as in `1234.56`")
    in_percent = Claimed(shift(claim.value), claim.decimals + 2, True)
    if asked.rate and not claim.percent and FINE.abs(claim.value) > 1 and agrees(in_percent, asked, 2):
        raise Unreadable(f"a rate is a fraction: write `{claim.value:f}%` or {shift(claim.value):f}")


def shown(value: Decimal, worked: Worked) -> str:
    """As a message shows it: a rate in percent."""
    if worked.rate:
        return f"{value.scaleb(2, FINE).normalize(FINE):f} %"
    return f"{value:f}"


def _message(claim: Claimed, found: Worked, computed: Decimal, holds: bool, hint: str) -> str:
    called = f" ({found.called})" if found.called else ""
    value = shown(computed, found)
    if holds:
        return f"it comes to {value}{called}, as claimed"
    return f"{shown(claim.value, found)} is claimed, but it comes to {value}{called}{hint}"


def _hint(claim: Claimed, hints: Sequence[Worked], precision: int) -> str:
    found = next((each for each in hints if agrees(claim, each, precision)), None)
    return f": what is claimed is {found.called}" if found else ""


def _last(found: Worked, computed: Decimal) -> str:
    return f"rounded: {computed:f}" if computed != found.value else f"that is {brief(computed)}"
