"""Whether claims can all be true: those that are formulas first, then those with the sentences beside them."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import z3

from qwed.engines._logic.claims import Claim, Reads, without_case
from qwed.engines._logic.solve import Problem
from qwed.engines._logic.syntax import NotFormal, Refusal
from qwed.engines._logic.verdicts import division, undecided, verdict
from qwed.engines._logic.vocabulary import joined
from qwed.words import Status, Verdict

FORMULAS_SECONDS, SENTENCES_SECONDS = 5.0, 1.5
"""Together less than an agent's question may take; sentences are tried, formulas have to be decided."""
_CHECK = "consistent"


def consistency(claims: Sequence[Claim]) -> Verdict:
    """FAILED where claims contradict each other, VERIFIED where all are formulas that can be true together."""
    try:
        return _judged(claims)
    except Refusal as wrong:
        # `profit` beside `profit > 5` is a word and no proposition.
        others = [replace(claim, reads=Reads.TEXT) if claim.is_word else claim for claim in claims]
        if others == list(claims):
            return _open(f"read together: {wrong.message}", _told(claims), reason="unclear", why=wrong.message)
    return consistency(others)


def _judged(claims: Sequence[Claim]) -> Verdict:
    told = _told(claims)
    unclear = next((claim for claim in claims if claim.reads is Reads.UNCLEAR), None)
    if unclear is not None:
        message = f"claim {unclear.number} is a formula that cannot be read: {unclear.message}"
        return _open(message, told, reason="unclear", claim=unclear.number, why=unclear.message)
    found = _decided(_of(claims, Reads.FORMULA), FORMULAS_SECONDS) or _with_sentences(claims)
    if found is not None:
        return replace(found, result={**told, **found.result})
    if len(told[Reads.FORMULA]) == len(claims):
        return verdict(Status.VERIFIED, "the claims can all be true", passed=(_CHECK,), result=told)
    return _open("no contradiction was found, but not every claim is a formula", told, reason="text")


def _of(claims: Sequence[Claim], *reads: Reads) -> list[Claim]:
    return [claim for claim in claims if claim.reads in reads]


def _told(claims: Sequence[Claim]) -> dict[str, Any]:
    return {each.value: [claim.number for claim in _of(claims, each)] for each in Reads}


def _open(message: str, told: dict[str, Any], **more: Any) -> Verdict:
    return verdict(Status.INCONCLUSIVE, message, failed=(_CHECK,), result={**told, **more})


def _with_sentences(claims: Sequence[Claim]) -> Verdict | None:
    """Only a contradiction counts: what English leaves open is left open."""
    if not _of(claims, Reads.SENTENCE):
        return None
    try:
        found = _decided(_of(claims, Reads.FORMULA, Reads.SENTENCE), SENTENCES_SECONDS)
    except (NotFormal, Refusal):
        return None
    return found if found is not None and found.status is Status.FAILED else None


def _decided(claims: Sequence[Claim], seconds: float) -> Verdict | None:
    """None where they can all be true; else the contradiction, or why it cannot be told."""
    if not claims:
        return None
    problem = Problem.of(joined(without_case([claim.reading for claim in claims])).trees)
    problem = replace(problem, deadline=time.monotonic() + seconds)
    answer, solver = problem.solve(*(statement.holds for statement in problem.statements))
    if answer == z3.unknown:
        return undecided(solver, _CHECK)
    if answer == z3.sat:
        return None
    if not all(statement.total for statement in problem.statements):
        return division(_CHECK)
    core = [claims[index].number for index in problem.core([statement.holds for statement in problem.statements])]
    result = {"contradictory": True, "unsat_core": sorted(core)}
    return verdict(Status.FAILED, "the claims contradict each other", failed=(_CHECK,), result=result)
