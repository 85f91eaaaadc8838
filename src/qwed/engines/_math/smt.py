"""Claims about real numbers put to a solver that decides polynomials: sums, products, roots, `abs`, `min`, `max`.

A few other functions take part by what is known of them; such a proof holds for the function as it does for anything
else of which that is true.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import z3

from qwed.engines._math.facts import NOTHING, Fact, Facts
from qwed.engines._math.tree import Claim, Node, Number, names_in

Term = Any
TIMEOUT_MS = 2_000
RESOURCES = 4_000_000
"""z3's own unit of work: the same input stops at the same place on every machine."""
_MAX_POWER = 12


class _NotPolynomial(Exception):
    """The tree has something the solver does not decide."""


def is_theorem(claim: Claim, facts: Facts = NOTHING) -> bool:
    """Whether no real values that the facts allow, and at which both sides are real, go against the claim."""
    try:
        problem = _Problem(names_in(claim.left, claim.right, *_sides(facts.relations)), facts)
        holds = problem.claim(claim)
        # A root of a negative number has a value too, only no real one: an equality must not rest on leaving it out.
        total = claim.sign != "=" or not problem.insides or problem.proves_of_roots()
        return total and problem.proves(holds)
    except (_NotPolynomial, z3.Z3Exception):
        return False


def suspect(claim: Claim, facts: Facts = NOTHING) -> dict[str, Fraction] | None:
    """Rational values at which the solver says the claim fails, for somebody else to confirm."""
    try:
        problem = _Problem(names_in(claim.left, claim.right, *_sides(facts.relations)), facts)
        model = problem.model_against(problem.claim(claim))
        if model is None:
            return None
        found = {name: model.eval(term, model_completion=True) for name, term in problem.names.items()}
        return {name: Fraction(value.as_fraction()) for name, value in found.items() if z3.is_rational_value(value)}
    except (_NotPolynomial, z3.Z3Exception):
        return None


def are_equivalent(ones: Sequence[Sequence[Claim]], others: Sequence[Sequence[Claim]], facts: Facts) -> bool | None:
    """Whether two alternatives of conjunctions have the same real solutions; None where that is not decided."""
    flat = [claim for group in (*ones, *others) for claim in group]
    try:
        problem = _Problem(names_in(*_sides(flat)), facts)
        left, right = ([problem.holding(group) for group in groups] for groups in (ones, others))
        return problem.decides(z3.Or(*left, problem.never) == z3.Or(*right, problem.never))
    except (_NotPolynomial, z3.Z3Exception):
        return None


def _sides(claims: Sequence[Claim]) -> list[Node | None]:
    return [side for claim in claims for side in (claim.left, claim.right)]


