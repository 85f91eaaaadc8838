"""SMT proofs for claims about real numbers, with z3: sums, products, roots, `abs`, `min`, `max`.

A few other functions are replaced by variables with known properties; a proof then holds for every function that has
these properties.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import z3

from qwed.engines._math.assumptions import NO_FACTS, Fact, Facts
from qwed.engines._math.syntax_tree import Claim, MathNode, Number, free_names

Term = Any
TIMEOUT_MS = 2_000
RESOURCES = 4_000_000
"""Limit in z3's own unit of work: the same input stops at the same point on every machine."""
_MAX_POWER = 12


class _NotPolynomialError(Exception):
    """The tree contains something the solver does not decide."""


def is_theorem(claim: Claim, facts: Facts = NO_FACTS) -> bool:
    """Return True if the claim holds for all real values that the facts allow and at which both sides are real."""
    try:
        problem = _Problem(free_names(claim.left, claim.right, *_sides(facts.relations)), facts)
        holds = problem.claim(claim)
        # A root of a negative number has a complex value: an equality must not rely on excluding it.
        total = claim.sign != "=" or not problem.insides or problem.proves_of_roots()
        return total and problem.proves(holds)
    except (_NotPolynomialError, z3.Z3Exception):
        return False


def find_counterexample(claim: Claim, facts: Facts = NO_FACTS) -> dict[str, Fraction] | None:
    """Return rational values at which the solver says the claim fails; the caller has to confirm them."""
    try:
        problem = _Problem(free_names(claim.left, claim.right, *_sides(facts.relations)), facts)
        model = problem.model_against(problem.claim(claim))
        if model is None:
            return None
        values = {name: model.eval(term, model_completion=True) for name, term in problem.names.items()}
        return {name: Fraction(value.as_fraction()) for name, value in values.items() if z3.is_rational_value(value)}
    except (_NotPolynomialError, z3.Z3Exception):
        return None


def are_equivalent(ones: Sequence[Sequence[Claim]], others: Sequence[Sequence[Claim]], facts: Facts) -> bool | None:
    """Return True if two disjunctions of conjunctions have the same real solutions; None if undecided."""
    flat = [claim for group in (*ones, *others) for claim in group]
    try:
        problem = _Problem(free_names(*_sides(flat)), facts)
        left, right = ([problem.conjunction(group) for group in groups] for groups in (ones, others))
        return problem.decides(z3.Or(*left, problem.never) == z3.Or(*right, problem.never))
    except (_NotPolynomialError, z3.Z3Exception):
        return None


def _sides(claims: Sequence[Claim]) -> list[MathNode | None]:
    return [side for claim in claims for side in (claim.left, claim.right)]


