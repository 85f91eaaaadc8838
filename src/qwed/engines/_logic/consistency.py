"""Consistency check of claims: first the formulas alone, then together with the sentences."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import z3

from qwed.engines._logic.claims import Claim, ClaimKind, fold_case
from qwed.engines._logic.predicate_names import unify_vocabulary
from qwed.engines._logic.sexpr import LogicRefusalError, NotFormalError
from qwed.engines._logic.solve import Problem
from qwed.engines._logic.verdicts import division_by_zero, make_verdict, undecided
from qwed.model import Status, Verdict

FORMULAS_SECONDS, SENTENCES_SECONDS = 5.0, 1.5
"""Time limits, together below the limit of one agent request; formulas come first."""
_CHECK = "consistent"


def check_consistency(claims: Sequence[Claim]) -> Verdict:
    """Return FAILED if claims contradict each other, VERIFIED if all are formulas and can be true together."""
    try:
        return _check_claims(claims)
    except LogicRefusalError as error:
        # Next to `profit > 5`, a claim `profit` is a word, not a proposition.
        others = [replace(claim, kind=ClaimKind.TEXT) if claim.is_word else claim for claim in claims]
        if others == list(claims):
            return _inconclusive(
                f"read together: {error.message}", _numbers_by_kind(claims), reason="unclear", why=error.message
            )
    return check_consistency(others)


def _check_claims(claims: Sequence[Claim]) -> Verdict:
    numbers = _numbers_by_kind(claims)
    unclear = next((claim for claim in claims if claim.kind is ClaimKind.UNCLEAR), None)
    if unclear is not None:
        message = f"claim {unclear.number} is a formula that cannot be read: {unclear.message}"
        return _inconclusive(message, numbers, reason="unclear", claim=unclear.number, why=unclear.message)
    outcome = _find_contradiction(_of_kind(claims, ClaimKind.FORMULA), FORMULAS_SECONDS) or _check_with_sentences(
        claims
    )
    if outcome is not None:
        return replace(outcome, result={**numbers, **outcome.result})
    if len(numbers[ClaimKind.FORMULA]) == len(claims):
        return make_verdict(Status.VERIFIED, "the claims can all be true", passed=(_CHECK,), result=numbers)
    return _inconclusive("no contradiction was found, but not every claim is a formula", numbers, reason="text")


def _of_kind(claims: Sequence[Claim], *kinds: ClaimKind) -> list[Claim]:
    return [claim for claim in claims if claim.kind in kinds]


def _numbers_by_kind(claims: Sequence[Claim]) -> dict[str, Any]:
    return {kind.value: [claim.number for claim in _of_kind(claims, kind)] for kind in ClaimKind}


def _inconclusive(message: str, numbers: dict[str, Any], **more: Any) -> Verdict:
    return make_verdict(Status.INCONCLUSIVE, message, failed=(_CHECK,), result={**numbers, **more})


def _check_with_sentences(claims: Sequence[Claim]) -> Verdict | None:
    """Look for a contradiction with the sentences included; any other result is ignored."""
    if not _of_kind(claims, ClaimKind.SENTENCE):
        return None
    try:
        outcome = _find_contradiction(_of_kind(claims, ClaimKind.FORMULA, ClaimKind.SENTENCE), SENTENCES_SECONDS)
    except (NotFormalError, LogicRefusalError):
        return None
    return outcome if outcome is not None and outcome.status is Status.FAILED else None


def _find_contradiction(claims: Sequence[Claim], seconds: float) -> Verdict | None:
    """Return the contradiction, or the reason it is undecided; None if all claims can be true."""
    if not claims:
        return None
    problem = Problem.from_trees(unify_vocabulary(fold_case([claim.parsed for claim in claims])).trees)
    problem = replace(problem, deadline=time.monotonic() + seconds)
    answer, solver = problem.solve(*(statement.holds for statement in problem.statements))
    if answer == z3.unknown:
        return undecided(solver, _CHECK)
    if answer == z3.sat:
        return None
    if not all(statement.total for statement in problem.statements):
        return division_by_zero(_CHECK)
    core = [claims[index].number for index in problem.core([statement.holds for statement in problem.statements])]
    result = {"contradictory": True, "unsat_core": sorted(core)}
    return make_verdict(Status.FAILED, "the claims contradict each other", failed=(_CHECK,), result=result)
