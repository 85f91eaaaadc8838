"""Prover for claims with variables: refuted at exact points, or proven symbolically; never by approximation.

Variables stand for real numbers and functions take their principal values, wherever both sides have one.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.assumptions import NO_FACTS, Facts, values_for
from qwed.engines._math.case_proofs import holds_by_signs, residue_points
from qwed.engines._math.constant_sign import INVERSE_HYPERBOLIC, as_logarithms, is_zero
from qwed.engines._math.from_sympy import from_sympy
from qwed.engines._math.interval import QUICK_PRECISIONS, THOROUGH_PRECISIONS, sign_of
from qwed.engines._math.messages import HOLDS
from qwed.engines._math.size_limits import Expr, is_expandable, is_tame
from qwed.engines._math.smt import find_counterexample, is_theorem
from qwed.engines._math.syntax_tree import Claim, MathNode, MathRefusalError, free_names, iter_nodes, subtract
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter, variables_of

_STRIDES = (1, 3, 5, 9, 11, 13)
_POINTS = 20
_SECONDS = 2


class ProofResult(NamedTuple):
    """Result of a proof attempt.

    `holds` is None if nothing was proven; a refuted claim may still hold under the assumptions in `where`.
    """

    holds: bool | None
    where: str = ""
    counterexample: Mapping[str, str] = {}
    left: str = ""
    right: str = ""


class Sides(NamedTuple):
    """Both sides of a claim as sympy expressions, the tree of their difference, and the converter."""

    left: Expr
    right: Expr
    node: MathNode
    converter: SympyConverter


def decide(claim: Claim, facts: Facts = NO_FACTS) -> ProofResult:
    """Prove or refute the claim for all values of its variables that `facts` allow."""
    names = variables_of(claim)
    real = convert_sides(claim, symbols(names, facts))
    constant = _constant_difference(claim, real)
    points = 0
    for point in _points(names, facts):
        holds, sides = _evaluate_at(claim, point)
        if (holds is False or constant is False) and sides is not None:
            at = {name: str(value) for name, value in point.items()}
            return ProofResult(
                False, run_within(1, _narrower_domain, claim, names, facts) or "", at, str(sides.left), str(sides.right)
            )
        points += sides is not None
    # Without a point where both sides have a value, a proof could be vacuous.
    if points == 0:
        return ProofResult(None)
    if constant:
        return ProofResult(True, _domain_text(real.converter, names, False, facts))
    if claim.sign == "=":
        return _prove_identity(claim, names, real, facts)
    return _prove_order(claim, names, real, facts)


def _constant_difference(claim: Claim, sides: Sides) -> bool | None:
    """Return True or False if all variables cancel and the sides are equal or not, None otherwise.

    One constant decides the claim, so it gets the thorough check.
    """
    difference = sides.left - sides.right
    if claim.sign != "=" or not difference.is_number or difference.is_Rational:
        return None
    try:
        return is_zero(difference, from_sympy(difference), {})
    except MathRefusalError:
        return None


def symbols(names: tuple[str, ...], facts: Facts = NO_FACTS) -> dict[str, Expr]:
    """Return a sympy symbol for each name, with its assumptions."""
    symbols_by_name = {}
    for name in names:
        fact = facts.about(name)
        symbol_assumptions = {fact.sign: True} if fact.sign else {}
        if fact.integer:
            symbol_assumptions["integer"] = True
        symbols_by_name[name] = sp.Symbol(name) if fact.complex else sp.Symbol(name, real=True, **symbol_assumptions)
    return symbols_by_name


def where_defined(converter: SympyConverter) -> str:
    """Return the conditions under which the converted tree has a value, as text."""
    return _domain_text(converter, (), False)


def is_identically_zero(expr: Expr) -> bool:
    """Return True if the expression is proven to be zero wherever it is defined."""
    return any(proof(expr) for proof in _PROOFS)


def _prove_identity(claim: Claim, names: tuple[str, ...], real: Sides, facts: Facts) -> ProofResult:
    unrestricted = convert_sides(
        claim, {name: sp.Symbol(name, integer=facts.about(name).integer or None) for name in names}
    )
    for sides, only_real in ((unrestricted, False), (real, True)):
        if run_within(_SECONDS, is_identically_zero, sides.left - sides.right):
            return ProofResult(True, _domain_text(real.converter, names, only_real, facts))
    if any(facts.about(name).complex for name in names):
        return ProofResult(None)
    if any(proof(claim, names, facts) for proof in _FACT_PROOFS):
        return ProofResult(True, _domain_text(real.converter, names, True, facts))
    return ProofResult(None)


def _prove_order(claim: Claim, names: tuple[str, ...], real: Sides, facts: Facts) -> ProofResult:
    if any(facts.about(name).complex for name in names):
        raise MathRefusalError("defined", "only real numbers have an order: assume real variables")
    proven = _proves_order(claim.sign, real.left - real.right) or any(
        proof(claim, names, facts) for proof in (_is_theorem, _holds_for_remainders)
    )
    if not proven and (refuted := _refute_with_solver(claim, names, facts)):
        return refuted
    conditions = dict.fromkeys([_domain_text(real.converter, names, True, facts), *_real_domain(claim, real.converter)])
    return ProofResult(proven or None, " and ".join(conditions))


def _proves_order(sign: str, difference: Expr) -> bool:
    """Return True if the comparison of `difference` with zero is proven for all values of its symbols."""
    # sympy takes the sign of such a constant from an approximation, which is not a proof.
    if any(part.is_number and part.is_Function for part in sp.preorder_traversal(difference)):
        return False
    if sign == "!=":
        return bool(difference.is_nonzero or sp.expand(difference).is_nonzero)
    low = difference if sign in (">", ">=") else -difference
    if not is_expandable(low):
        return False
    has_sign: Callable[[Expr], Any] = (lambda e: e.is_positive) if sign in (">", "<") else (lambda e: e.is_nonnegative)
    return any(has_sign(form(low)) is True for form in (sp.expand, sp.factor)) or _is_above(low, sign in (">", "<"))


def _is_above(expr: Expr, strictly: bool) -> bool:
    """Count real roots: return True if a polynomial in one variable is never negative (or zero, if `strictly`)."""
    try:
        polynomial = sp.Poly(expr, domain=sp.QQ)
    except BasePolynomialError:
        return False
    if len(polynomial.gens) != 1 or polynomial.degree() > 50 or polynomial.LC() < 0:
        return False
    if strictly:
        return bool(polynomial.count_roots() == 0)
    return all(factor.count_roots() == 0 for factor, times in polynomial.sqf_list()[1] if times % 2)


def _refute_with_solver(claim: Claim, names: tuple[str, ...], facts: Facts) -> ProofResult | None:
    """Refute the claim at a point that the solver proposes, if it fails there by exact arithmetic too."""
    candidate = find_counterexample(claim, facts) or {}
    if set(candidate) != set(names) or not all(facts.about(name).allows(value) for name, value in candidate.items()):
        return None
    point = {name: sp.Rational(value.numerator, value.denominator) for name, value in candidate.items()}
    holds, sides = _evaluate_at(claim, point)
    if holds is not False or sides is None:
        return None
    return ProofResult(
        False, "", {name: str(value) for name, value in point.items()}, str(sides.left), str(sides.right)
    )


def _holds_from_its_bounds(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    """Try the identity proof with each bounded variable written as its bound plus a term of known sign."""
    shifted = symbols(names, facts)
    changed = False
    for name in names:
        fact = facts.about(name)
        bound, direction = (fact.low, 1) if fact.low is not None else (fact.high, -1)
        if bound:
            strict = fact.above if direction == 1 else fact.below
            step = sp.Symbol(f"_{name}", **{"positive" if strict else "nonnegative": True})
            shifted[name] = sp.Rational(bound.numerator, bound.denominator) + direction * step
            changed = True
    if not changed:
        return False
    sides = convert_sides(claim, shifted)
    return bool(run_within(_SECONDS, is_identically_zero, sides.left - sides.right))


def _is_theorem(claim: Claim, _names: tuple[str, ...], facts: Facts) -> bool:
    return is_theorem(claim, facts)


def _holds_by_signs(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    return bool(run_within(_SECONDS, holds_by_signs, claim, names, facts, is_identically_zero))


def _holds_for_remainders(claim: Claim, names: tuple[str, ...], facts: Facts) -> bool:
    points = residue_points(claim, names, facts)
    return points is not None and all(_evaluate_at(claim, point)[0] for point in points)


_FACT_PROOFS = (
    _holds_from_its_bounds,
    _is_theorem,
    _holds_for_remainders,
    _holds_by_signs,
)
"""Proofs that use the assumptions about the variables."""


def _narrower_domain(claim: Claim, names: tuple[str, ...], facts: Facts) -> str:
    """Return the positive domain on which a refuted identity still holds, as text, or the empty string."""
    if (
        claim.sign != "="
        or facts.text
        or len(names) > 4
        or sum(1 for _ in iter_nodes(subtract(claim.left, claim.left))) > 80
    ):
        return ""
    try:
        sides = convert_sides(claim, {name: sp.Symbol(name, positive=True) for name in names})
    except MathRefusalError:
        return ""
    difference = sides.left - sides.right
    proven = _expands_to_zero(difference) or (is_tame(difference) and sp.expand_log(difference) == 0)
    return " and ".join(f"{name} > 0" for name in names) if proven else ""


def convert_sides(claim: Claim, names: Mapping[str, Expr]) -> Sides:
    """Convert both sides with the variables bound to `names`."""
    converter = SympyConverter(names)
    if claim.right is None:
        raise MathRefusalError("decidable", "there is no claim to decide")
    node = subtract(claim.left, claim.right)
    return Sides(converter.convert(claim.left), converter.convert(claim.right), node, converter)


def _points(names: tuple[str, ...], facts: Facts) -> Iterator[dict[str, Expr]]:
    choices = {name: values_for(facts.about(name)) for name in names}
    below = {name: tuple(value for value in values if value < 0) for name, values in choices.items()}
    for step in range(_POINTS):
        # Many errors, mainly those about branches, show only where all variables are negative.
        point = _choose_point(below if step % 5 == 2 and all(below.values()) else choices, step)
        if point and all(_evaluate_at(relation, point)[0] for relation in facts.relations):
            yield point
    if any(facts.about(name).complex for name in names):
        yield {name: 1 - index - (index + 2) * sp.I for index, name in enumerate(names)}
        yield {name: -3 * index - 2 + sp.I for index, name in enumerate(names)}


def _choose_point(choices: Mapping[str, tuple[Fraction, ...]], step: int) -> dict[str, Expr]:
    point = {}
    for index, (name, values) in enumerate(choices.items()):
        if not values:
            return {}
        value = values[(step * _STRIDES[index % len(_STRIDES)] + index) % len(values)]
        point[name] = sp.Rational(value.numerator, value.denominator)
    return point


def _evaluate_at(claim: Claim, point: Mapping[str, Expr]) -> tuple[bool | None, Sides | None]:
    """Return whether the claim holds at the point (None if unknown) and the sides (None if undefined there)."""
    try:
        sides = convert_sides(claim, point)
        return compare(claim.sign, sides, thorough=False), sides
    except MathRefusalError:
        return None, None


def compare(sign: str, sides: Sides, thorough: bool = True) -> bool | None:
    """Return whether the claim about two constants holds, None if unknown; refuse an order of complex numbers."""
    if sign not in ("=", "!=") and False in (sides.left.is_real, sides.right.is_real):
        raise MathRefusalError("defined", "only real numbers have an order: a side of the claim is not real")
    difference = sides.left - sides.right
    zero = is_zero(difference, sides.node, sides.converter.values, thorough)
    if zero is None:
        return None
    if zero or sign == "=":
        return HOLDS[sign](0 if zero else 1)
    return _compare_unequal(sign, sides, difference, THOROUGH_PRECISIONS if thorough else QUICK_PRECISIONS)


def _compare_unequal(sign: str, sides: Sides, difference: Expr, looks: tuple[int, ...]) -> bool | None:
    """Decide an order or an inequality from interval bounds or exact numbers only."""
    side = sign_of(sides.node, sides.converter.values, looks)
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
    """Rewrite trigonometric functions by Euler's formulas; most identities become plain algebra."""
    if not is_tame(expr) or not expr.has(*_EXPONENTIAL):
        return False
    return _cancels_to_zero(sp.expand(expr.rewrite(_EXPONENTIAL, sp.exp)))


