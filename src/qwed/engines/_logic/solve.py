"""Typed statements in z3: one context, one time limit, exact models and minimal unsatisfiable cores."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3

from qwed.engines._logic.sexpr import Tree
from qwed.engines._logic.type_inference import TypeInference
from qwed.engines._logic.types import Relation, Term, TermKind
from qwed.engines._logic.z3_encoding import Truth, Z3Encoder

TIMEOUT_MS = 8_000
RESOURCES = 20_000_000
"""Limit in z3's own unit of work: the same input stops at the same point on every machine."""
MEMORY_MB = 768
FIRST_TRY_MS = 600
"""Time limit for the first attempt with predicates, and for each small domain, before the full limit applies."""
MAX_DOMAIN_SIZE = 4
MAX_EXTENSION = 64
"""Maximum number of combinations of a predicate that a model lists."""
CORE_MS = 1_000
"""Time limit for minimising a core, which is then returned as it is; the verdict itself is known already."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Compiled statements in a z3 context of their own."""

    statements: tuple[Truth, ...]
    parts: tuple[Truth, ...]
    """Members of a conjunction that is the last statement, for naming an unsatisfiable core."""
    constants: Mapping[str, Any]
    relations: Mapping[str, tuple[Relation, Any]]
    context: Any
    deadline: float
    """Time limit shared by all solver calls of one request."""

    @classmethod
    def from_trees(cls, trees: Sequence[Tree]) -> "Problem":
        """Compile the statements among `trees`, typed together; raise LogicRefusalError if they are not well typed."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        inference = TypeInference()
        terms = inference.statements(trees)
        encoder = Z3Encoder(z3.Context())
        statements = tuple(encoder.truth(term) for term in terms)
        parts = tuple(encoder.truth(part) for part in _conjuncts(terms[-1]))
        constants = {name: encoder.constant(symbol) for name, symbol in sorted(inference.symbols.items())}
        relations = {
            name: (relation, encoder.relation(relation)) for name, relation in sorted(inference.relations.items())
        }
        return cls(statements, parts, constants, relations, encoder.context, deadline)

    def solve(self, *formulas: Any) -> tuple[Any, Any]:
        """Return z3's answer and the solver that gave it."""
        if not self.relations:
            return self._check(formulas, self.deadline)
        first = self._check(formulas, self._first_try_deadline())
        return first if first[0] != z3.unknown else self._in_small_domains(formulas)

    def _in_small_domains(self, formulas: Sequence[Any]) -> tuple[Any, Any]:
        """Try domains of one to four things; if none has a model, use all remaining time without that limit."""
        for size in range(1, MAX_DOMAIN_SIZE + 1):
            answer, solver = self._check([*formulas, self._domain_of_size(size)], self._first_try_deadline())
            if answer == z3.sat:
                return answer, solver
        return self._check(formulas, self.deadline)

    def _domain_of_size(self, size: int) -> Any:
        sort = z3.DeclareSort("Thing", self.context)
        anything, *members = (z3.Const(f"member {index}", sort) for index in range(size + 1))
        return z3.ForAll([anything], z3.Or(*(anything == member for member in members)))

    def _first_try_deadline(self) -> float:
        return min(self.deadline, time.monotonic() + FIRST_TRY_MS / 1000)

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
        """Return the indices of `formulas` that contradict each other and `always`; minimal if time permits."""
        until = min(self.deadline, time.monotonic() + CORE_MS / 1000)
        solver = self._solver(until)
        solver.add(*always)
        for index, formula in enumerate(formulas):
            solver.assert_and_track(formula, f"part {index}")
        if solver.check() != z3.unsat:
            return list(range(len(formulas)))
        core = sorted(int(str(name).removeprefix("part ")) for name in solver.unsat_core())
        for index in tuple(core):
            if self._contradict([*always, *(formulas[other] for other in core if other != index)], until):
                core.remove(index)
        return core

    def _contradict(self, formulas: Sequence[Any], until: float) -> bool:
        return time.monotonic() < until and bool(self._check(formulas, until)[0] == z3.unsat)

    def model(self, solver: Any) -> dict[str, str]:
        """Return exact values of all free names, and the extension of predicates over finitely many things."""
        model = solver.model()
        things = _things(model)
        values = {
            name: _exact(model.eval(constant, model_completion=True), things)
            for name, constant in self.constants.items()
        }
        for name, (relation, declared) in self.relations.items():
            if relation.result.kind is TermKind.TRUTH and _is_finite(relation, things):
                values[name] = _extension(model, relation, declared, things)
        return values


def _conjuncts(term: Term) -> tuple[Term, ...]:
    return term.arguments if term.operator == "AND" else (term,)


def _things(model: Any) -> dict[str, Any]:
    """Return the things of a model by their displayed names."""
    universes = [model.get_universe(sort) for sort in model.sorts()]
    members = [member for universe in universes for member in (universe or [])]
    return {f"#{index}": member for index, member in enumerate(members)}


def _is_finite(relation: Relation, things: Mapping[str, Any]) -> bool:
    only_things = all(slot.kind is TermKind.THING for slot in relation.arguments)
    return only_things and len(things) ** len(relation.arguments) <= MAX_EXTENSION


def _extension(model: Any, relation: Relation, declared: Any, things: Mapping[str, Any]) -> str:
    """Return the arguments for which a predicate is true, as in `{#0, #2}`."""
    true_of = [
        ", ".join(names) if len(names) == 1 else f"({', '.join(names)})"
        for names in product(things, repeat=len(relation.arguments))
        if z3.is_true(model.eval(declared(*(things[name] for name in names)), model_completion=True))
    ]
    return "{" + ", ".join(true_of) + "}"


def _exact(value: Any, things: Mapping[str, Any]) -> str:
    """Format digits, a fraction or a truth value exactly, never rounded."""
    if z3.is_true(value) or z3.is_false(value):
        return "true" if z3.is_true(value) else "false"
    if z3.is_rational_value(value) or z3.is_int_value(value) or z3.is_string_value(value):
        return str(value.as_string())
    return next((name for name, thing in things.items() if thing.eq(value)), None) or str(value.sexpr())
