"""Sums and products over whole numbers: added up, or a closed form proven by induction, or a series found twice."""

from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp

from qwed.engines._math.back import tree_of
from qwed.engines._math.clock import within
from qwed.engines._math.facts import Fact, Facts
from qwed.engines._math.identity import is_identically_zero, symbols
from qwed.engines._math.numeric import NoNumber, near
from qwed.engines._math.size import Expr
from qwed.engines._math.symbolic import Reading
from qwed.engines._math.tree import (
    INFINITY,
    ONE,
    ZERO,
    Claim,
    Node,
    Refused,
    added,
    call,
    minus,
    named,
    names_in,
    negated,
    number,
    replaced,
    times,
    walk,
)
from qwed.engines.arithmetic import NotQuick, rational

_SECONDS = 2
_MAX_TERMS = 5000
_MAX_SYMBOLIC = 40
_CHECKED = 8
_MAX_DEGREE = 30
_MAX_NUMBER = 500


def totalled(node: Node, facts: Facts) -> tuple[Node, Facts]:
    """The value of a sum or product as a tree, and the facts that it holds under."""
    *_, low, high = node.args
    first = _whole(low)
    if first is None:
        raise Refused("decidable", f"a {node.name} starts at a whole number such as 1")
    if high.kind == "infinity":
        return _series(node, first, facts)
    last = _whole(high)
    if last is not None:
        return _finite(node, first, last, facts), facts
    if any(part.kind == "infinity" for part in walk(high)) or names_in(high) == ():
        raise Refused("defined", f"a {node.name} ends at a whole number, a name or infinity")
    known = with_whole(facts, node)
    return _closed(node, first, known), known


def _whole(node: Node) -> int | None:
    try:
        value = rational(node)
    except (NotQuick, Refused):
        return None
    return int(value) if value.denominator == 1 else None


def with_whole(facts: Facts, node: Node) -> Facts:
    """The names in the upper end are whole; a name alone is at least the first index."""
    first, high = _whole(node.args[2]) or 0, node.args[3]
    end = _end(high)
    for name in names_in(high):
        low = Fraction(max(first, 1)) if end is None else Fraction(first - end[1])
        facts = facts.known(name, Fact(integer=True, low=low), f"{name} is an integer >= {low}")
    return facts


def after_first(facts: Facts, node: Node) -> Facts:
    """The facts for the step of an induction: one index further than where the sum begins."""
    end = _end(node.args[3])
    if end is None:
        return facts
    low = Fraction((_whole(node.args[2]) or 0) - end[1] + 1)
    return facts.known(end[0], Fact(integer=True, low=low), f"{end[0]} is an integer >= {low}")


def _finite(node: Node, first: int, last: int, facts: Facts) -> Node:
    body, variable, *_ = node.args
    if last < first - 1:
        raise Refused("defined", f"a {node.name} from {first} down to {last} has no agreed value")
    if last - first >= _MAX_TERMS:
        if not _is_polynomial(body):
            raise Refused("within_limits", f"a {node.name} of that kind has at most {_MAX_TERMS} terms here")
        return _closed(node, first, facts)
    terms = [replaced(body, variable.name, number(index)) for index in range(first, last + 1)]
    if not names_in(*terms[:1]):
        try:
            values = [rational(term) for term in terms]
            total = sum(values) if node.name == "sum" else _multiplied(values)
            return added(number(total))
        except NotQuick:
            pass
    if len(terms) > _MAX_SYMBOLIC:
        return _closed(node, first, facts)
    empty = ZERO if node.name == "sum" else ONE
    return (added if node.name == "sum" else times)(empty, *terms)


def _is_polynomial(node: Node) -> bool:
    """Whether a sum of very many such terms has a closed form worth looking for."""
    if node.kind == "power":
        exponent = node.args[1]
        return _is_polynomial(node.args[0]) and exponent.kind == "number" and exponent.value in range(_MAX_DEGREE + 1)
    return node.kind in ("number", "name", "sum", "product", "negative") and all(map(_is_polynomial, node.args))


