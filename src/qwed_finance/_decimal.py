"""Decimal context of the finance checks, and input parsing with bounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from numbers import Integral
from typing import Any, NamedTuple

from qwed.packs.amount_parsing import ClaimedAmount, parse_claimed_amount
from qwed.packs.result import UnreadableInputError
from qwed.packs.value_parsing import number_of

FINE = Context(
    prec=90, rounding=ROUND_HALF_UP, Emax=10**9, Emin=-(10**9), traps=[InvalidOperation, DivisionByZero, Overflow]
)
"""Decimal context with 90 digits.

Every operation has a relative error below 1e-89. Values stay below MAX_VALUE and take at most 10**6 operations, so the
total error is below TOLERANCE.
"""
MAX_VALUE = Decimal("1e30")
TOLERANCE = Decimal("1e-40")
"""Values closer to a tie than this count as the tie."""
ZERO, ONE, TWELVE = Decimal(0), Decimal(1), Decimal(12)
MAX_RATE = Decimal(10)
MIN_RATE = Decimal("-0.99")
MAX_MONTHS = 1_200
MAX_YEARS = 200
_STEP_DIGITS = 12


class Computation(NamedTuple):
    """Computed value with its formula and steps."""

    value: Decimal
    formula: str
    rule: str
    steps: tuple[str, ...] = ()
    scale: Decimal = ONE
    """Largest input amount; float noise is proportional to it."""
    rate: bool = False
    """True if the value is a fraction, such as an interest rate."""
    label: str = ""
    """Name of the value, if a claim could mean one of several."""
    period: str = ""
    """Period that the value belongs to, such as `month` for a monthly payment."""

    @property
    def stated_period(self) -> str:
        """Return the period that a text may state: rates are annual."""
        return self.period or ("year" if self.rate else "")


@contextmanager
def reject_overflow() -> Iterator[None]:
    """Raise UnreadableInputError if an intermediate value overflows."""
    try:
        yield
    except (Overflow, InvalidOperation, DivisionByZero):
        raise UnreadableInputError("an intermediate value is too large to be exact, use smaller numbers") from None


def parse_amount(name: str, value: Any) -> Decimal:
    """Parse an exact amount: a number, or a text such as `200000` or `$200,000`."""
    claim = parse_claim(name, value)
    if claim.percent:
        raise UnreadableInputError(f"`{name}` is a percentage, write an amount such as `1234.56`")
    return claim.value


def parse_claim(name: str, value: Any) -> ClaimedAmount:
    """Parse a claim exactly, also if it is a float of another library or has float noise."""
    return parse_claimed_amount(name, to_builtin_number(value))


def to_builtin_number(value: Any) -> Any:
    """Convert numbers of other libraries to builtin ones, and drop float noise below 1e-18."""
    if isinstance(value, bool | str | Decimal) or value is None:
        return value
    if isinstance(value, float):
        return _without_float_noise(float(value))
    return int(value) if issubclass(type(value), Integral) else value


def _without_float_noise(value: float) -> float | Decimal:
    # Results such as 2.27e-13 are float noise around zero.
    if -1e6 < value < 1e6:
        return FINE.quantize(Decimal(repr(value)), Decimal("1e-18")).normalize(FINE)
    return value


def parse_rate(name: str, value: Any) -> Decimal:
    """Parse a rate as a fraction: 0.065, or `6.5%`."""
    claim = parse_claim(name, value)
    exact = claim.value
    if claim.currency:
        raise UnreadableInputError(f"`{name}` is an amount, write a rate as in `0.065` or `6.5%`")
    if not claim.percent and exact > 1:
        as_percent = f"{exact:f}%"
        raise UnreadableInputError(
            f"`{name}` is {exact:f}, which as a fraction is more than 100 %: "
            f"write `{as_percent}` or {percent_to_fraction(exact):f}"
        )
    if not MIN_RATE <= exact <= MAX_RATE:
        raise UnreadableInputError(f"`{name}` must be from -99% to 1000%")
    return exact


def percent_to_fraction(percent: Decimal) -> Decimal:
    """Divide by a hundred."""
    return percent.scaleb(-2, FINE)


def parse_years(name: str, value: Any) -> Decimal:
    """Parse a number of years, which may be a fraction."""
    exact = number_of(name, to_builtin_number(value))
    if not 0 <= exact <= MAX_YEARS:
        raise UnreadableInputError(f"`{name}` must be a number of years from 0 to {MAX_YEARS}")
    return exact


def require_max_value(value: Decimal) -> Decimal:
    """Return the value. Raise UnreadableInputError if it is too large to be exact to the cent."""
    if FINE.abs(value) >= MAX_VALUE:
        raise UnreadableInputError("the value has more than 30 digits and is not computed, use smaller numbers")
    return value


def round_half_up(value: Decimal, decimals: int) -> Decimal:
    """Round half up, away from zero; values within TOLERANCE of a tie count as the tie."""
    nudged = FINE.add(value, TOLERANCE.copy_sign(value)) if value else value
    return FINE.quantize(nudged, ONE.scaleb(-decimals, FINE))


def format_step(value: Decimal) -> str:
    """Format a value for a step; long values are cut to twelve digits."""
    exact = value.normalize(FINE)
    most = max(_STEP_DIGITS, exact.adjusted() + 3)
    short = exact.normalize(Context(prec=most, rounding="ROUND_DOWN", traps=[]))
    return f"{short:f}" + ("" if short == exact else "...")


def sum_decimals(values: list[Decimal]) -> Decimal:
    """Return the sum."""
    result = ZERO
    for value in values:
        result = FINE.add(result, value)
    return result
