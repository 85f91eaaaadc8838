"""DESIGN 8, the logic engine: satisfiability of a formula, or whether premises entail a conclusion.

A satisfiable query is VERIFIED with a model, an unsatisfiable one FAILED. Premises that contradict each other entail
everything and so prove nothing: FAILED, with that reason. What depends on a division by zero is INCONCLUSIVE.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lark
import z3

from qwed.engines._logic_syntax import MAX_CHARACTERS, NotFormal, Refusal, Tree, read
from qwed.engines._logic_terms import Compiler, Truth
from qwed.engines._logic_types import Elaborator, Term, is_declaration
from qwed.engines.protocol import EngineRequest
from qwed.words import Status, Verdict

TIMEOUT_MS = 8_000
RESOURCES = 20_000_000
"""z3's own unit of work: the same input stops at the same place on every machine."""
MAX_PREMISES = 100

_ENGLISH = "not a formula: write an expression such as `(GT x 1)` or one comparison such as `x > 1`"
_SURPRISES = (z3.Z3Exception, lark.exceptions.LarkError, RecursionError, MemoryError, OverflowError, ValueError)


def verify(request: EngineRequest) -> Verdict:
    """Whether the query can be satisfied, or the premises entail the conclusion."""
    try:
        return _judge(request)
    except Refusal as refusal:
        return _refused(refusal)
    except NotFormal:
        return _verdict(Status.INCONCLUSIVE, _ENGLISH, failed=("syntax_valid",), before=())
    except _SURPRISES as surprise:
        reason = f"could not be decided: {type(surprise).__name__}"
        return _verdict(Status.INCONCLUSIVE, reason, failed=("decided",), before=())


def _judge(request: EngineRequest) -> Verdict:
    premises, conclusion = request.parameters.get("premises"), request.parameters.get("conclusion")
    if premises is None and conclusion is None:
        return _satisfiability(_Problem.of([request.query]))
    if isinstance(premises, str):
        premises = [premises]
    if not isinstance(premises, list | tuple) or not all(isinstance(premise, str) for premise in premises):
        raise Refusal("PARSE_ERROR", "`premises` must be a list of formulas")
    if not isinstance(conclusion, str):
        raise Refusal("PARSE_ERROR", "`conclusion` must be a formula")
    if len(premises) > MAX_PREMISES or sum(map(len, premises)) + len(conclusion) > MAX_CHARACTERS:
        raise Refusal("PARSE_ERROR", f"more than {MAX_PREMISES} premises or {MAX_CHARACTERS} characters in all")
    return _entailment(_Problem.of([*premises, conclusion]))


@dataclass(frozen=True, slots=True)
class _Problem:
    """Compiled statements, one for each text, in a z3 context of their own."""

    statements: tuple[Truth, ...]
    parts: tuple[Truth, ...]
    """The members of a conjunction that is the whole query: what an unsatisfiable core can name."""
    constants: Mapping[str, Any]
    context: Any
    deadline: float
    """All questions of one request share one time limit."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Problem":
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        elaborator = Elaborator()
        trees = [tree for text in texts for tree in _one_statement(text)]
        terms = elaborator.statements(trees)
        compiler = Compiler(z3.Context())
        statements = tuple(compiler.truth(term) for term in terms)
        parts = tuple(compiler.truth(part) for part in _conjuncts(terms[-1]))
        constants = {name: compiler.constant(symbol) for name, symbol in sorted(elaborator.symbols.items())}
        return cls(statements, parts, constants, compiler.context, deadline)

    def solve(self, *formulas: Any, named: bool = False) -> tuple[Any, Any]:
        """z3's answer and the solver that gave it."""
        solver = z3.Solver(ctx=self.context)
        left = max(1, int((self.deadline - time.monotonic()) * 1000))
        solver.set(timeout=left, rlimit=RESOURCES, random_seed=1)
        for index, formula in enumerate(formulas):
            if named:
                solver.assert_and_track(formula, f"part {index}")
            else:
                solver.add(formula)
        return solver.check(), solver

    def model(self, solver: Any) -> dict[str, str]:
        """Exact values of every free name."""
        model = solver.model()
        return {name: _exact(model.eval(constant, model_completion=True)) for name, constant in self.constants.items()}


def _one_statement(text: str) -> list[Tree]:
    trees = read(text)
    if sum(not is_declaration(tree) for tree in trees) != 1:
        raise Refusal("PARSE_ERROR", "one formula is needed, join several with AND", trees[-1].at)
    return trees


def _conjuncts(term: Term) -> tuple[Term, ...]:
    return term.arguments if term.operator == "AND" else (term,)


def _exact(value: Any) -> str:
    """The digits, the fraction or the truth value itself, never a rounded one."""
    if z3.is_true(value) or z3.is_false(value):
        return "true" if z3.is_true(value) else "false"
    if z3.is_rational_value(value) or z3.is_int_value(value) or z3.is_string_value(value):
        return str(value.as_string())
    return str(value.sexpr())


