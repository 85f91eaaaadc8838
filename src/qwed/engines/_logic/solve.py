"""Typed statements in z3: one context, one time limit, exact models and minimal cores."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3

from qwed.engines._logic.elaborate import Elaborator
from qwed.engines._logic.syntax import Tree
from qwed.engines._logic.terms import Compiler, Truth
from qwed.engines._logic.types import Kind, Relation, Term

TIMEOUT_MS = 8_000
RESOURCES = 20_000_000
"""z3's own unit of work: the same input stops at the same place on every machine."""
MEMORY_MB = 768
GLANCE_MS = 600
"""How long a question about things is tried in general, and then in each small world, before it gets all the time."""
MAX_WORLD = 4
MAX_SHOWN = 64
"""A predicate with more combinations than this is left out of a model."""
CORE_MS = 1_000
"""A core that takes longer is given as small as it is by then; the answer itself is known already."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Compiled statements in a z3 context of their own."""

    statements: tuple[Truth, ...]
    parts: tuple[Truth, ...]
    """The members of a conjunction that is the last statement: what an unsatisfiable core can name."""
    constants: Mapping[str, Any]
    relations: Mapping[str, tuple[Relation, Any]]
    context: Any
    deadline: float
    """All questions of one request share one time limit."""

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> "Problem":
        """The statements among `trees`, typed together; Refusal where they have no meaning."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        elaborator = Elaborator()
        terms = elaborator.statements(trees)
        compiler = Compiler(z3.Context())
        statements = tuple(compiler.truth(term) for term in terms)
        parts = tuple(compiler.truth(part) for part in _conjuncts(terms[-1]))
        constants = {name: compiler.constant(symbol) for name, symbol in sorted(elaborator.symbols.items())}
        relations = {
            name: (relation, compiler.relation(relation)) for name, relation in sorted(elaborator.relations.items())
        }
        return cls(statements, parts, constants, relations, compiler.context, deadline)

    def solve(self, *formulas: Any) -> tuple[Any, Any]:
        """z3's answer and the solver that gave it."""
        if not self.relations:
            return self._check(formulas, self.deadline)
        first = self._check(formulas, self._soon())
        return first if first[0] != z3.unknown else self._in_small_worlds(formulas)

    def _in_small_worlds(self, formulas: Sequence[Any]) -> tuple[Any, Any]:
        """What has a model of one to four things is satisfiable; else the question gets all the time there is."""
        for size in range(1, MAX_WORLD + 1):
            answer, solver = self._check([*formulas, self._world(size)], self._soon())
            if answer == z3.sat:
                return answer, solver
        return self._check(formulas, self.deadline)

    def _world(self, size: int) -> Any:
        sort = z3.DeclareSort("Thing", self.context)
        anything, *members = (z3.Const(f"member {index}", sort) for index in range(size + 1))
        return z3.ForAll([anything], z3.Or(*(anything == member for member in members)))

    def _soon(self) -> float:
        return min(self.deadline, time.monotonic() + GLANCE_MS / 1000)

    def _check(self, formulas: Sequence[Any], until: float) -> tuple[Any, Any]:
        solver = self._solver(until)
        solver.add(*formulas)
        return solver.check(), solver

    def _solver(self, until: float) -> Any:
        solver = z3.Solver(ctx=self.context)
        left = max(1, int((until - time.monotonic()) * 1000))
        solver.set(timeout=left, rlimit=RESOURCES, random_seed=1, max_memory=MEMORY_MB)
        return solver

    def core(self, formulas: Sequence[Any], always: Sequence[Any] = ()) -> list[int]:
        """Which of `formulas` contradict each other and `always`, counted from 0; each is needed, time permitting."""
        until = min(self.deadline, time.monotonic() + CORE_MS / 1000)
        solver = self._solver(until)
        solver.add(*always)
        for index, formula in enumerate(formulas):
            solver.assert_and_track(formula, f"part {index}")
        if solver.check() != z3.unsat:
            return list(range(len(formulas)))
        core = sorted(int(str(name).removeprefix("part ")) for name in solver.unsat_core())
        for index in tuple(core):
            if self._contradict([*always, *(formulas[kept] for kept in core if kept != index)], until):
                core.remove(index)
        return core

    def _contradict(self, formulas: Sequence[Any], until: float) -> bool:
        return time.monotonic() < until and bool(self._check(formulas, until)[0] == z3.unsat)

    def model(self, solver: Any) -> dict[str, str]:
        """Exact values of every free name, and of every predicate that is said of finitely many things."""
        model = solver.model()
        things = _things(model)
        shown = {
            name: _exact(model.eval(constant, model_completion=True), things)
            for name, constant in self.constants.items()
        }
        for name, (relation, declared) in self.relations.items():
            if relation.result.kind is Kind.TRUTH and _is_finite(relation, things):
                shown[name] = _extension(model, relation, declared, things)
        return shown


def _conjuncts(term: Term) -> tuple[Term, ...]:
    return term.arguments if term.operator == "AND" else (term,)


def _things(model: Any) -> dict[str, Any]:
    """The things of a model by the name they are shown with."""
    universes = [model.get_universe(sort) for sort in model.sorts()]
    members = [member for universe in universes for member in (universe or [])]
    return {f"#{index}": member for index, member in enumerate(members)}


def _is_finite(relation: Relation, things: Mapping[str, Any]) -> bool:
    only_things = all(slot.kind is Kind.THING for slot in relation.arguments)
    return only_things and len(things) ** len(relation.arguments) <= MAX_SHOWN


def _extension(model: Any, relation: Relation, declared: Any, things: Mapping[str, Any]) -> str:
    """What a predicate is true of, as in `{#0, #2}`."""
    true_of = [
        ", ".join(names) if len(names) == 1 else f"({', '.join(names)})"
        for names in product(things, repeat=len(relation.arguments))
        if z3.is_true(model.eval(declared(*(things[name] for name in names)), model_completion=True))
    ]
    return "{" + ", ".join(true_of) + "}"


def _exact(value: Any, things: Mapping[str, Any]) -> str:
    """The digits, the fraction or the truth value itself, never a rounded one."""
    if z3.is_true(value) or z3.is_false(value):
        return "true" if z3.is_true(value) else "false"
    if z3.is_rational_value(value) or z3.is_int_value(value) or z3.is_string_value(value):
        return str(value.as_string())
    return next((name for name, thing in things.items() if thing.eq(value)), None) or str(value.sexpr())
