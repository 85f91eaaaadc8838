"""DESIGN 8, the logic engine: satisfiability of a formula, whether premises entail a conclusion, or claims agree.

A satisfiable query is VERIFIED with a model, an unsatisfiable one FAILED. Premises that contradict each other entail
everything and so prove nothing: FAILED, with that reason. What depends on a division by zero is INCONCLUSIVE, and so
is a sentence that the controlled grammar does not read, or reads but finds no proof for while its words may hide one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lark
import z3

from qwed.engines._logic.arguments import Argument, argument_from, argument_of
from qwed.engines._logic.claims import claims_of
from qwed.engines._logic.consistency import consistency
from qwed.engines._logic.elaborate import is_declaration
from qwed.engines._logic.reading import Reading, read
from qwed.engines._logic.solve import Problem
from qwed.engines._logic.syntax import NotFormal, Refusal
from qwed.engines._logic.terms import Truth
from qwed.engines._logic.verdicts import division, inconclusive, refused, undecided, verdict
from qwed.engines._logic.vocabulary import joined
from qwed.engines.protocol import EngineRequest
from qwed.words import Record, Status, Verdict

__all__ = ["LogicResult", "verify", "verify_logic_statement"]

METHOD = "z3 refutes the negated conclusion"
_NO_FORMULA = "not a formula: write an expression such as `(GT x 1)` or a comparison such as `x > 1`"
_SURPRISES = (z3.Z3Exception, lark.exceptions.LarkError, RecursionError, MemoryError, OverflowError, ValueError)


@dataclass(frozen=True)
class LogicResult(Record):
    """Whether a conclusion follows, and how that is known or what speaks against it."""

    verified: bool
    message: str
    method: str | None = None
    counterexample: Mapping[str, str] | None = None


def verify_logic_statement(premises: Sequence[str] | str, conclusion: str) -> LogicResult:
    """Whether the premises entail the conclusion; decided in this process, within the engine's limits."""
    found = _answered(lambda: _entailment(argument_from(premises, conclusion)))
    return LogicResult(found.verified, found.message, found.result.get("method"), found.result.get("counterexample"))


def verify(request: EngineRequest) -> Verdict:
    """Whether the query can be satisfied, the premises entail the conclusion, or the claims can all be true."""
    return _answered(lambda: _judge(request))


def _answered(judge: Callable[[], Verdict]) -> Verdict:
    try:
        return judge()
    except Refusal as refusal:
        return refused(refusal)
    except NotFormal as unread:
        return inconclusive(unread.reason or _NO_FORMULA, "syntax_valid", before=())
    except _SURPRISES as surprise:
        return inconclusive(f"could not be decided: {type(surprise).__name__}", "decided", before=())


def _judge(request: EngineRequest) -> Verdict:
    claims = claims_of(request.query, request.parameters)
    if claims is not None:
        return consistency(claims)
    argument = argument_of(request.query, request.parameters)
    return _satisfiability(request.query) if argument is None else _entailment(argument)


def _satisfiability(text: str) -> Verdict:
    reading = read(text)
    _need_one(reading)
    problem = Problem.of(joined([reading]).trees)
    (claim,) = problem.statements
    answer, solver = problem.solve(claim.holds)
    if answer == z3.sat:
        return _satisfied(problem, solver, claim, english=reading.english)
    if answer == z3.unknown:
        return undecided(solver, "satisfiable")
    if not claim.total and problem.solve(z3.Not(claim.fails))[0] != z3.unsat:
        return division("satisfiable")
    core = problem.core([part.holds for part in problem.parts])
    return verdict(Status.FAILED, "no values satisfy it", failed=("satisfiable",), result={"unsat_core": core})


def _satisfied(problem: Problem, solver: Any, claim: Truth, *, english: bool) -> Verdict:
    if _reads_false(solver, claim.holds):
        return undecided(solver, "satisfiable")
    if english:
        message = "a sentence is not proven by being possible, give `premises` and a `conclusion`"
        return inconclusive(message, "proven")
    result = {"satisfiable": True, "model": problem.model(solver)}
    return verdict(Status.VERIFIED, "satisfiable", passed=("satisfiable",), result=result)


