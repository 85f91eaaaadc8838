"""Sums and products over integers: added up, proven by induction, or for a series found by two methods."""

from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp

from qwed.engines._math.assumptions import Fact, Facts
from qwed.engines._math.from_sympy import from_sympy
from qwed.engines._math.numeric_eval import NoValueError, evaluate_numeric
from qwed.engines._math.prover import is_identically_zero, symbols
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import (
    INFINITY,
    ONE,
    ZERO,
    Claim,
    MathNode,
    MathRefusalError,
    add,
    call,
    free_names,
    iter_nodes,
    multiply,
    name_node,
    negate,
    number,
    substitute,
    subtract,
)
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter
from qwed.engines.arithmetic import NotPlainArithmeticError, evaluate_rational

_SECONDS = 2
_MAX_TERMS = 5000
_MAX_SYMBOLIC = 40
_CHECKED_VALUES = 8
_MAX_DEGREE = 30
_MAX_NUMBER = 500


def evaluate_sum(node: MathNode, facts: Facts) -> tuple[MathNode, Facts]:
    """Return the value of a sum or product as a tree, and the facts under which it holds."""
    *_, low, high = node.args
    first = _integer_value(low)
    if first is None:
        raise MathRefusalError("decidable", f"a {node.name} starts at a whole number such as 1")
    if high.kind == "infinity":
        return _series(node, first, facts)
    last = _integer_value(high)
    if last is not None:
        return _finite(node, first, last, facts), facts
    if any(part.kind == "infinity" for part in iter_nodes(high)) or free_names(high) == ():
        raise MathRefusalError("defined", f"a {node.name} ends at a whole number, a name or infinity")
    bound_facts = with_integer_bounds(facts, node)
    return _closed_form(node, first, bound_facts), bound_facts


def _integer_value(node: MathNode) -> int | None:
    try:
        value = evaluate_rational(node)
    except (NotPlainArithmeticError, MathRefusalError):
        return None
    return int(value) if value.denominator == 1 else None


def with_integer_bounds(facts: Facts, node: MathNode) -> Facts:
    """Add the facts that names in the upper bound are integers; a name alone is at least the first index."""
    first, high = _integer_value(node.args[2]) or 0, node.args[3]
    end = _upper_bound(high)
    for name in free_names(high):
        low = Fraction(max(first, 1)) if end is None else Fraction(first - end[1])
        facts = facts.with_fact(name, Fact(integer=True, low=low), f"{name} is an integer >= {low}")
    return facts


def induction_facts(facts: Facts, node: MathNode) -> Facts:
    """Return the facts for the step of an induction: one index after the start of the sum."""
    end = _upper_bound(node.args[3])
    if end is None:
        return facts
    low = Fraction((_integer_value(node.args[2]) or 0) - end[1] + 1)
    return facts.with_fact(end[0], Fact(integer=True, low=low), f"{end[0]} is an integer >= {low}")


def _finite(node: MathNode, first: int, last: int, facts: Facts) -> MathNode:
    body, variable, *_ = node.args
    if last < first - 1:
        raise MathRefusalError("defined", f"a {node.name} from {first} down to {last} has no agreed value")
    if last - first >= _MAX_TERMS:
        if not _is_polynomial(body):
            raise MathRefusalError("within_limits", f"a {node.name} of that kind has at most {_MAX_TERMS} terms here")
        return _closed_form(node, first, facts)
    terms = [substitute(body, variable.name, number(index)) for index in range(first, last + 1)]
    if not free_names(*terms[:1]):
        try:
            values = [evaluate_rational(term) for term in terms]
            total = sum(values) if node.name == "sum" else _multiply_values(values)
            return add(number(total))
        except NotPlainArithmeticError:
            pass
    if len(terms) > _MAX_SYMBOLIC:
        return _closed_form(node, first, facts)
    empty = ZERO if node.name == "sum" else ONE
    return (add if node.name == "sum" else multiply)(empty, *terms)


def _is_polynomial(node: MathNode) -> bool:
    """Return True if a sum of very many such terms may have a closed form."""
    if node.kind == "power":
        exponent = node.args[1]
        return _is_polynomial(node.args[0]) and exponent.kind == "number" and exponent.value in range(_MAX_DEGREE + 1)
    return node.kind in ("number", "name", "sum", "product", "negative") and all(map(_is_polynomial, node.args))


