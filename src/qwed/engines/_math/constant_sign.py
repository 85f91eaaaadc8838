"""Certain answers about constants: zero test, sign, floor, minimum and maximum."""

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

from qwed.engines._math.interval import QUICK_PRECISIONS, THOROUGH_PRECISIONS, Values, floor_of, sign_of
from qwed.engines._math.messages import division_by_zero
from qwed.engines._math.size_limits import Expr, is_tame, terms
from qwed.engines._math.syntax_tree import MathNode, MathRefusalError, subtract

INVERSE_HYPERBOLIC = (sp.asinh, sp.acosh, sp.atanh)


def is_zero(expr: Expr, node: MathNode, values: Values, thorough: bool = True) -> bool | None:
    """Return True if a constant is zero, None if that is not known; without `thorough` it gives up sooner."""
    sign = sign_of(node, values, THOROUGH_PRECISIONS if thorough else QUICK_PRECISIONS)
    if sign:
        return False
    if expr.is_Rational:
        return bool(expr == 0)
    # Numeric evaluation counts only where there are no bounds to contradict it.
    if sign is None and _is_clearly_nonzero(expr):
        return False
    if thorough and _is_zero_arctangent_sum(expr, node, values):
        return True
    return True if thorough and terms(expr) <= 200 and _is_proven_zero(expr) else None


def _is_proven_zero(expr: Expr) -> bool:
    if sp.expand(expr) == 0:
        return True
    return is_tame(expr) and (sp.expand_log(as_logarithms(expr)) == 0 or sp.simplify(expr) == 0)


def as_logarithms(expr: Expr) -> Expr:
    """Rewrite inverse hyperbolic functions and complex powers as the logarithms that define them."""
    expr = expr.rewrite(INVERSE_HYPERBOLIC, sp.log)
    return expr.replace(
        lambda part: part.is_Pow and part.is_number and part.base is not sp.E and part.exp.is_real is False,
        lambda part: sp.exp(part.exp * sp.log(part.base)),
    )


def _is_zero_arctangent_sum(expr: Expr, node: MathNode, values: Values) -> bool:
    """Return True if a sum of integer multiples of `atan` of fractions and of pi/4 is zero, as in Machin's formula.

    The sum is the argument of a product of complex numbers, which must be real.
    """
    product = sp.S.One
    for term in sp.Add.make_args(expr):
        multiple, factor = term.as_coeff_Mul()
        slope = sp.S.One if factor is sp.pi else factor.args[0] if factor.func is sp.atan else None
        count = multiple * 4 if factor is sp.pi else multiple
        if slope is None or not slope.is_Rational or not count.is_Integer or abs(count) > 100:
            return False
        product = sp.expand(product * (1 + sp.I * slope * sp.sign(count)) ** abs(count))
    half = MathNode("number", value=Fraction(1, 2))
    inside = (
        sign_of(subtract(node, half), values) == -1
        and sign_of(subtract(half, MathNode("negative", (node,))), values) == 1
    )
    return bool(inside and sp.im(product) == 0)


def _is_clearly_nonzero(number: Expr) -> bool:
    # sympy tracks how many digits are certain and reports precision 1 if none are;
    # two precisions that agree guard against an error in that tracking.
    coarse, fine = number.evalf(15), number.evalf(45)
    for part, finer in zip(coarse.as_real_imag(), fine.as_real_imag(), strict=True):
        reliable = part.is_Float and finer.is_Float and min(part._prec, finer._prec) > 1
        if reliable and finer != 0 and abs(part / finer - 1) < 1e-9:
            return True
    return False


def require_nonzero(expr: Expr, node: MathNode, values: Values, refusal: MathRefusalError | None = None) -> None:
    """Raise MathRefusalError for zero (a division by zero unless `refusal` is passed) or if undecided."""
    zero = is_zero(expr, node, values)
    if zero:
        raise refusal or division_by_zero()
    if zero is None:
        raise MathRefusalError("decidable", "could not tell whether a divisor is zero")


def sign(expr: Expr, node: MathNode, values: Values) -> int:
    """Return -1, 0 or 1 for a real constant; raise MathRefusalError if undecided."""
    enclosed_sign = sign_of(node, values)
    if enclosed_sign:
        return enclosed_sign
    if is_zero(expr, node, values):
        return 0
    raise MathRefusalError("decidable", "could not tell the sign of a value")


def _floor(args: list[Expr], nodes: tuple[MathNode, ...], values: Values) -> Expr:
    floor = floor_of(nodes[0], values)
    if floor is not None:
        return sp.Integer(floor)
    # Bounds never separate a value that is itself an integer; that case has to be proven.
    candidate = sp.floor(args[0])
    if candidate.is_Integer and is_zero(
        args[0] - candidate, subtract(nodes[0], MathNode("number", value=int(candidate))), values
    ):
        return candidate
    raise MathRefusalError("decidable", "could not tell which whole number lies below a value")


def _ceiling(args: list[Expr], nodes: tuple[MathNode, ...], values: Values) -> Expr:
    return -_floor([-args[0]], (MathNode("negative", (nodes[0],)),), values)


def _largest(args: list[Expr], nodes: tuple[MathNode, ...], values: Values) -> Expr:
    best, at = args[0], nodes[0]
    for arg, node in zip(args[1:], nodes[1:], strict=True):
        if sign(arg - best, subtract(node, at), values) > 0:
            best, at = arg, node
    return best


def _smallest(args: list[Expr], nodes: tuple[MathNode, ...], values: Values) -> Expr:
    negated_nodes = tuple(MathNode("negative", (node,)) for node in nodes)
    return -_largest([-arg for arg in args], negated_nodes, values)


EXACT_FUNCTIONS: dict[str, Callable[[list[Expr], tuple[MathNode, ...], Values], Expr]] = {
    "floor": _floor,
    "ceil": _ceiling,
    "ceiling": _ceiling,
    "max": _largest,
    "min": _smallest,
    "sign": lambda args, nodes, values: sp.Integer(sign(args[0], nodes[0], values)),
    "abs": lambda args, nodes, values: args[0] * sign(args[0], nodes[0], values),
}
"""Functions with jumps or kinks, where an approximation is not enough: decided here for real constants."""
