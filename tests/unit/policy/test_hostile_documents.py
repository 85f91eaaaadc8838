"""Hostile documents, conditions and values end, and are never an allow."""

from qwed.policy import CompiledPolicies, PolicyAnswer, PolicySource, compile_policies, evaluate
from tests.support.case_tables import each
from tests.support.policy_calls import call
from tests.unit.policy.hostile_documents import HostileCase, cases

CASES = cases()


@each("case", CASES, ids=lambda case: case.name)
def test_a_hostile_case_is_refused_or_does_not_allow(case: HostileCase) -> None:
    policies = compile_policies([PolicySource("hostile.yaml", case.document)])
    if isinstance(policies, CompiledPolicies):
        outcome = evaluate(policies, call("x", args=case.args, facts=case.facts, effects=case.effects))
        assert outcome.then is not PolicyAnswer.ALLOW
    else:
        assert policies
        assert all(problem.render().encode() for problem in policies)


def test_there_are_at_least_500_hostile_cases() -> None:
    assert len(CASES) >= 500
