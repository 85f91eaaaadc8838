"""Questions about constants whose answers must be certain: is it zero, which is larger, what is below it."""

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

from qwed.engines._math.answers import division_by_zero
from qwed.engines._math.interval import LONG_LOOK, QUICK_LOOK, Values, floor_of, sign_of
from qwed.engines._math.size import Expr, is_tame, terms
from qwed.engines._math.tree import Node, Refused, minus

AREAS = (sp.asinh, sp.acosh, sp.atanh)


def is_zero(expr: Expr, node: Node, values: Values, thorough: bool = True) -> bool | None:
    """Whether a constant is zero; None where that could not be told, sooner unless `thorough`."""
    sign = sign_of(node, values, LONG_LOOK if thorough else QUICK_LOOK)
    if sign:
        return False
    if expr.is_Rational:
        return bool(expr == 0)
    # Numeric evaluation speaks only where there are no bounds to contradict it.
    if sign is None and _is_clearly_nonzero(expr):
        return False
    if thorough and _turns_to_zero(expr, node, values):
        return True
    return True if thorough and terms(expr) <= 200 and _is_proven_zero(expr) else None


def _is_proven_zero(expr: Expr) -> bool:
    if sp.expand(expr) == 0:
        return True
    return is_tame(expr) and (sp.expand_log(as_logarithms(expr)) == 0 or sp.simplify(expr) == 0)


def as_logarithms(expr: Expr) -> Expr:
    """The expression with inverse hyperbolic functions and complex powers by the logarithms that define them."""
    expr = expr.rewrite(AREAS, sp.log)
    return expr.replace(
        lambda part: part.is_Pow and part.is_number and part.base is not sp.E and part.exp.is_real is False,
        lambda part: sp.exp(part.exp * sp.log(part.base)),
    )


def _turns_to_zero(expr: Expr, node: Node, values: Values) -> bool:
    """Sums of whole multiples of `atan` of fractions and of pi/4, as Machin's: a product of complex numbers is real."""
    turn = sp.S.One
    for term in sp.Add.make_args(expr):
        times, rest = term.as_coeff_Mul()
        slope = sp.S.One if rest is sp.pi else rest.args[0] if rest.func is sp.atan else None
        count = times * 4 if rest is sp.pi else times
        if slope is None or not slope.is_Rational or not count.is_Integer or abs(count) > 100:
            return False
        turn = sp.expand(turn * (1 + sp.I * slope * sp.sign(count)) ** abs(count))
    half = Node("number", value=Fraction(1, 2))
    inside = sign_of(minus(node, half), values) == -1 and sign_of(minus(half, Node("negative", (node,))), values) == 1
    return bool(inside and sp.im(turn) == 0)


def _is_clearly_nonzero(number: Expr) -> bool:
    # sympy keeps track of the digits it is sure of and says precision 1 where there are none;
    # two precisions that agree guard against a slip in that bookkeeping.
    coarse, fine = number.evalf(15), number.evalf(45)
    for part, again in zip(coarse.as_real_imag(), fine.as_real_imag(), strict=True):
        sure = part.is_Float and again.is_Float and min(part._prec, again._prec) > 1
        if sure and again != 0 and abs(part / again - 1) < 1e-9:
            return True
    return False


def require_nonzero(expr: Expr, node: Node, values: Values, refusal: Refused | None = None) -> None:
    """Refused for zero, as a division by it unless said otherwise, or as undecided where that cannot be told."""
    zero = is_zero(expr, node, values)
    if zero:
        raise refusal or division_by_zero()
    if zero is None:
        raise Refused("decidable", "could not tell whether a divisor is zero")


def sign(expr: Expr, node: Node, values: Values) -> int:
    """-1, 0 or 1 for a real constant; Refused where it cannot be told."""
    known = sign_of(node, values)
    if known:
        return known
    if is_zero(expr, node, values):
        return 0
    raise Refused("decidable", "could not tell the sign of a value")


def _floor(args: list[Expr], nodes: tuple[Node, ...], values: Values) -> Expr:
    below = floor_of(nodes[0], values)
    if below is not None:
        return sp.Integer(below)
    # Bounds never close in on a value that is whole itself; that one has to be proven.
    whole = sp.floor(args[0])
    if whole.is_Integer and is_zero(args[0] - whole, minus(nodes[0], Node("number", value=int(whole))), values):
        return whole
    raise Refused("decidable", "could not tell which whole number lies below a value")


def _ceiling(args: list[Expr], nodes: tuple[Node, ...], values: Values) -> Expr:
    return -_floor([-args[0]], (Node("negative", (nodes[0],)),), values)


def _largest(args: list[Expr], nodes: tuple[Node, ...], values: Values) -> Expr:
    best, at = args[0], nodes[0]
    for arg, node in zip(args[1:], nodes[1:], strict=True):
        if sign(arg - best, minus(node, at), values) > 0:
            best, at = arg, node
    return best


def _smallest(args: list[Expr], nodes: tuple[Node, ...], values: Values) -> Expr:
    turned = tuple(Node("negative", (node,)) for node in nodes)
    return -_largest([-arg for arg in args], turned, values)


CERTAIN: dict[str, Callable[[list[Expr], tuple[Node, ...], Values], Expr]] = {
    "floor": _floor,
    "ceil": _ceiling,
    "ceiling": _ceiling,
    "max": _largest,
    "min": _smallest,
    "sign": lambda args, nodes, values: sp.Integer(sign(args[0], nodes[0], values)),
    "abs": lambda args, nodes, values: args[0] * sign(args[0], nodes[0], values),
}
"""Functions that jump or turn, so a value that is only close is no value: of real constants, decided here."""