class _Problem:
    """Variables in a context of their own; `given` is what is assumed, `real` what the roots and quotients need."""

    def __init__(self, names: tuple[str, ...], facts: Facts) -> None:
        self.context = z3.Context()
        self.names = {name: z3.Real(name, self.context) for name in names}
        self.never = z3.BoolVal(False, self.context)
        self.given: list[Term] = []
        self.real: list[Term] = []
        self.roots: list[Term] = []
        self.insides: list[Term] = []
        self.functions: list[tuple[str, Term, Term]] = []
        for name in names:
            self.given += _bounds(self.names[name], facts.about(name))
        self.given += [self.claim(relation) for relation in facts.relations]

    def claim(self, claim: Claim) -> Term:
        if claim.right is None:
            raise _NotPolynomial
        return _SIGNS[claim.sign](self.term(claim.left), self.term(claim.right))

    def holding(self, group: Sequence[Claim]) -> Term:
        """That all of the group hold, each where its own sides are real."""
        before, self.real = self.real, []
        parts = [self.claim(claim) for claim in group]
        needed, self.real = self.real, before
        return z3.And(*parts, *needed, z3.Not(self.never))

    def model_against(self, claim: Term) -> Any:
        solver = self._solver(*self.given, *self.real, *self.roots, z3.Not(claim))
        return solver.model() if solver.check() == z3.sat else None

    def proves(self, claim: Term) -> bool:
        return bool(self._ask(*self.given, *self.real, *self.roots, z3.Not(claim)) == z3.unsat)

    def proves_of_roots(self) -> bool:
        """Whether what stands under the roots is never negative."""
        quotients = [part for part in self.real if not any(part is inside for inside in self.insides)]
        return bool(self._ask(*self.given, *quotients, *self.roots, z3.Not(z3.And(*self.insides))) == z3.unsat)

    def decides(self, claim: Term) -> bool | None:
        answer = self._ask(*self.given, *self.roots, z3.Not(claim))
        return None if answer == z3.unknown else bool(answer == z3.unsat)

    def _ask(self, *formulas: Term) -> Any:
        return self._solver(*formulas).check()

    def _solver(self, *formulas: Term) -> Any:
        solver = z3.Solver(ctx=self.context)
        solver.set(timeout=TIMEOUT_MS, rlimit=RESOURCES, random_seed=1)
        solver.add(*formulas)
        return solver

    def term(self, node: Node) -> Term:
        if node.kind == "number":
            return self._exact(node.value)
        if node.kind == "name" and node.name in self.names:
            return self.names[node.name]
        rule = (_CALLS.get(node.name) or _KNOWN_OF.get(node.name)) if node.kind == "call" else _RULES.get(node.kind)
        if rule is None:
            raise _NotPolynomial
        if node.kind == "power":
            return self._power(node)
        if node.kind == "call" and node.name in _KNOWN_OF:
            return self.stand_in(node.name, self.term(node.args[0]))
        return rule(self, *[self.term(arg) for arg in node.args])

    def _exact(self, value: Number) -> Term:
        return z3.RealVal(f"{value.numerator}/{value.denominator}", self.context)

    def _power(self, node: Node) -> Term:
        base, exponent = node.args
        if base in (Node("name", name="e"), Node("name", name="E")):
            return self.stand_in("exp", self.term(exponent))
        if exponent.kind != "number" or exponent.value.denominator != 1 or not 1 <= exponent.value <= _MAX_POWER:
            raise _NotPolynomial
        term = self.term(base)
        return z3.Product(*[term] * int(exponent.value))

    def stand_in(self, name: str, inside: Term) -> Term:
        """A variable for the function of the term, of which only what is true of the function is known."""
        for known, term, found in self.functions:
            if known == name and term.eq(inside):
                return found
        found = z3.Real(f"{name} {len(self.functions)}", self.context)
        self.functions.append((name, inside, found))
        self.roots += _KNOWN_OF[name](inside, found)
        if name == "ln":
            self.insides.append(inside > 0)
            self.real.append(self.insides[-1])
        if name in ("sin", "cos"):
            other = self.stand_in("cos" if name == "sin" else "sin", inside)
            self.roots.append(found * found + other * other == 1)
        return found

    def inverse(self, below: Term) -> Term:
        self.real.append(below != 0)
        return 1 / below

    def root(self, inside: Term) -> Term:
        """A new variable whose square it is; where the inside is negative there is no such real number."""
        found = z3.Real(f"root {len(self.roots)}", self.context)
        self.roots.append(z3.Implies(inside >= 0, z3.And(found >= 0, found * found == inside)))
        self.insides.append(inside >= 0)
        self.real.append(self.insides[-1])
        return found


def _bounds(variable: Term, fact: Fact) -> list[Term]:
    found = [variable != 0] if fact.nonzero else []
    if fact.low is not None:
        low = z3.RealVal(str(fact.low), variable.ctx)
        found.append(variable > low if fact.above else variable >= low)
    if fact.high is not None:
        high = z3.RealVal(str(fact.high), variable.ctx)
        found.append(variable < high if fact.below else variable <= high)
    return found


_SIGNS: dict[str, Callable[[Term, Term], Term]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_RULES: dict[str, Callable[..., Term]] = {
    "negative": lambda _problem, value: -value,
    "sum": lambda _problem, *values: z3.Sum(*values),
    "product": lambda _problem, *values: z3.Product(*values),
    "inverse": _Problem.inverse,
    "power": _Problem._power,
}


def _extreme(choose: Callable[[Term, Term], Term]) -> Callable[..., Term]:
    def of(_problem: _Problem, *values: Term) -> Term:
        best = values[0]
        for value in values[1:]:
            best = z3.If(choose(value, best), value, best)
        return best

    return of


_KNOWN_OF: dict[str, Callable[[Term, Term], list[Term]]] = {
    "sin": lambda u, sin: [sin * sin <= 1, sin * sin <= u * u],
    "cos": lambda u, cos: [cos * cos <= 1, 2 * cos >= 2 - u * u],
    "exp": lambda u, exp: [exp > 0, exp >= 1 + u],
    "ln": lambda u, ln: [z3.Implies(u > 0, z3.And(ln <= u - 1, ln * u >= u - 1))],
    "cosh": lambda u, cosh: [cosh >= 1, 2 * cosh >= 2 + u * u],
    "tanh": lambda u, tanh: [tanh * tanh < 1, tanh * u >= 0],
    "atan": lambda u, atan: [atan * u >= 0, atan * atan <= u * u],
    "floor": lambda u, floor: [floor <= u, u < floor + 1],
    "ceil": lambda u, ceil: [u <= ceil, ceil < u + 1],
}
"""Facts about functions that hold at every real number; they stand for the function in a proof."""
_CALLS: dict[str, Callable[..., Term]] = {
    "abs": lambda _problem, value: z3.If(value >= 0, value, -value),
    "sqrt": _Problem.root,
    "min": _extreme(lambda value, best: value < best),
    "max": _extreme(lambda value, best: value > best),
}