def _multiplied(values: list[Any]) -> Any:
    total = Fraction(1)
    for value in values:
        total *= value
        if total.numerator.bit_length() > 12_000:
            raise Refused("within_limits", "the product grows too large: use fewer factors")
    return total


def _closed(node: Node, first: int, facts: Facts) -> Node:
    """A closed form: proven by induction where its end is one name, else checked at whole numbers."""
    if any(part.kind == "number" and part.value > _MAX_NUMBER for part in walk(node.args[0])):
        raise Refused("decidable", f"could not find a closed form of the {node.name}")
    found = within(_SECONDS, _summed, node, facts)
    if found is None:
        raise Refused("decidable", f"could not find a closed form of the {node.name}")
    found = _last_branch(found)
    if found.has(sp.Sum, sp.Product, sp.nan, sp.zoo):
        raise Refused("decidable", f"could not find a closed form of the {node.name}")
    tree = tree_of(found)
    if not within(_SECONDS, _is_inductive, tree, node, facts) and not _is_right_at_first(tree, node, first):
        raise Refused("decidable", f"could not confirm a closed form of the {node.name}")
    return tree


def _summed(node: Node, facts: Facts) -> Expr:
    body, variable, low, high = node.args
    bound = symbols(names_in(body, high), facts)
    bound[variable.name] = sp.Symbol(variable.name, integer=True, nonnegative=True)
    reading = Reading(bound)
    run = sp.summation if node.name == "sum" else sp.product
    last = sp.oo if high == INFINITY else reading.of(high)
    return run(reading.of(body), (bound[variable.name], reading.of(low), last)).doit()


def _last_branch(found: Expr) -> Expr:
    """The general branch of a closed form; what it leaves out are the zeros of its own denominators."""
    return found.replace(lambda part: part.is_Piecewise, lambda part: part.args[-1].expr)


def induction(node: Node, other: Node, text: str) -> tuple[Claim, Claim] | None:
    """The two claims that prove `node = other`: it holds at the first index, and from each to the next."""
    body, variable, low, high = node.args
    first, end = _whole(low), _end(high)
    if first is None or end is None or end[0] in names_in(body):
        return None
    name, shift = end
    at_first, term = (replaced(body, variable.name, index) for index in (number(first), high))
    before = replaced(other, name, added(named(name), number(-1)))
    grown = added(before, term) if node.name == "sum" else times(before, term)
    # The sum up to one index before the first is empty, and the claim need not say what that is.
    base = Claim(text, replaced(other, name, number(first - shift)), text, "=", at_first, text)
    return base, Claim(text, other, text, "=", grown, text)


def _end(high: Node) -> tuple[str, int] | None:
    """`n` and the whole number that is added to it, where the end of a sum is that."""
    names = names_in(high)
    if len(names) != 1:
        return None
    at = [_whole(replaced(high, names[0], number(value))) for value in (0, 1, 5)]
    plain = None not in at and high.kind in ("name", "sum") and at[1:] == [(at[0] or 0) + 1, (at[0] or 0) + 5]
    return (names[0], at[0] or 0) if plain else None


def _is_inductive(tree: Node, node: Node, facts: Facts) -> bool:
    claims = induction(node, tree, "")
    if claims is None:
        return False
    for claim in claims:
        reading = Reading(symbols(names_in(claim.left, claim.right), after_first(facts, node)))
        if claim.right is None or not is_identically_zero(reading.of(claim.left) - reading.of(claim.right)):
            return False
    return True


def _is_right_at_first(tree: Node, node: Node, first: int) -> bool:
    """Whether the closed form is exact at the first few ends, for one name alone."""
    *_, high = node.args
    names = names_in(node)
    if len(names) != 1:
        return False
    for value in range(first, first + _CHECKED):
        at, end = (replaced(part, names[0], number(value)) for part in (tree, high))
        last = _whole(end)
        if last is None or last > _MAX_TERMS:
            return False
        body = replaced(node.args[0], names[0], number(value)) if node.args[1].name != names[0] else node.args[0]
        exact = _finite(call(node.name, body, *node.args[1:]), first, last, Facts())
        difference = Reading({}).of(minus(at, exact))
        if difference != 0 and not is_identically_zero(difference):
            return False
    return True