def _multiply_values(values: list[Any]) -> Any:
    total = Fraction(1)
    for value in values:
        total *= value
        if total.numerator.bit_length() > 12_000:
            raise MathRefusalError("within_limits", "the product grows too large: use fewer factors")
    return total


def _closed_form(node: MathNode, first: int, facts: Facts) -> MathNode:
    """Return a closed form: proven by induction if its upper bound is one name, else checked at integers."""
    if any(part.kind == "number" and part.value > _MAX_NUMBER for part in iter_nodes(node.args[0])):
        raise MathRefusalError("decidable", f"could not find a closed form of the {node.name}")
    closed_form = run_within(_SECONDS, _sympy_sum, node, facts)
    if closed_form is None:
        raise MathRefusalError("decidable", f"could not find a closed form of the {node.name}")
    closed_form = _last_branch(closed_form)
    if closed_form.has(sp.Sum, sp.Product, sp.nan, sp.zoo):
        raise MathRefusalError("decidable", f"could not find a closed form of the {node.name}")
    tree = from_sympy(closed_form)
    if not run_within(_SECONDS, _is_inductive, tree, node, facts) and not _is_exact_at_first_values(tree, node, first):
        raise MathRefusalError("decidable", f"could not confirm a closed form of the {node.name}")
    return tree


def _sympy_sum(node: MathNode, facts: Facts) -> Expr:
    body, variable, low, high = node.args
    bound = symbols(free_names(body, high), facts)
    bound[variable.name] = sp.Symbol(variable.name, integer=True, nonnegative=True)
    converter = SympyConverter(bound)
    run = sp.summation if node.name == "sum" else sp.product
    last = sp.oo if high == INFINITY else converter.convert(high)
    return run(converter.convert(body), (bound[variable.name], converter.convert(low), last)).doit()


def _last_branch(closed_form: Expr) -> Expr:
    """Return the general branch of a closed form; it excludes only the zeros of its own denominators."""
    return closed_form.replace(lambda part: part.is_Piecewise, lambda part: part.args[-1].expr)


def induction_claims(node: MathNode, other: MathNode, text: str) -> tuple[Claim, Claim] | None:
    """Return the two claims that prove `node = other`: it holds at the first index, and from each to the next."""
    body, variable, low, high = node.args
    first, end = _integer_value(low), _upper_bound(high)
    if first is None or end is None or end[0] in free_names(body):
        return None
    name, shift = end
    at_first, term = (substitute(body, variable.name, index) for index in (number(first), high))
    before = substitute(other, name, add(name_node(name), number(-1)))
    grown = add(before, term) if node.name == "sum" else multiply(before, term)
    # The base case is the first index: the claim need not hold for the empty sum before it.
    base = Claim(text, substitute(other, name, number(first - shift)), text, "=", at_first, text)
    return base, Claim(text, other, text, "=", grown, text)


def _upper_bound(high: MathNode) -> tuple[str, int] | None:
    """Return the name and the integer added to it if the upper bound has that form, else None."""
    names = free_names(high)
    if len(names) != 1:
        return None
    at = [_integer_value(substitute(high, names[0], number(value))) for value in (0, 1, 5)]
    plain = None not in at and high.kind in ("name", "sum") and at[1:] == [(at[0] or 0) + 1, (at[0] or 0) + 5]
    return (names[0], at[0] or 0) if plain else None


def _is_inductive(tree: MathNode, node: MathNode, facts: Facts) -> bool:
    claims = induction_claims(node, tree, "")
    if claims is None:
        return False
    for claim in claims:
        converter = SympyConverter(symbols(free_names(claim.left, claim.right), induction_facts(facts, node)))
        if claim.right is None or not is_identically_zero(
            converter.convert(claim.left) - converter.convert(claim.right)
        ):
            return False
    return True


def _is_exact_at_first_values(tree: MathNode, node: MathNode, first: int) -> bool:
    """Return True if the closed form is exact at the first few upper bounds; requires a single name."""
    *_, high = node.args
    names = free_names(node)
    if len(names) != 1:
        return False
    for value in range(first, first + _CHECKED_VALUES):
        at, end = (substitute(part, names[0], number(value)) for part in (tree, high))
        last = _integer_value(end)
        if last is None or last > _MAX_TERMS:
            return False
        body = substitute(node.args[0], names[0], number(value)) if node.args[1].name != names[0] else node.args[0]
        exact = _finite(call(node.name, body, *node.args[1:]), first, last, Facts())
        difference = SympyConverter({}).convert(subtract(at, exact))
        if difference != 0 and not is_identically_zero(difference):
            return False
    return True


