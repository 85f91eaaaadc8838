"""The rates at which cash flows are worth nothing: found, and proven to be there, by signs at both sides."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import lcm

from qwed.packs.result import Unreadable
from qwed_finance._exact import FINE, ONE, ZERO

MOST_FLOWS = 1_500
MOST_FLOWS_OF_SEVERAL = 121
"""Where the signs change more than once, all rates have to be told apart, which takes far longer."""
_NARROW = Decimal("1e-40")
_MOST_STEPS = 300
_MOST_CUTS = 400
_TWO = Decimal(2)
_FARTHEST = 20
_NEAREST = Decimal("1e-6")


def worth(flows: Sequence[Decimal], base: Decimal) -> Decimal:
    """The sum of flow / base**t, the first at t = 0."""
    found = ZERO
    for each in reversed(flows):
        found = FINE.add(FINE.divide(found, base), each)
    return found


def changes(flows: Sequence[int] | Sequence[Decimal]) -> int:
    """How often the sign changes, zeros left out; by Descartes at least as many rates as there can be."""
    signs = [each > 0 for each in flows if each != 0]
    return sum(one != other for one, other in pairwise(signs))


def root(flows: Sequence[Decimal]) -> Decimal:
    """The one rate of flows whose sign changes once."""
    low = high = ONE
    positive = worth(flows, ONE) > 0
    if worth(flows, ONE) == 0:
        return ZERO
    # Where the first flow is paid out, a lower rate is worth more.
    growing = next(each for each in flows if each != 0) > 0
    for _ in range(_FARTHEST):
        low, high = (high, FINE.multiply(high, _TWO)) if positive is not growing else (FINE.divide(low, _TWO), low)
        edge = high if positive is not growing else low
        if (worth(flows, edge) > 0) is not positive:
            return FINE.subtract(_narrowed(lambda base: worth(flows, base), low, high), ONE)
    raise Unreadable("the rate is beyond what is looked at, from nearly -100 % to a million times")


def roots(flows: Sequence[Decimal]) -> list[Decimal]:
    """Every rate above -100 %, lowest first; Unreadable where two of them cannot be told apart."""
    if changes(flows) == 1:
        return [root(flows)]
    if len(flows) > MOST_FLOWS_OF_SEVERAL:
        raise Unreadable(
            f"the sign changes more than once, which is looked at for up to {MOST_FLOWS_OF_SEVERAL} cash flows"
        )
    whole = _whole(flows)
    found = [ZERO] if sum(whole) == 0 else []
    while sum(whole) == 0:
        whole = _without_one(whole)
    # With x = 1 / (1 + rate) the worth is a polynomial: rates above 0 are its roots in (0, 1), others of its mirror.
    found += [FINE.subtract(FINE.divide(ONE, each), ONE) for each in _within_one(whole)]
    found += [FINE.subtract(each, ONE) for each in _within_one(whole[::-1])]
    return sorted(found)


def _within_one(row: Sequence[int]) -> list[Decimal]:
    """The roots of the polynomial between 0 and 1."""
    found = []
    for poly, low, width in _isolated(row):
        at = _narrowed(_valued(poly), ZERO, ONE) if poly else ZERO
        root_ = FINE.add(_decimal(low), FINE.multiply(_decimal(width), at))
        if root_ < _NEAREST:
            raise Unreadable("a rate is beyond what is looked at, from nearly -100 % to a million times")
        found.append(root_)
    return found


def _decimal(exact: Fraction) -> Decimal:
    return FINE.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _valued(poly: Sequence[int]) -> Callable[[Decimal], Decimal]:
    rounded = [FINE.create_decimal(each) for each in poly]

    def value(at: Decimal) -> Decimal:
        found = ZERO
        for each in reversed(rounded):
            found = FINE.fma(found, at, each)
        return found

    return value


def _narrowed(value: Callable[[Decimal], Decimal], low: Decimal, high: Decimal) -> Decimal:
    """Where the value is nothing between two places where its signs differ; by regula falsi as Illinois does it."""
    below, over = value(low), value(high)
    if (below > 0) is (over > 0):
        raise Unreadable("two rates lie too close together to be told apart")
    kept = 0
    for step in range(_MOST_STEPS):
        if FINE.subtract(high, low) <= FINE.multiply(_NARROW, high):
            break
        middle = _between(low, high, below, over, halve=step % 4 == 3)
        found = value(middle)
        if found == 0:
            return middle
        if (found > 0) is (below > 0):
            low, below = middle, found
            over = FINE.divide(over, _TWO) if kept == 1 else over
            kept = 1
        else:
            high, over = middle, found
            below = FINE.divide(below, _TWO) if kept == -1 else below
            kept = -1
    else:
        raise Unreadable("the rate cannot be found, use smaller numbers")
    return FINE.divide(FINE.add(low, high), _TWO)


def _between(low: Decimal, high: Decimal, below: Decimal, over: Decimal, halve: bool) -> Decimal:
    if halve or below == over:
        return FINE.divide(FINE.add(low, high), _TWO)
    part = FINE.divide(below, FINE.subtract(below, over))
    guess = FINE.add(low, FINE.multiply(FINE.subtract(high, low), part))
    # A step must be seen: right beside the root one end would otherwise stay where it is for ever.
    least = FINE.divide(FINE.multiply(_NARROW, high), _TWO)
    return min(max(guess, FINE.add(low, least)), FINE.subtract(high, least))


def _whole(flows: Sequence[Decimal]) -> list[int]:
    """The flows as whole numbers, all multiplied by the same one."""
    exact = [Fraction(each) for each in flows]
    common = lcm(*(each.denominator for each in exact))
    return [int(each * common) for each in exact]


Isolated = tuple[list[int], Fraction, Fraction]


def _without_one(row: Sequence[int]) -> list[int]:
    """The polynomial divided by x - 1, which divides it."""
    found, carried = [], 0
    for each in reversed(row):
        carried += each
        found.append(carried)
    return found[-2::-1]


def _isolated(row: Sequence[int]) -> list[Isolated]:
    """The roots in (0, 1), each alone: a polynomial on (0, 1), where that begins and how wide it is.

    The way of Vincent, Collins and Akritas; a root that lies on a cut comes without a polynomial.
    """
    pending = [(list(row), Fraction(0), Fraction(1))]
    found: list[Isolated] = []
    for _ in range(_MOST_CUTS):
        if not pending:
            return found
        poly, low, width = pending.pop()
        many = changes(_shifted(poly[::-1]))
        if many == 1:
            found.append((poly, low, width))
        if many <= 1:
            continue
        half = [each << (len(poly) - 1 - power) for power, each in enumerate(poly)]
        right = _shifted(half)
        if right[0] == 0:
            found.append(([], low + width / 2, width))
            # The root itself lies on the cut: divided out, or it would be counted again.
            right = right[1:]
            half = _shifted(right, -1)
        pending += [(half, low, width / 2), (right, low + width / 2, width / 2)]
    raise Unreadable("two rates lie too close together to be told apart, or are one that counts twice")


def _shifted(poly: Sequence[int], by: int = 1) -> list[int]:
    """p(x + by), its constant first."""
    row = list(poly)
    for first in range(len(row) - 1):
        for at in range(len(row) - 2, first - 1, -1):
            row[at] += by * row[at + 1]
    return row