def _reads_false(solver: Any, *formulas: Any) -> bool:
    """The solver's word is checked where it can be: with the values put in, no formula may read false."""
    model = solver.model()
    return any(z3.is_false(z3.simplify(model.eval(formula, model_completion=True))) for formula in formulas)


def _formulas(reading: Reading) -> int:
    return sum(not is_declaration(tree) for tree in reading.trees)


def _need_one(reading: Reading) -> None:
    if _formulas(reading) != 1:
        raise Refusal("PARSE_ERROR", "one formula is needed, join several with AND", reading.trees[-1].at)


@dataclass(frozen=True, slots=True)
class _Inference:
    """An argument in the solver."""

    argument: Argument
    problem: Problem
    sources: tuple[int, ...]
    """Which premise each statement came from: a premise may also be a mere declaration."""
    doubts: tuple[str, ...]

    @property
    def premises(self) -> tuple[Truth, ...]:
        """Every statement but the last."""
        return self.problem.statements[:-1]

    @property
    def conclusion(self) -> Truth:
        """The last statement."""
        return self.problem.statements[-1]

    @property
    def total(self) -> bool:
        """Whether no statement divides by what may be zero."""
        return all(statement.total for statement in self.problem.statements)

    def core(self, *always: Any) -> dict[str, Any]:
        """The premises that are needed, by number and by text."""
        found = self.problem.core([premise.holds for premise in self.premises], always)
        numbers = [self.sources[index] for index in found]
        return {"unsat_core": numbers, "core_premises": [self.argument.premises[index] for index in numbers]}


def _entailment(argument: Argument) -> Verdict:
    readings = [read(text) for text in (*argument.premises, argument.conclusion)]
    _need_one(readings[-1])
    for reading in readings:
        if _formulas(reading) > 1:
            _need_one(reading)
    vocabulary = joined(readings)
    sources = tuple(index for index, reading in enumerate(readings[:-1]) if _formulas(reading))
    return _inferred(_Inference(argument, Problem.of(vocabulary.trees), sources, vocabulary.doubts))


def _inferred(inference: _Inference) -> Verdict:
    given = [premise.holds for premise in inference.premises]
    answer, solver = inference.problem.solve(*given, inference.conclusion.fails)
    if answer == z3.sat:
        return _not_entailed(inference, solver)
    if answer == z3.unknown:
        return undecided(solver, "entailed")
    possible, solver = inference.problem.solve(*given)
    if possible == z3.unknown:
        return undecided(solver, "premises_consistent")
    return _entailed(inference) if possible == z3.sat else _contradictory(inference)


def _not_entailed(inference: _Inference, solver: Any) -> Verdict:
    if _reads_false(solver, *(premise.holds for premise in inference.premises), inference.conclusion.fails):
        return undecided(solver, "entailed")
    if inference.doubts:
        message = (
            f"not proven as read, but {inference.doubts[0]} are read as unrelated: use the same words, or a formula"
        )
        return inconclusive(message, "entailed", reason="unrelated_words")
    counterexample = {"counterexample": inference.problem.model(solver)}
    return verdict(Status.FAILED, "the premises do not entail it", failed=("entailed",), result=counterexample)


def _contradictory(inference: _Inference) -> Verdict:
    if not inference.total:
        return division("premises_consistent")
    message = "the premises contradict each other, so they prove nothing"
    result = {"contradictory": True, **inference.core()}
    return verdict(Status.FAILED, message, failed=("premises_consistent",), result=result)


def _entailed(inference: _Inference) -> Verdict:
    """No counterexample is defined; now none may hide behind a denominator that is zero."""
    conclusion = inference.conclusion
    if not inference.total:
        open_ = [z3.Not(premise.fails) for premise in inference.premises]
        answer, solver = inference.problem.solve(*open_, z3.Not(conclusion.holds))
        if answer != z3.unsat:
            return division("entailed") if answer == z3.sat else undecided(solver, "entailed")
    result = {"entailed": True, "method": METHOD, **inference.core(conclusion.fails)}
    passed = ("premises_consistent", "entailed")
    return verdict(Status.VERIFIED, "the premises entail it", passed=passed, result=result)