def _satisfiability(problem: _Problem) -> Verdict:
    (claim,) = problem.statements
    answer, solver = problem.solve(claim.holds)
    if answer == z3.sat:
        return _satisfied(problem, solver, claim)
    if answer == z3.unknown:
        return _undecided(solver, "satisfiable")
    if not claim.total and problem.solve(z3.Not(claim.fails))[0] != z3.unsat:
        return _division("satisfiable")
    core = _core(problem)
    return _verdict(Status.FAILED, "no values satisfy it", failed=("satisfiable",), result={"unsat_core": core})


def _satisfied(problem: _Problem, solver: Any, claim: Truth) -> Verdict:
    # The solver's word is checked where it can be: with the values put in, the formula must not read false.
    if z3.is_false(z3.simplify(solver.model().eval(claim.holds, model_completion=True))):
        return _undecided(solver, "satisfiable")
    result = {"satisfiable": True, "model": problem.model(solver)}
    return _verdict(Status.VERIFIED, "satisfiable", passed=("satisfiable",), result=result)


def _core(problem: _Problem) -> list[int]:
    """Which members of the outermost AND already contradict each other, counted from 0."""
    answer, solver = problem.solve(*(part.holds for part in problem.parts), named=True)
    if answer != z3.unsat:
        return list(range(len(problem.parts)))
    return sorted(int(str(name).removeprefix("part ")) for name in solver.unsat_core())


def _entailment(problem: _Problem) -> Verdict:
    *premises, conclusion = problem.statements
    given = [premise.holds for premise in premises]
    answer, solver = problem.solve(*given, conclusion.fails)
    if answer == z3.sat:
        counterexample = {"counterexample": problem.model(solver)}
        return _verdict(Status.FAILED, "the premises do not entail it", failed=("entailed",), result=counterexample)
    if answer == z3.unknown:
        return _undecided(solver, "entailed")
    possible, solver = problem.solve(*given)
    if possible != z3.sat:
        return _contradictory(problem, possible, solver)
    return _entailed(problem, premises, conclusion)


def _contradictory(problem: _Problem, possible: Any, solver: Any) -> Verdict:
    if possible == z3.unknown:
        return _undecided(solver, "premises_consistent")
    if any(not statement.total for statement in problem.statements):
        return _division("premises_consistent")
    message = "the premises contradict each other, so they prove nothing"
    return _verdict(Status.FAILED, message, failed=("premises_consistent",), result={"contradictory": True})


def _entailed(problem: _Problem, premises: Sequence[Truth], conclusion: Truth) -> Verdict:
    """No counterexample is defined; now none may hide behind a denominator that is zero."""
    if any(not statement.total for statement in problem.statements):
        open_ = [z3.Not(premise.fails) for premise in premises]
        answer, solver = problem.solve(*open_, z3.Not(conclusion.holds))
        if answer != z3.unsat:
            return _division("entailed") if answer == z3.sat else _undecided(solver, "entailed")
    result = {"entailed": True, "method": "z3 refutes the negated conclusion"}
    passed = ("premises_consistent", "entailed")
    return _verdict(Status.VERIFIED, "the premises entail it", passed=passed, result=result)


def _division(check: str) -> Verdict:
    message = "it depends on a division by zero, add that the denominator is not 0"
    return _verdict(Status.INCONCLUSIVE, message, failed=(check,), result={"reason": "division_by_zero"})


def _undecided(solver: Any, check: str) -> Verdict:
    reason = str(solver.reason_unknown())
    result = {"error": "TIMEOUT", "reason": reason} if _ran_out(reason) else {"reason": reason}
    return _verdict(Status.INCONCLUSIVE, f"could not be decided: {reason}", failed=(check,), result=result)


def _ran_out(reason: str) -> bool:
    return any(word in reason for word in ("timeout", "canceled", "resource limit", "max. memory"))


_TYPED = ("syntax_valid", "well_typed")


def _verdict(
    status: Status,
    message: str,
    *,
    passed: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
    result: Mapping[str, Any] | None = None,
    before: tuple[str, ...] = _TYPED,
) -> Verdict:
    checks = tuple(check for check in before if check not in failed)
    return Verdict(
        status=status,
        engine="logic",
        message=message,
        checks_passed=checks + passed,
        checks_failed=failed,
        result=dict(result or {}),
    )


def _refused(refusal: Refusal) -> Verdict:
    """BLOCKED: the text is wrong, whatever it claims."""
    parses = refusal.error == "TYPE_ERROR"
    result = {"error": refusal.error, "position": refusal.at}
    before, failed = (("syntax_valid",), ("well_typed",)) if parses else ((), ("syntax_valid",))
    return _verdict(Status.BLOCKED, refusal.message, failed=failed, result=result, before=before)