def _series(node: Node, first: int, facts: Facts) -> tuple[Node, Facts]:
    found = within(_SECONDS, _summed, call(node.name, *node.args[:2], number(first), INFINITY), facts)
    if found is None or found.has(sp.Product):
        found = within(_SECONDS, _limit_of_closed, node, first, facts)
    if found is None:
        raise Refused("decidable", "could not find the value of the series")
    found, known = _convergent(found, facts)
    if found in (sp.oo, -sp.oo):
        return (INFINITY if found == sp.oo else negated(INFINITY)), known
    if found.has(sp.Sum, sp.Product, sp.nan, sp.zoo, sp.Piecewise, sp.oo):
        raise Refused("decidable", "could not find the value of the series")
    tree = tree_of(found)
    if not within(_SECONDS, _is_limit_of_parts, tree, node, first, known):
        raise Refused("decidable", "could not confirm the value of the series")
    return tree, known


def _limit_of_closed(node: Node, first: int, facts: Facts) -> Expr | None:
    """Where the closed form of the finite sum or product goes."""
    end = sp.Symbol("_n", integer=True, positive=True)
    body, variable, *_ = node.args
    bound = symbols(names_in(node), facts)
    bound[variable.name] = sp.Symbol(variable.name, integer=True, nonnegative=True)
    run = sp.summation if node.name == "sum" else sp.product
    closed = sp.simplify(run(Reading(bound).of(body), (bound[variable.name], first, end)))
    return None if closed.has(sp.Sum, sp.Product) else sp.limit(sp.gammasimp(closed), end, sp.oo)


def _convergent(found: Expr, facts: Facts) -> tuple[Expr, Facts]:
    """The branch of a geometric series that converges, with its condition as a fact."""
    if not found.is_Piecewise:
        return found, facts
    value, condition = found.args[0]
    if not (condition.func is sp.StrictLessThan and condition.lhs.func is sp.Abs and condition.rhs == 1):
        raise Refused("decidable", "could not tell where the series converges")
    inside = tree_of(condition.lhs.args[0])
    text = f"{condition.lhs.args[0]}"
    relation = Claim(f"abs({text}) < 1", call("abs", inside), f"abs({text})", "<", ONE, "1")
    joined = f"abs({text}) < 1" if not facts.text else f"{facts.text} and abs({text}) < 1"
    return value, Facts(facts.of, (*facts.relations, relation), joined)


def _is_limit_of_parts(tree: Node, node: Node, first: int, facts: Facts) -> bool:
    body, variable, *_ = node.args
    names = names_in(node)
    checked = 0
    for value in ("0.3", "-0.45") if names else ("0",):
        point = {name: mp.mpf(value) / (index + 1) for index, name in enumerate(names)}
        if not all(_relation_holds(relation, point) for relation in facts.relations):
            continue
        if not _converges(near(tree, point), node.name, body, variable.name, first, point):
            return False
        checked += 1
    return checked > 0


def _relation_holds(relation: Claim, point: dict[str, Any]) -> bool:
    return relation.right is not None and bool(near(relation.left, point) < near(relation.right, point))


def _converges(value: Any, kind: str, body: Node, variable: str, first: int, point: dict[str, Any]) -> bool:
    def term(index: Any) -> Any:
        return near(body, {**point, variable: index}, 80)

    try:
        with mp.workdps(30):
            found = (mp.nsum if kind == "sum" else mp.nprod)(term, [first, mp.inf])
            rough = mp.fsum(term(mp.mpf(index)) for index in range(first, first + 400)) if kind == "sum" else value
    except (NoNumber, ValueError, ArithmeticError, mpmath.libmp.NoConvergence):
        return False
    scale = max(1, abs(value))
    return bool(abs(found - value) < mp.mpf(10) ** -10 * scale and abs(rough - value) < mp.mpf("0.1") * scale)