def _cancels_as_logarithms(expr: Expr) -> bool:
    if not is_tame(expr) or not expr.has(*INVERSE_HYPERBOLIC):
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
"""Proof methods, cheapest first."""


_NEVER_ZERO = (sp.factorial, sp.gamma)


def _domain_text(converter: SympyConverter, names: tuple[str, ...], only_real: bool, facts: Facts = NO_FACTS) -> str:
    conditions = [facts.text] if facts.text else []
    if only_real and not facts.text:
        conditions = [f"{name} is real" for name in names]
    for expr in converter.nonzero:
        for factor in sp.Mul.make_args(expr):
            base = factor.as_base_exp()[0]
            base = base.args[0] if base.func is sp.Abs else base
            if not (base.is_number or base.is_nonzero or base.func in _NEVER_ZERO):
                conditions.append(_nonzero_text(base))
    conditions += [f"{expr} is defined" for expr in converter.defined]
    return " and ".join(dict.fromkeys(conditions))


def _real_domain(claim: Claim, converter: SympyConverter) -> Iterator[str]:
    """Yield the conditions under which roots and logarithms of a claim are real; only reals have an order."""
    for node in (part for side in (claim.left, claim.right) if side is not None for part in iter_nodes(side)):
        if node.kind == "call" and node.name in _REAL_DOMAINS and free_names(node):
            yield f"{converter.convert(node.args[0])} {_REAL_DOMAINS[node.name]}"


_REAL_DOMAINS = {
    "sqrt": ">= 0",
    **dict.fromkeys(("ln", "log", "log2", "log10"), "> 0"),
    **dict.fromkeys(("asin", "acos", "atanh"), "is between -1 and 1"),
    "acosh": ">= 1",
}


def _nonzero_text(base: Expr) -> str:
    """Return the condition as text, as `x != 1` for `x - 1` and other linear terms in one variable."""
    if len(base.free_symbols) == 1 and base.is_Add:
        (symbol,) = base.free_symbols
        slope = base.coeff(symbol)
        rest = sp.expand(base - slope * symbol)
        if slope.is_Rational and rest.is_Rational:
            return f"{symbol} != {-rest / slope}"
    return f"{base} != 0"
