"""Internal rates of return: root isolation and refinement, proven by sign changes."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import lcm

from qwed.packs.result import UnreadableInputError
from qwed_finance._decimal import FINE, ONE, ZERO

MAX_FLOWS = 1_500
MAX_FLOWS_SEVERAL_ROOTS = 121
"""Limit if the signs change more than once: isolating all rates takes far longer."""
_ROOT_TOLERANCE = Decimal("1e-40")
_MAX_STEPS = 300
_MAX_CUTS = 400
_TWO = Decimal(2)
_MAX_DOUBLINGS = 20
_MIN_ROOT = Decimal("1e-6")


def discounted_sum(flows: Sequence[Decimal], base: Decimal) -> Decimal:
    """Return the sum of flow / base**t, the first at t = 0."""
    result = ZERO
    for flow in reversed(flows):
        result = FINE.add(FINE.divide(result, base), flow)
    return result


def count_sign_changes(flows: Sequence[int] | Sequence[Decimal]) -> int:
    """Count the sign changes, without zeros; by Descartes an upper bound on the number of rates."""
    signs = [flow > 0 for flow in flows if flow != 0]
    return sum(one != other for one, other in pairwise(signs))


def find_root(flows: Sequence[Decimal]) -> Decimal:
    """Return the only rate of flows whose sign changes once."""
    low = high = ONE
    positive = discounted_sum(flows, ONE) > 0
    if discounted_sum(flows, ONE) == 0:
        return ZERO
    # If the first flow is an outflow, a lower rate has a higher value.
    growing = next(flow for flow in flows if flow != 0) > 0
    for _ in range(_MAX_DOUBLINGS):
        low, high = (high, FINE.multiply(high, _TWO)) if positive is not growing else (FINE.divide(low, _TWO), low)
        edge = high if positive is not growing else low
        if (discounted_sum(flows, edge) > 0) is not positive:
            return FINE.subtract(_refine_root(lambda base: discounted_sum(flows, base), low, high), ONE)
    raise UnreadableInputError("the rate is outside the supported range, from nearly -100 % to a million times")


def find_roots(flows: Sequence[Decimal]) -> list[Decimal]:
    """Return every rate above -100 %, lowest first. Raise UnreadableInputError if two are too close."""
    if count_sign_changes(flows) == 1:
        return [find_root(flows)]
    if len(flows) > MAX_FLOWS_SEVERAL_ROOTS:
        raise UnreadableInputError(
            f"the sign changes more than once, which is supported for up to {MAX_FLOWS_SEVERAL_ROOTS} cash flows"
        )
    polynomial = _to_integers(flows)
    rates = [ZERO] if sum(polynomial) == 0 else []
    while sum(polynomial) == 0:
        polynomial = _divide_by_x_minus_one(polynomial)
    # With x = 1 / (1 + rate) the value is a polynomial: rates above 0 are its roots in (0, 1), the others those of its
    # reverse.
    rates += [FINE.subtract(FINE.divide(ONE, root), ONE) for root in _roots_in_unit_interval(polynomial)]
    rates += [FINE.subtract(root, ONE) for root in _roots_in_unit_interval(polynomial[::-1])]
    return sorted(rates)


def _roots_in_unit_interval(row: Sequence[int]) -> list[Decimal]:
    """Return the roots of the polynomial between 0 and 1."""
    result = []
    for poly, low, width in _isolate_roots(row):
        at = _refine_root(_evaluator(poly), ZERO, ONE) if poly else ZERO
        root = FINE.add(_to_decimal(low), FINE.multiply(_to_decimal(width), at))
        if root < _MIN_ROOT:
            raise UnreadableInputError("a rate is outside the supported range, from nearly -100 % to a million times")
        result.append(root)
    return result


def _to_decimal(exact: Fraction) -> Decimal:
    return FINE.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _evaluator(poly: Sequence[int]) -> Callable[[Decimal], Decimal]:
    rounded = [FINE.create_decimal(coefficient) for coefficient in poly]

    def value(at: Decimal) -> Decimal:
        result = ZERO
        for coefficient in reversed(rounded):
            result = FINE.fma(result, at, coefficient)
        return result

    return value


def _refine_root(value: Callable[[Decimal], Decimal], low: Decimal, high: Decimal) -> Decimal:
    """Find the root between two points with different signs by regula falsi (Illinois variant)."""
    below, over = value(low), value(high)
    if (below > 0) is (over > 0):
        raise UnreadableInputError("two rates are too close together to be distinguished")
    last_side = 0
    for step in range(_MAX_STEPS):
        if FINE.subtract(high, low) <= FINE.multiply(_ROOT_TOLERANCE, high):
            break
        middle = _next_guess(low, high, below, over, halve=step % 4 == 3)
        at_middle = value(middle)
        if at_middle == 0:
            return middle
        if (at_middle > 0) is (below > 0):
            low, below = middle, at_middle
            over = FINE.divide(over, _TWO) if last_side == 1 else over
            last_side = 1
        else:
            high, over = middle, at_middle
            below = FINE.divide(below, _TWO) if last_side == -1 else below
            last_side = -1
    else:
        raise UnreadableInputError("the rate cannot be found, use smaller numbers")
    return FINE.divide(FINE.add(low, high), _TWO)


def _next_guess(low: Decimal, high: Decimal, below: Decimal, over: Decimal, halve: bool) -> Decimal:
    if halve or below == over:
        return FINE.divide(FINE.add(low, high), _TWO)
    part = FINE.divide(below, FINE.subtract(below, over))
    guess = FINE.add(low, FINE.multiply(FINE.subtract(high, low), part))
    # Enforce a minimum step: close to the root one end would otherwise never move.
    min_step = FINE.divide(FINE.multiply(_ROOT_TOLERANCE, high), _TWO)
    return min(max(guess, FINE.add(low, min_step)), FINE.subtract(high, min_step))


def _to_integers(flows: Sequence[Decimal]) -> list[int]:
    """Scale the flows to integers by a common factor."""
    exact = [Fraction(fraction) for fraction in flows]
    common = lcm(*(fraction.denominator for fraction in exact))
    return [int(fraction * common) for fraction in exact]


IsolatedRoot = tuple[list[int], Fraction, Fraction]


def _divide_by_x_minus_one(row: Sequence[int]) -> list[int]:
    """Divide the polynomial by x - 1, which is a factor of it."""
    quotient, carry = [], 0
    for coefficient in reversed(row):
        carry += coefficient
        quotient.append(carry)
    return quotient[-2::-1]


def _isolate_roots(row: Sequence[int]) -> list[IsolatedRoot]:
    """Isolate the roots in (0, 1): return a polynomial on (0, 1) with one root, the start of its interval and its
    width.

    Uses the Vincent-Collins-Akritas method; a root on an interval boundary is returned without a polynomial.
    """
    pending = [(list(row), Fraction(0), Fraction(1))]
    isolated: list[IsolatedRoot] = []
    for _ in range(_MAX_CUTS):
        if not pending:
            return isolated
        poly, low, width = pending.pop()
        sign_changes = count_sign_changes(_shift_polynomial(poly[::-1]))
        if sign_changes == 1:
            isolated.append((poly, low, width))
        if sign_changes <= 1:
            continue
        half = [coefficient << (len(poly) - 1 - power) for power, coefficient in enumerate(poly)]
        right = _shift_polynomial(half)
        if right[0] == 0:
            isolated.append(([], low + width / 2, width))
            # The root lies on the boundary: divide it out, or it would be counted again.
            right = right[1:]
            half = _shift_polynomial(right, -1)
        pending += [(half, low, width / 2), (right, low + width / 2, width / 2)]
    raise UnreadableInputError("two rates are too close together to be distinguished, or are a double root")


def _shift_polynomial(poly: Sequence[int], by: int = 1) -> list[int]:
    """Return p(x + by), the constant term first."""
    row = list(poly)
    for first in range(len(row) - 1):
        for at in range(len(row) - 2, first - 1, -1):
            row[at] += by * row[at + 1]
    return row