def _series(node: MathNode, first: int, facts: Facts) -> tuple[MathNode, Facts]:
    value = run_within(_SECONDS, _sympy_sum, call(node.name, *node.args[:2], number(first), INFINITY), facts)
    if value is None or value.has(sp.Product):
        value = run_within(_SECONDS, _limit_of_closed_form, node, first, facts)
    if value is None:
        raise MathRefusalError("decidable", "could not find the value of the series")
    value, series_facts = _convergent_branch(value, facts)
    if value in (sp.oo, -sp.oo):
        return (INFINITY if value == sp.oo else negate(INFINITY)), series_facts
    if value.has(sp.Sum, sp.Product, sp.nan, sp.zoo, sp.Piecewise, sp.oo):
        raise MathRefusalError("decidable", "could not find the value of the series")
    tree = from_sympy(value)
    if not run_within(_SECONDS, _is_confirmed_numerically, tree, node, first, series_facts):
        raise MathRefusalError("decidable", "could not confirm the value of the series")
    return tree, series_facts


def _limit_of_closed_form(node: MathNode, first: int, facts: Facts) -> Expr | None:
    """Return the limit of the closed form of the finite sum or product."""
    end = sp.Symbol("_n", integer=True, positive=True)
    body, variable, *_ = node.args
    bound = symbols(free_names(node), facts)
    bound[variable.name] = sp.Symbol(variable.name, integer=True, nonnegative=True)
    run = sp.summation if node.name == "sum" else sp.product
    closed = sp.simplify(run(SympyConverter(bound).convert(body), (bound[variable.name], first, end)))
    return None if closed.has(sp.Sum, sp.Product) else sp.limit(sp.gammasimp(closed), end, sp.oo)


def _convergent_branch(branches: Expr, facts: Facts) -> tuple[Expr, Facts]:
    """Return the convergent branch of a geometric series, with its condition as a fact."""
    if not branches.is_Piecewise:
        return branches, facts
    value, condition = branches.args[0]
    if not (condition.func is sp.StrictLessThan and condition.lhs.func is sp.Abs and condition.rhs == 1):
        raise MathRefusalError("decidable", "could not tell where the series converges")
    inside = from_sympy(condition.lhs.args[0])
    text = f"{condition.lhs.args[0]}"
    relation = Claim(f"abs({text}) < 1", call("abs", inside), f"abs({text})", "<", ONE, "1")
    joined = f"abs({text}) < 1" if not facts.text else f"{facts.text} and abs({text}) < 1"
    return value, Facts(facts.by_name, (*facts.relations, relation), joined)


def _is_confirmed_numerically(tree: MathNode, node: MathNode, first: int, facts: Facts) -> bool:
    body, variable, *_ = node.args
    names = free_names(node)
    checked = 0
    for value in ("0.3", "-0.45") if names else ("0",):
        point = {name: mp.mpf(value) / (index + 1) for index, name in enumerate(names)}
        if not all(_relation_holds(relation, point) for relation in facts.relations):
            continue
        if not _converges(evaluate_numeric(tree, point), node.name, body, variable.name, first, point):
            return False
        checked += 1
    return checked > 0


def _relation_holds(relation: Claim, point: dict[str, Any]) -> bool:
    return relation.right is not None and bool(
        evaluate_numeric(relation.left, point) < evaluate_numeric(relation.right, point)
    )


def _converges(value: Any, kind: str, body: MathNode, variable: str, first: int, point: dict[str, Any]) -> bool:
    def term(index: Any) -> Any:
        return evaluate_numeric(body, {**point, variable: index}, 80)

    try:
        with mp.workdps(30):
            total = (mp.nsum if kind == "sum" else mp.nprod)(term, [first, mp.inf])
            rough = mp.fsum(term(mp.mpf(index)) for index in range(first, first + 400)) if kind == "sum" else value
    except (NoValueError, ValueError, ArithmeticError, mpmath.libmp.NoConvergence):
        return False
    scale = max(1, abs(value))
    return bool(abs(total - value) < mp.mpf(10) ** -10 * scale and abs(rough - value) < mp.mpf("0.1") * scale)
