"""Edits of policy sets, proved by the solver and tried by brute force on generated calls."""

import random
from collections.abc import Iterable
from typing import NamedTuple

from qwed.model.decision import Decision
from qwed.policy import CompiledPolicies, evaluate
from qwed.policy.analysis import Change, Comparison, ProofStatus, compare_policies
from qwed.policy.analysis.final_decision import STATUSES, Circumstances, final_decision
from tests.support.random_policies import (
    EDITS,
    TOOLS,
    PolicySet,
    compile_set,
    numbers_of,
    random_call,
    random_edit,
    random_set,
)

CHANGE_OF = {
    Decision.APPROVED: Change.ALLOWED,
    Decision.CORRECTED: Change.ALLOWED,
    Decision.PENDING: Change.ASKED,
    Decision.DENIED: Change.DENIED,
}
EVERY_CIRCUMSTANCE = tuple(Circumstances(status, person) for status in STATUSES for person in (False, True))


class TriedEdit(NamedTuple):
    """One edit, what was proved of it, and what calls became under it."""

    name: str
    comparison: Comparison
    seen: dict[Change, str]

    @property
    def wrong(self) -> list[str]:
        """Return the calls that were proved not to exist."""
        proofs = self.comparison.changes
        return [
            f"{self.name}: {proof.change}: {self.seen[proof.change]}"
            for proof in proofs
            if proof.status is ProofStatus.NONE and proof.change in self.seen
        ]

    @property
    def undecided(self) -> list[str]:
        """Return the questions that were not answered."""
        proofs = self.comparison.changes
        return [f"{self.name}: {proof.reason}" for proof in proofs if proof.status is ProofStatus.NOT_PROVEN]


def try_edits(seeds: Iterable[int], rules: int, calls: int) -> list[TriedEdit]:
    """Return edits of random policy sets, one for each seed."""
    return [_try_edit(seed, rules, calls) for seed in seeds]


def _try_edit(seed: int, rules: int, calls: int) -> TriedEdit:
    rng = random.Random(seed)
    before = random_set(rng, rules)
    name = list(EDITS)[seed % len(EDITS)]
    old = compile_set(before)
    assert old is not None
    new, after = random_edit(before, rng, name)
    return TriedEdit(
        f"seed {seed}, {name}", compare_policies(old, new), _try_calls(old, new, before, after, rng, calls)
    )


def _try_calls(
    old: CompiledPolicies, new: CompiledPolicies, before: PolicySet, after: PolicySet, rng: random.Random, calls: int
) -> dict[Change, str]:
    """Return one call for each change that was seen."""
    usage, numbers = sorted(old.usage | new.usage, key=repr), numbers_of(before, after)
    edited = [part for part in (*before, *after) if part not in before or part not in after]
    tools = sorted({tool for part in edited for tool in part.tools}) or list(TOOLS)
    seen: dict[Change, str] = {}
    for _ in range(calls):
        call = random_call(rng, tools, numbers, usage)
        outcomes = evaluate(old, call), evaluate(new, call)
        if outcomes[0] == outcomes[1]:
            continue
        for circumstances in EVERY_CIRCUMSTANCE:
            first, second = (CHANGE_OF[final_decision(outcome, call, circumstances)] for outcome in outcomes)
            if first is not second:
                seen.setdefault(second, f"{call} {circumstances}")
    return seen
