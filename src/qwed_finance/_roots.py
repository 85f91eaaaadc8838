"""The rates at which cash flows are worth nothing: found, and proven to be there, by signs at both sides."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

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
            return FINE.subtract(_narrowed(flows, low, high), ONE)
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
    # With x = 1 / (1 + rate) the worth is a polynomial: rates above 0 are its roots in (0, 1), others of its mirror.
    for row, above in ((whole, True), (whole[::-1], False)):
        for low, high in _isolated(row):
            found.append(_rate(flows, low, high, above))
    return sorted(found)


def _rate(flows: Sequence[Decimal], low: Fraction, high: Fraction, above: bool) -> Decimal:
    if above:
        # Near 0 the rate is beyond all bounds.
        low, high = 1 / high, (1 / low if low else Fraction(2**_FARTHEST))
    elif not low:
        low = Fraction(1, 2**_FARTHEST)
    ends = [FINE.divide(Decimal(each.numerator), Decimal(each.denominator)) for each in (low, high)]
    if low == high:
        return FINE.subtract(ends[0], ONE)
    if (worth(flows, ends[0]) > 0) is (worth(flows, ends[1]) > 0):
        raise Unreadable("a rate is beyond what is looked at, or two of them cannot be told apart")
    return FINE.subtract(_narrowed(flows, *ends), ONE)


def _narrowed(flows: Sequence[Decimal], low: Decimal, high: Decimal) -> Decimal:
    """The base between `low` and `high`, where the worth has different signs; by regula falsi as Illinois does it."""
    below, over = worth(flows, low), worth(flows, high)
    kept = 0
    for step in range(_MOST_STEPS):
        if FINE.subtract(high, low) <= FINE.multiply(_NARROW, high):
            break
        middle = _between(low, high, below, over, halve=step % 4 == 3)
        found = worth(flows, middle)
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
    return FINE.add(low, FINE.multiply(FINE.subtract(high, low), part))


def _whole(flows: Sequence[Decimal]) -> list[int]:
    """The flows as whole numbers, all multiplied by the same power of ten."""
    exact = [Fraction(each) for each in flows]
    scale = max(each.denominator for each in exact)
    common = 1
    while common % scale:
        common *= 10
    return [int(each * common) for each in exact]


def _isolated(row: Sequence[int]) -> list[tuple[Fraction, Fraction]]:
    """Intervals within (0, 1), each with exactly one root of the polynomial (Vincent, Collins and Akritas)."""
    pending = [(list(row), Fraction(0), Fraction(1))]
    found: list[tuple[Fraction, Fraction]] = []
    for _ in range(_MOST_CUTS):
        if not pending:
            return found
        poly, low, width = pending.pop()
        many = changes(_shifted(poly[::-1]))
        if many == 1:
            found.append((low, low + width))
        if many <= 1:
            continue
        half = [each << (len(poly) - 1 - power) for power, each in enumerate(poly)]
        right = _shifted(half)
        if right[0] == 0:
            found.append((low + width / 2, low + width / 2))
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
