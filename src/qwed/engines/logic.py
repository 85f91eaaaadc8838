"""Logic engine: satisfiability of a formula, entailment from premises, or consistency of claims (DESIGN 8).

A satisfiable query is VERIFIED with a model, an unsatisfiable one FAILED. Premises that contradict each other entail
everything and so prove nothing: FAILED, with that reason. A result that depends on a division by zero is INCONCLUSIVE.
So is a sentence outside the controlled grammar, or one without a proof if its words may be related.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lark
import z3

from qwed.engines._logic.arguments import Argument, argument_from, argument_of
from qwed.engines._logic.claims import parse_claims
from qwed.engines._logic.consistency import check_consistency
from qwed.engines._logic.notation import ParsedText, parse_text
from qwed.engines._logic.predicate_names import unify_vocabulary
from qwed.engines._logic.sexpr import LogicRefusalError, NotFormalError
from qwed.engines._logic.solve import Problem
from qwed.engines._logic.type_inference import is_declaration
from qwed.engines._logic.verdicts import division_by_zero, inconclusive, make_verdict, refused_verdict, undecided
from qwed.engines._logic.z3_encoding import Truth
from qwed.engines.protocol import EngineRequest
from qwed.model import Record, Status, Verdict

__all__ = ["LogicResult", "verify", "verify_logic_statement"]

METHOD = "z3 refutes the negated conclusion"
_NOT_A_FORMULA = "not a formula: write an expression such as `(GT x 1)` or a comparison such as `x > 1`"
_SOLVER_ERRORS = (z3.Z3Exception, lark.exceptions.LarkError, RecursionError, MemoryError, OverflowError, ValueError)


@dataclass(frozen=True)
class LogicResult(Record):
    """Result of an entailment check, with the method of the proof or a counterexample."""

    verified: bool
    message: str
    method: str | None = None
    counterexample: Mapping[str, str] | None = None


def verify_logic_statement(premises: Sequence[str] | str, conclusion: str) -> LogicResult:
    """Check that the premises entail the conclusion, in this process and within the engine's limits."""
    outcome = _run(lambda: _entailment(argument_from(premises, conclusion)))
    return LogicResult(
        outcome.verified, outcome.message, outcome.result.get("method"), outcome.result.get("counterexample")
    )


def verify(request: EngineRequest) -> Verdict:
    """Decide satisfiability of the query, entailment of the conclusion, or consistency of the claims."""
    return _run(lambda: _verify_request(request))


def _run(judge: Callable[[], Verdict]) -> Verdict:
    try:
        return judge()
    except LogicRefusalError as refusal:
        return refused_verdict(refusal)
    except NotFormalError as error:
        return inconclusive(error.reason or _NOT_A_FORMULA, "syntax_valid", before=())
    except _SOLVER_ERRORS as failure:
        return inconclusive(f"could not be decided: {type(failure).__name__}", "decided", before=())


def _verify_request(request: EngineRequest) -> Verdict:
    claims = parse_claims(request.query, request.parameters)
    if claims is not None:
        return check_consistency(claims)
    argument = argument_of(request.query, request.parameters)
    return _satisfiability(request.query) if argument is None else _entailment(argument)


def _satisfiability(text: str) -> Verdict:
    parsed = parse_text(text)
    _require_one_formula(parsed)
    problem = Problem.from_trees(unify_vocabulary([parsed]).trees)
    (claim,) = problem.statements
    answer, solver = problem.solve(claim.holds)
    if answer == z3.sat:
        return _satisfied_verdict(problem, solver, claim, english=parsed.english)
    if answer == z3.unknown:
        return undecided(solver, "satisfiable")
    if not claim.total and problem.solve(z3.Not(claim.fails))[0] != z3.unsat:
        return division_by_zero("satisfiable")
    core = problem.core([part.holds for part in problem.parts])
    return make_verdict(Status.FAILED, "no values satisfy it", failed=("satisfiable",), result={"unsat_core": core})


def _satisfied_verdict(problem: Problem, solver: Any, claim: Truth, *, english: bool) -> Verdict:
    if _contradicts_model(solver, claim.holds):
        return undecided(solver, "satisfiable")
    if english:
        message = "a sentence is not proven by being possible, give `premises` and a `conclusion`"
        return inconclusive(message, "proven")
    result = {"satisfiable": True, "model": problem.model(solver)}
    return make_verdict(Status.VERIFIED, "satisfiable", passed=("satisfiable",), result=result)


