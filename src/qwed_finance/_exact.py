"""Decimals of our own precision, and the numbers that go into them: bounded before anything is computed."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from numbers import Integral
from typing import Any, NamedTuple

from qwed.packs.claimed import Claimed, claimed_of
from qwed.packs.reading import number_of
from qwed.packs.result import Unreadable

FINE = Context(
    prec=90, rounding=ROUND_HALF_UP, Emax=10**9, Emin=-(10**9), traps=[InvalidOperation, DivisionByZero, Overflow]
)
"""Every operation is off by less than one part in 10**89; what is summed here stays below LARGEST, and no value is made
of more than 10**6 operations, so what comes out is off by less than SLACK."""
LARGEST = Decimal("1e30")
SLACK = Decimal("1e-40")
"""Closer to a tie than this counts as the tie."""
ZERO, ONE, TWELVE = Decimal(0), Decimal(1), Decimal(12)
MOST_RATE = Decimal(10)
LEAST_RATE = Decimal("-0.99")
MOST_MONTHS = 1_200
MOST_YEARS = 200
_SHOWN = 12


class Worked(NamedTuple):
    """A value as it was worked out."""

    value: Decimal
    formula: str
    rule: str
    steps: tuple[str, ...] = ()
    scale: Decimal = ONE
    """The largest amount that went in: floats carry noise in proportion to it."""
    rate: bool = False
    """Whether it is a fraction of one, such as an interest rate."""
    called: str = ""
    """What it is, where a claim could mean one of several."""


@contextmanager
def bounded() -> Iterator[None]:
    """Unreadable where a number in between grows beyond all bounds."""
    try:
        yield
    except (Overflow, InvalidOperation, DivisionByZero):
        raise Unreadable("the values in between are too large to be computed exactly, use smaller numbers") from None


def amount_of(name: str, value: Any) -> Decimal:
    """An amount exactly: a number, or a text such as `200000` or `$200,000`."""
    claimed = claim_of(name, value)
    if claimed.percent:
        raise Unreadable(f"`{name}` is a percentage, write an amount such as `1234.56`")
    return claimed.value


def claim_of(name: str, value: Any) -> Claimed:
    """A claim exactly, also where it comes as a float of another library or with the noise of one."""
    return claimed_of(name, plain(value))


def plain(value: Any) -> Any:
    """Numbers that other libraries make of Python's, as Python's; a float without what is finer than any amount."""
    if isinstance(value, bool | str | Decimal) or value is None:
        return value
    if isinstance(value, float):
        return _without_dust(float(value))
    return int(value) if issubclass(type(value), Integral) else value


def _without_dust(value: float) -> float | Decimal:
    # 2.27e-13 is how a float says zero.
    if -1e6 < value < 1e6:
        return FINE.quantize(Decimal(repr(value)), Decimal("1e-18")).normalize(FINE)
    return value


def rate_of(name: str, value: Any) -> Decimal:
    """A rate as a fraction: 0.065, or `6.5%`."""
    claimed = claim_of(name, value)
    exact = claimed.value
    if claimed.currency:
        raise Unreadable(f"`{name}` is an amount, write a rate as in `0.065` or `6.5%`")
    if not claimed.percent and exact > 1:
        as_percent = f"{exact:f}%"
        raise Unreadable(
            f"`{name}` is {exact:f}, which as a fraction is more than 100 %: write `{as_percent}` or {shift(exact):f}"
        )
    if not LEAST_RATE <= exact <= MOST_RATE:
        raise Unreadable(f"`{name}` must be from -99% to 1000%")
    return exact


def shift(percent: Decimal) -> Decimal:
    """A hundredth of it."""
    return percent.scaleb(-2, FINE)


def years_of(name: str, value: Any) -> Decimal:
    """A number of years, which may be a fraction."""
    exact = number_of(name, plain(value))
    if not 0 <= exact <= MOST_YEARS:
        raise Unreadable(f"`{name}` must be a number of years from 0 to {MOST_YEARS}")
    return exact


def within(value: Decimal) -> Decimal:
    """The value; Unreadable where it is too large to be known to the cent."""
    if FINE.abs(value) >= LARGEST:
        raise Unreadable("the value has more than 30 digits and is not computed, use smaller numbers")
    return value


def rounded(value: Decimal, decimals: int) -> Decimal:
    """Half up, which is away from zero; what is off a tie by less than it may be off at all is that tie."""
    nudged = FINE.add(value, SLACK.copy_sign(value)) if value else value
    return FINE.quantize(nudged, ONE.scaleb(-decimals, FINE))


def brief(value: Decimal) -> str:
    """As a step shows it: its digits, of long ones the first twelve."""
    exact = value.normalize(FINE)
    most = max(_SHOWN, exact.adjusted() + 3)
    short = exact.normalize(Context(prec=most, rounding="ROUND_DOWN", traps=[]))
    return f"{short:f}" + ("" if short == exact else "...")


def total(values: list[Decimal]) -> Decimal:
    """Their sum."""
    found = ZERO
    for each in values:
        found = FINE.add(found, each)
    return found
