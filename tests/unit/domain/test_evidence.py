"""Trust evidence at a trust level: what counts as an action, a denial and an attestation (spec 8.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from qwed.domain.behaviour import NO_EVIDENCE, BehaviourFlag, TrustEvidence

EARNED = TrustEvidence(5.0, 10, 2, 3)


@pytest.mark.parametrize("attested", [False, True])
@pytest.mark.parametrize(
    ("mark", "actions", "denied"),
    [
        (BehaviourFlag.CLEAN, 11, 2),
        (BehaviourFlag.DENIED, 11, 3),
        (BehaviourFlag.VIOLATION, 11, 3),
        (BehaviourFlag.EXCEEDED, 10, 2),
        (BehaviourFlag.NONE, 10, 2),
    ],
    ids=lambda value: value.name if isinstance(value, BehaviourFlag) else "",
)
def test_a_decision_counts_where_it_says_something_about_the_agent(
    mark: BehaviourFlag, actions: int, denied: int, attested: bool
) -> None:
    counts = actions > EARNED.actions
    assert EARNED.after(mark, attested) == TrustEvidence(5.0, actions, denied, 3 + (attested and counts))


@pytest.mark.parametrize(
    ("state", "after"),
    [("approved", replace(EARNED, attestations=4)), ("rejected", replace(EARNED, denied=3)), ("expired", EARNED)],
)
def test_what_a_person_says_counts_and_that_nobody_came_does_not(state: str, after: TrustEvidence) -> None:
    assert EARNED.after_resolution(state) == after


@given(st.lists(st.tuples(st.sampled_from(BehaviourFlag), st.booleans()), max_size=60))
def test_nothing_is_denied_or_attested_that_was_no_action(decisions: list[tuple[BehaviourFlag, bool]]) -> None:
    evidence = NO_EVIDENCE
    for mark, attested in decisions:
        before, evidence = evidence, evidence.after(mark, attested)
        assert all(new >= old for new, old in zip(astuple(evidence), astuple(before), strict=True))
    assert max(evidence.denied, evidence.attestations) <= evidence.actions <= len(decisions)
    assert evidence.level_since == 0.0