def _contradicts_model(solver: Any, *formulas: Any) -> bool:
    """Check the solver's model where possible: return True if a formula is false with the values substituted."""
    model = solver.model()
    return any(z3.is_false(z3.simplify(model.eval(formula, model_completion=True))) for formula in formulas)


def _count_formulas(parsed: ParsedText) -> int:
    return sum(not is_declaration(tree) for tree in parsed.trees)


def _require_one_formula(parsed: ParsedText) -> None:
    if _count_formulas(parsed) != 1:
        raise LogicRefusalError("PARSE_ERROR", "one formula is needed, join several with AND", parsed.trees[-1].at)


@dataclass(frozen=True, slots=True)
class _Inference:
    """Argument compiled for the solver."""

    argument: Argument
    problem: Problem
    sources: tuple[int, ...]
    """Index of the premise of each statement; a premise that is only a declaration has no statement."""
    doubts: tuple[str, ...]

    @property
    def premises(self) -> tuple[Truth, ...]:
        """All statements but the last."""
        return self.problem.statements[:-1]

    @property
    def conclusion(self) -> Truth:
        """Last statement."""
        return self.problem.statements[-1]

    @property
    def total(self) -> bool:
        """True if no statement divides by a term that may be zero."""
        return all(statement.total for statement in self.problem.statements)

    def core(self, *always: Any) -> dict[str, Any]:
        """Return the premises that are needed, by number and by text."""
        indices = self.problem.core([premise.holds for premise in self.premises], always)
        numbers = [self.sources[index] for index in indices]
        return {"unsat_core": numbers, "core_premises": [self.argument.premises[index] for index in numbers]}


def _entailment(argument: Argument) -> Verdict:
    texts = [parse_text(text) for text in (*argument.premises, argument.conclusion)]
    _require_one_formula(texts[-1])
    for parsed in texts:
        if _count_formulas(parsed) > 1:
            _require_one_formula(parsed)
    vocabulary = unify_vocabulary(texts)
    sources = tuple(index for index, parsed in enumerate(texts[:-1]) if _count_formulas(parsed))
    return _decide(_Inference(argument, Problem.from_trees(vocabulary.trees), sources, vocabulary.doubts))


def _decide(inference: _Inference) -> Verdict:
    premises = [premise.holds for premise in inference.premises]
    answer, solver = inference.problem.solve(*premises, inference.conclusion.fails)
    if answer == z3.sat:
        return _not_entailed_verdict(inference, solver)
    if answer == z3.unknown:
        return undecided(solver, "entailed")
    possible, solver = inference.problem.solve(*premises)
    if possible == z3.unknown:
        return undecided(solver, "premises_consistent")
    return _entailed_verdict(inference) if possible == z3.sat else _contradictory_verdict(inference)


def _not_entailed_verdict(inference: _Inference, solver: Any) -> Verdict:
    if _contradicts_model(solver, *(premise.holds for premise in inference.premises), inference.conclusion.fails):
        return undecided(solver, "entailed")
    if inference.doubts:
        message = (
            f"not proven as read, but {inference.doubts[0]} are read as unrelated: use the same words, or a formula"
        )
        return inconclusive(message, "entailed", reason="unrelated_words")
    counterexample = {"counterexample": inference.problem.model(solver)}
    return make_verdict(Status.FAILED, "the premises do not entail it", failed=("entailed",), result=counterexample)


def _contradictory_verdict(inference: _Inference) -> Verdict:
    if not inference.total:
        return division_by_zero("premises_consistent")
    message = "the premises contradict each other, so they prove nothing"
    result = {"contradictory": True, **inference.core()}
    return make_verdict(Status.FAILED, message, failed=("premises_consistent",), result=result)


def _entailed_verdict(inference: _Inference) -> Verdict:
    """Return VERIFIED, after ruling out a counterexample in which a denominator is zero."""
    conclusion = inference.conclusion
    if not inference.total:
        not_failing = [z3.Not(premise.fails) for premise in inference.premises]
        answer, solver = inference.problem.solve(*not_failing, z3.Not(conclusion.holds))
        if answer != z3.unsat:
            return division_by_zero("entailed") if answer == z3.sat else undecided(solver, "entailed")
    result = {"entailed": True, "method": METHOD, **inference.core(conclusion.fails)}
    passed = ("premises_consistent", "entailed")
    return make_verdict(Status.VERIFIED, "the premises entail it", passed=passed, result=result)