class _Problem:
    """z3 problem in its own context; `assumed` holds the assumptions, `real` the conditions of roots and quotients."""

    def __init__(self, names: tuple[str, ...], facts: Facts) -> None:
        self.context = z3.Context()
        self.names = {name: z3.Real(name, self.context) for name in names}
        self.never = z3.BoolVal(False, self.context)
        self.assumed: list[Term] = []
        self.real: list[Term] = []
        self.roots: list[Term] = []
        self.insides: list[Term] = []
        self.functions: list[tuple[str, Term, Term]] = []
        for name in names:
            self.assumed += _bounds(self.names[name], facts.about(name))
        self.assumed += [self.claim(relation) for relation in facts.relations]

    def claim(self, claim: Claim) -> Term:
        if claim.right is None:
            raise _NotPolynomialError
        return _SIGNS[claim.sign](self.term(claim.left), self.term(claim.right))

    def conjunction(self, group: Sequence[Claim]) -> Term:
        """Return the term that all claims of the group hold, each where its own sides are real."""
        before, self.real = self.real, []
        parts = [self.claim(claim) for claim in group]
        conditions, self.real = self.real, before
        return z3.And(*parts, *conditions, z3.Not(self.never))

    def model_against(self, claim: Term) -> Any:
        solver = self._solver(*self.assumed, *self.real, *self.roots, z3.Not(claim))
        return solver.model() if solver.check() == z3.sat else None

    def proves(self, claim: Term) -> bool:
        return bool(self._ask(*self.assumed, *self.real, *self.roots, z3.Not(claim)) == z3.unsat)

    def proves_of_roots(self) -> bool:
        """Return True if the arguments of the roots are proven to be non-negative."""
        quotients = [part for part in self.real if not any(part is inside for inside in self.insides)]
        return bool(self._ask(*self.assumed, *quotients, *self.roots, z3.Not(z3.And(*self.insides))) == z3.unsat)

    def decides(self, claim: Term) -> bool | None:
        answer = self._ask(*self.assumed, *self.roots, z3.Not(claim))
        return None if answer == z3.unknown else bool(answer == z3.unsat)

    def _ask(self, *formulas: Term) -> Any:
        return self._solver(*formulas).check()

    def _solver(self, *formulas: Term) -> Any:
        solver = z3.Solver(ctx=self.context)
        solver.set(timeout=TIMEOUT_MS, rlimit=RESOURCES, random_seed=1)
        solver.add(*formulas)
        return solver

    def term(self, node: MathNode) -> Term:
        if node.kind == "number":
            return self._exact(node.value)
        if node.kind == "name" and node.name in self.names:
            return self.names[node.name]
        rule = (
            (_CALLS.get(node.name) or _FUNCTION_PROPERTIES.get(node.name))
            if node.kind == "call"
            else _RULES.get(node.kind)
        )
        if rule is None:
            raise _NotPolynomialError
        if node.kind == "power":
            return self._power(node)
        if node.kind == "call" and node.name in _FUNCTION_PROPERTIES:
            return self.stand_in(node.name, self.term(node.args[0]))
        return rule(self, *[self.term(arg) for arg in node.args])

    def _exact(self, value: Number) -> Term:
        return z3.RealVal(f"{value.numerator}/{value.denominator}", self.context)

    def _power(self, node: MathNode) -> Term:
        base, exponent = node.args
        if base in (MathNode("name", name="e"), MathNode("name", name="E")):
            return self.stand_in("exp", self.term(exponent))
        if exponent.kind != "number" or exponent.value.denominator != 1 or not 1 <= exponent.value <= _MAX_POWER:
            raise _NotPolynomialError
        term = self.term(base)
        return z3.Product(*[term] * int(exponent.value))

    def stand_in(self, name: str, inside: Term) -> Term:
        """Return a variable for the function of the term, constrained by known properties of the function."""
        for other_name, term, variable in self.functions:
            if other_name == name and term.eq(inside):
                return variable
        variable = z3.Real(f"{name} {len(self.functions)}", self.context)
        self.functions.append((name, inside, variable))
        self.roots += _FUNCTION_PROPERTIES[name](inside, variable)
        if name == "ln":
            self.insides.append(inside > 0)
            self.real.append(self.insides[-1])
        if name in ("sin", "cos"):
            other = self.stand_in("cos" if name == "sin" else "sin", inside)
            self.roots.append(variable * variable + other * other == 1)
        return variable

    def inverse(self, below: Term) -> Term:
        self.real.append(below != 0)
        return 1 / below

    def root(self, inside: Term) -> Term:
        """Return a new variable whose square is the argument; a negative argument has no real root."""
        variable = z3.Real(f"root {len(self.roots)}", self.context)
        self.roots.append(z3.Implies(inside >= 0, z3.And(variable >= 0, variable * variable == inside)))
        self.insides.append(inside >= 0)
        self.real.append(self.insides[-1])
        return variable


def _bounds(variable: Term, fact: Fact) -> list[Term]:
    terms = [variable != 0] if fact.nonzero else []
    if fact.low is not None:
        low = z3.RealVal(str(fact.low), variable.ctx)
        terms.append(variable > low if fact.above else variable >= low)
    if fact.high is not None:
        high = z3.RealVal(str(fact.high), variable.ctx)
        terms.append(variable < high if fact.below else variable <= high)
    return terms


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


_FUNCTION_PROPERTIES: dict[str, Callable[[Term, Term], list[Term]]] = {
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
"""Properties of functions that hold at every real number; a proof uses them in place of the function."""
_CALLS: dict[str, Callable[..., Term]] = {
    "abs": lambda _problem, value: z3.If(value >= 0, value, -value),
    "sqrt": _Problem.root,
    "min": _extreme(lambda value, best: value < best),
    "max": _extreme(lambda value, best: value > best),
}
