"""Whether a claim with variables holds: refuted at exact points, or proven symbolically; never by closeness.

Variables stand for real numbers and functions take their principal values, wherever both sides have one.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import sympy as sp

from qwed.engines._math.answers import HOLDS
from qwed.engines._math.back import tree_of
from qwed.engines._math.cases import holds_by_signs, remainders
from qwed.engines._math.clock import within
from qwed.engines._math.constants import AREAS, as_logarithms, is_zero
from qwed.engines._math.facts import NOTHING, Facts, values_for
from qwed.engines._math.interval import LONG_LOOK, QUICK_LOOK, sign_of
from qwed.engines._math.orders import proves_order
from qwed.engines._math.size import Expr, is_expandable, is_tame
from qwed.engines._math.smt import is_theorem, suspect
from qwed.engines._math.symbolic import Reading, variables_of
from qwed.engines._math.tree import Claim, Node, Refused, minus, names_in, walk

_STRIDES = (1, 3, 5, 9, 11, 13)
_POINTS = 20
_SECONDS = 2


class Finding(NamedTuple):
    """`holds` is None where nothing was proven; a refuted claim may still hold `where` something is assumed."""

    holds: bool | None
    where: str = ""
    counterexample: Mapping[str, str] = {}
    left: str = ""
    right: str = ""


class Sides(NamedTuple):
    """Both sides of a claim under one reading, and the tree of their difference."""

    left: Expr
    right: Expr
    node: Node
    reading: Reading


def decide(claim: Claim, facts: Facts = NOTHING) -> Finding:
    """What is known about the claim at every value of its variables that `facts` allow."""
    names = variables_of(claim)
    real = read(claim, symbols(names, facts))
    constant = _constant_difference(claim, real)
    points = 0
    for point in _points(names, facts):
        holds, sides = _at(claim, point)
        if (holds is False or constant is False) and sides is not None:
            at = {name: str(value) for name, value in point.items()}
            return Finding(
                False, within(1, _narrower, claim, names, facts) or "", at, str(sides.left), str(sides.right)
            )
        points += sides is not None
    # Without one point where both sides have a value, a proof may be about nothing.
    if points == 0:
        return Finding(None)
    if constant:
        return Finding(True, _where(real.reading, names, False, facts))
    if claim.sign == "=":
        return _prove_identity(claim, names, real, facts)
    return _prove_order(claim, names, real, facts)


def _constant_difference(claim: Claim, sides: Sides) -> bool | None:
    """Whether two sides from which every variable cancels are equal: one number decides, and gets a long look."""
    difference = sides.left - sides.right
    if claim.sign != "=" or not difference.is_number or difference.is_Rational:
        return None
    try:
        return is_zero(difference, tree_of(difference), {})
    except Refused:
        return None


def symbols(names: tuple[str, ...], facts: Facts = NOTHING) -> dict[str, Expr]:
    """A symbol for each name that knows what is assumed of it."""
    found = {}
    for name in names:
        fact = facts.about(name)
        known = {fact.sign: True} if fact.sign else {}
        if fact.integer:
            known["integer"] = True
        found[name] = sp.Symbol(name) if fact.complex else sp.Symbol(name, real=True, **known)
    return found


def where_defined(reading: Reading) -> str:
    """The conditions under which the reading has a value, as text."""
    return _where(reading, (), False)


def is_identically_zero(expr: Expr) -> bool:
    """Whether the expression is proven to be zero wherever it is defined."""
    return any(proof(expr) for proof in _PROOFS)


def _prove_identity(claim: Claim, names: tuple[str, ...], real: Sides, facts: Facts) -> Finding:
    plain = read(claim, {name: sp.Symbol(name, integer=facts.about(name).integer or None) for name in names})
    for sides, only_real in ((plain, False), (real, True)):
        if within(_SECONDS, is_identically_zero, sides.left - sides.right):
            return Finding(True, _where(real.reading, names, only_real, facts))
    if any(facts.about(name).complex for name in names):
        return Finding(None)
    if any(proof(claim, names, facts) for proof in _FROM_FACTS):
        return Finding(True, _where(real.reading, names, True, facts))
    return Finding(None)


def _prove_order(claim: Claim, names: tuple[str, ...], real: Sides, facts: Facts) -> Finding:
    if any(facts.about(name).complex for name in names):
        raise Refused("defined", "only real numbers have an order: assume real variables")
    proven = proves_order(claim.sign, real.left - real.right) or any(
        proof(claim, names, facts) for proof in (_is_theorem, _holds_for_remainders)
    )
    if not proven and (refuted := _refuted(claim, names, facts)):
        return refuted
    places = dict.fromkeys([_where(real.reading, names, True, facts), *_real_where(claim, real.reading)])
    return Finding(proven or None, " and ".join(places))


def _refuted(claim: Claim, names: tuple[str, ...], facts: Facts) -> Finding | None:
    """The claim refuted at a point that the solver suspects, if it fails there by exact arithmetic too."""
    found = suspect(claim, facts) or {}
    if set(found) != set(names) or not all(facts.about(name).allows(value) for name, value in found.items()):
        return None
    point = {name: sp.Rational(value.numerator, value.denominator) for name, value in found.items()}
    holds, sides = _at(claim, point)
    if holds is not False or sides is None:
        return None
    return Finding(False, "", {name: str(value) for name, value in point.items()}, str(sides.left), str(sides.right))


def _holds_from_its_bounds(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    """The same proof with each bounded variable written as its bound plus something of known sign."""
    moved = symbols(names, facts)
    changed = False
    for name in names:
        fact = facts.about(name)
        bound, way = (fact.low, 1) if fact.low is not None else (fact.high, -1)
        if bound:
            strict = fact.above if way == 1 else fact.below
            step = sp.Symbol(f"_{name}", **{"positive" if strict else "nonnegative": True})
            moved[name] = sp.Rational(bound.numerator, bound.denominator) + way * step
            changed = True
    if not changed:
        return False
    sides = read(claim, moved)
    return bool(within(_SECONDS, is_identically_zero, sides.left - sides.right))


def _is_theorem(claim: Claim, _names: tuple[str, ...], facts: Facts) -> bool:
    return is_theorem(claim, facts)


def _holds_by_signs(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    return bool(within(_SECONDS, holds_by_signs, claim, names, facts, is_identically_zero))


def _holds_for_remainders(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    points = remainders(claim, names, facts)
    return points is not None and all(_at(claim, point)[0] for point in points)


_FROM_FACTS = (
    _holds_from_its_bounds,
    _is_theorem,
    _holds_for_remainders,
    _holds_by_signs,
)
"""Proofs that rest on what the variables may be."""


def _narrower(claim: Claim, names: tuple[str, ...], facts: Facts) -> str:
    """The usual narrower ground on which a refuted identity holds after all, or nothing."""
    if claim.sign != "=" or facts.text or len(names) > 4 or sum(1 for _ in walk(minus(claim.left, claim.left))) > 80:
        return ""
    try:
        sides = read(claim, {name: sp.Symbol(name, positive=True) for name in names})
    except Refused:
        return ""
    difference = sides.left - sides.right
    proven = _expands_to_zero(difference) or (is_tame(difference) and sp.expand_log(difference) == 0)
    return " and ".join(f"{name} > 0" for name in names) if proven else ""


def read(claim: Claim, names: Mapping[str, Expr]) -> Sides:
    """Both sides with the variables bound to `names`."""
    reading = Reading(names)
    if claim.right is None:
        raise Refused("decidable", "there is no claim to decide")
    node = minus(claim.left, claim.right)
    return Sides(reading.of(claim.left), reading.of(claim.right), node, reading)


def _points(names: tuple[str, ...], facts: Facts) -> Iterator[dict[str, Expr]]:
    choices = {name: values_for(facts.about(name)) for name in names}
    below = {name: tuple(value for value in values if value < 0) for name, values in choices.items()}
    for step in range(_POINTS):
        # Many slips, those about branches first, show only where all variables are negative.
        point = _chosen(below if step % 5 == 2 and all(below.values()) else choices, step)
        if point and all(_at(relation, point)[0] for relation in facts.relations):
            yield point
    if any(facts.about(name).complex for name in names):
        yield {name: 1 - index - (index + 2) * sp.I for index, name in enumerate(names)}
        yield {name: -3 * index - 2 + sp.I for index, name in enumerate(names)}


def _chosen(choices: Mapping[str, tuple[Fraction, ...]], step: int) -> dict[str, Expr]:
    point = {}
    for index, (name, values) in enumerate(choices.items()):
        if not values:
            return {}
        value = values[(step * _STRIDES[index % len(_STRIDES)] + index) % len(values)]
        point[name] = sp.Rational(value.numerator, value.denominator)
    return point


def _at(claim: Claim, point: Mapping[str, Expr]) -> tuple[bool | None, Sides | None]:
    """Whether the claim holds at the point, None where that is not plain, and the sides where they have values."""
    try:
        sides = read(claim, point)
        return compare(claim.sign, sides, thorough=False), sides
    except Refused:
        return None, None


def compare(sign: str, sides: Sides, thorough: bool = True) -> bool | None:
    """Whether the claim about two constants holds, None where it could not be told; Refused for no order."""
    if sign not in ("=", "!=") and False in (sides.left.is_real, sides.right.is_real):
        raise Refused("defined", "only real numbers have an order: a side of the claim is not real")
    difference = sides.left - sides.right
    zero = is_zero(difference, sides.node, sides.reading.values, thorough)
    if zero is None:
        return None
    if zero or sign == "=":
        return HOLDS[sign](0 if zero else 1)
    return _compare_unequal(sign, sides, difference, LONG_LOOK if thorough else QUICK_LOOK)


def _compare_unequal(sign: str, sides: Sides, difference: Expr, looks: tuple[int, ...]) -> bool | None:
    """An order, or a claimed difference: only what bounds or exact numbers say is good enough."""
    side = sign_of(sides.node, sides.reading.values, looks)
    if side:
        return HOLDS[sign](side)
    ordered = sign == "!=" or (sides.left.is_real and sides.right.is_real)
    return HOLDS[sign](difference) if difference.is_Rational and ordered else None


def _expands_to_zero(expr: Expr) -> bool:
    return bool(expr == 0 or (is_expandable(expr) and sp.expand(expr) == 0))


def _cancels_to_zero(expr: Expr) -> bool:
    if not is_expandable(expr):
        return False
    above, _below = sp.fraction(sp.together(expr))
    return bool(is_expandable(above) and sp.expand(above) == 0)


def _cancels_as_exponentials(expr: Expr) -> bool:
    """Trigonometry by Euler's formulas, under which most of its identities are plain algebra."""
    if not is_tame(expr) or not expr.has(*_EXPONENTIAL):
        return False
    return _cancels_to_zero(sp.expand(expr.rewrite(_EXPONENTIAL, sp.exp)))


