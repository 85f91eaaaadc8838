"""Search for a model of formulas, with bounded effort."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from qwed.policy.analysis.symbols import Formula, solver_library

MAX_PREFERENCES = 12
_EFFORT = 1_000_000
"""Work of the solver on one question, in its own units: the same on every machine."""


class ProofStatus(StrEnum):
    """Answer to one question."""

    NONE = "none"
    """Proved: there is no such call."""
    SOME = "some"
    """There is such a call."""
    NOT_PROVEN = "not proven"


def new_solver() -> Any:
    """Return a solver with bounded effort."""
    solver = solver_library().SimpleSolver()
    # Values that are false make small calls, which are found faster and read more easily.
    solver.set(rlimit=_EFFORT, phase_selection=0)
    return solver


class FoundModel(NamedTuple):
    values: Any
    has_needed: bool
    """True if all that is needed holds."""


def effort_of(solver: Any) -> int:
    """Return the work that all solvers of this process have done so far, in their own units."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in {*statistics.keys()} else 0


def find_model(solver: Any, needed: Sequence[Formula], preferred: Sequence[Formula]) -> tuple[ProofStatus, Any]:
    """Return a model, with what is needed, if that can be, and as much of what is preferred as can easily be had."""
    z3 = solver_library()
    wanted = {f"needed {number}": formula for number, formula in enumerate(needed)}
    wanted |= {f"preferred {number}": formula for number, formula in enumerate(preferred)}
    solver.push()
    for name, formula in wanted.items():
        solver.add(z3.Implies(z3.Bool(name), formula))
    try:
        return _relax(solver, list(wanted))
    finally:
        solver.pop()


def _relax(solver: Any, wanted: list[str]) -> tuple[ProofStatus, Any]:
    """Give up what is wanted, one after the other, until there is a model."""
    z3 = solver_library()
    number = sum(name.startswith("needed") for name in wanted)
    for attempt in range(MAX_PREFERENCES):
        answer, used = _check(solver, [z3.Bool(name) for name in wanted])
        if answer == z3.sat:
            held = sum(name.startswith("needed") for name in wanted)
            return ProofStatus.SOME, FoundModel(used.model(), held == number)
        core = {str(name) for name in used.unsat_core()} if answer == z3.unsat else {*wanted}
        if answer == z3.unsat and not core.intersection(wanted):
            return ProofStatus.NONE, None
        if attempt == 0 and (general := _check(solver, [])[0]) != z3.sat:
            return (ProofStatus.NONE if general == z3.unsat else ProofStatus.NOT_PROVEN), None
        # What makes a call easy to read is given up first, and all of it where the solver gave up.
        less = [name for name in wanted if name in core]
        one_by_one = answer == z3.unsat and attempt < MAX_PREFERENCES - 2
        dropped = {less[-1]} if one_by_one else {name for name in wanted if name.startswith("preferred")} or {*wanted}
        wanted = [name for name in wanted if name not in dropped]
    return ProofStatus.NOT_PROVEN, None


def _check(solver: Any, assumed: Sequence[Formula]) -> tuple[Any, Any]:
    """Return whether the assertions can hold, and the solver that knows; others try what the first one gives up."""
    z3 = solver_library()
    answer = solver.check(*assumed)
    if answer != z3.unknown:
        return answer, solver
    for make, factor, seed in ((z3.Solver, 2, 0), (z3.SimpleSolver, 6, 7)):
        other = make()
        other.set(rlimit=factor * _EFFORT, random_seed=seed)
        other.add(*solver.assertions())
        answer = other.check(*assumed)
        if answer != z3.unknown:
            break
    return answer, other