def _cancels_as_logarithms(expr: Expr) -> bool:
    if not is_tame(expr) or not expr.has(*AREAS):
        return False
    return _cancels_to_zero(sp.expand_log(as_logarithms(expr)))


def _simplifies_to_zero(expr: Expr) -> bool:
    if not is_tame(expr):
        return False
    if expr.has(sp.acos):
        expr = expr.replace(sp.acos, lambda inside: sp.pi / 2 - sp.asin(inside))
    return bool(sp.simplify(expr) == 0 or sp.expand(expr, func=True, trig=True) == 0)


_EXPONENTIAL = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh, sp.tanh)
_PROOFS = (_expands_to_zero, _cancels_to_zero, _cancels_as_exponentials, _cancels_as_logarithms, _simplifies_to_zero)
"""Cheapest first."""


_NEVER_ZERO = (sp.factorial, sp.gamma)


def _where(reading: Reading, names: tuple[str, ...], only_real: bool, facts: Facts = NOTHING) -> str:
    found = [facts.text] if facts.text else []
    if only_real and not facts.text:
        found = [f"{name} is real" for name in names]
    for expr in reading.nonzero:
        for factor in sp.Mul.make_args(expr):
            base = factor.as_base_exp()[0]
            base = base.args[0] if base.func is sp.Abs else base
            if not (base.is_number or base.is_nonzero or base.func in _NEVER_ZERO):
                found.append(_not_zero(base))
    found += [f"{expr} is defined" for expr in reading.defined]
    return " and ".join(dict.fromkeys(found))


def _real_where(claim: Claim, reading: Reading) -> Iterator[str]:
    """Where the roots and logarithms of a claim are real, as only real numbers have an order."""
    for node in (part for side in (claim.left, claim.right) if side is not None for part in walk(side)):
        if node.kind == "call" and node.name in _REAL_WHERE and names_in(node):
            yield f"{reading.of(node.args[0])} {_REAL_WHERE[node.name]}"


_REAL_WHERE = {
    "sqrt": ">= 0",
    **dict.fromkeys(("ln", "log", "log2", "log10"), "> 0"),
    **dict.fromkeys(("asin", "acos", "atanh"), "is between -1 and 1"),
    "acosh": ">= 1",
}


def _not_zero(base: Expr) -> str:
    """`x != 1` for `x - 1`, as it is for anything linear in one variable."""
    if len(base.free_symbols) == 1 and base.is_Add:
        (symbol,) = base.free_symbols
        slope = base.coeff(symbol)
        rest = sp.expand(base - slope * symbol)
        if slope.is_Rational and rest.is_Rational:
            return f"{symbol} != {-rest / slope}"
    return f"{base} != 0"
