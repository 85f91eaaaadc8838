"""Runner of the tests of policy documents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from qwed.policy.compiled_policies import CompiledPolicies, CompiledPolicy
from qwed.policy.document import PolicyAnswer, PolicyTest, UsageKey
from qwed.policy.evaluator import evaluate
from qwed.policy.policy_input import PolicyInput, PolicyOutcome
from qwed.policy.problem import PolicyProblem

Usage = Mapping[UsageKey, Decimal | int]
Analyze = Callable[[PolicyTest, Usage], PolicyInput | str]
"""Analyzes the call of a test as the server would; returns why it is refused before any rule is asked otherwise."""


@dataclass(frozen=True, slots=True)
class PolicyTestResult:
    """Result of one test."""

    policy: CompiledPolicy
    test: PolicyTest
    outcome: PolicyOutcome | None
    """None if the call is refused before any rule is asked."""
    failure: str = ""
    """Why the test failed; empty if it passed."""

    @property
    def problem(self) -> PolicyProblem:
        """The failure as a problem of the document."""
        policy = self.policy.policy
        return policy.source.problem(self.test.at, self.failure, policy=policy.policy_id)


def run_policy_tests(policies: CompiledPolicies, analyze: Analyze) -> tuple[PolicyTestResult, ...]:
    """Run every test of every policy; each policy is tested alone, and one in shadow mode as if it decided."""
    return tuple(
        _run(owner, test, _alone(owner, policies, any_agent=not test.agent), analyze)
        for owner in policies.policies
        for test in owner.policy.tests
    )


def _alone(owner: CompiledPolicy, policies: CompiledPolicies, *, any_agent: bool) -> CompiledPolicies:
    """Return one policy of a set; with `any_agent` it applies to every agent: the test names none."""
    tested = replace(owner, agents=None) if any_agent else owner
    rules = (replace(rule, owner=tested) for rule in policies.rules if rule.owner is owner)
    return CompiledPolicies((tested,), rules)


def _run(owner: CompiledPolicy, test: PolicyTest, alone: CompiledPolicies, analyze: Analyze) -> PolicyTestResult:
    unknown = sorted(f"{key.measure} of `{key.tool}`" for key in test.usage.keys() - alone.usage)
    if unknown:
        return PolicyTestResult(owner, test, None, f"no rule reads the usage {unknown[0]} over this window")
    call = analyze(test, {key: test.usage.get(key, 0) for key in alone.usage})
    if isinstance(call, str):
        return PolicyTestResult(owner, test, None, f"the call is refused before any rule is asked: {call}")
    outcome = evaluate(alone, call)
    then = outcome.then
    if outcome.shadow:
        then = outcome.shadow[0].then
    if then is test.expect and not outcome.is_error:
        return PolicyTestResult(owner, test, outcome)
    return PolicyTestResult(owner, test, outcome, _failure(test.expect, then, outcome))


def _failure(expect: PolicyAnswer | None, then: PolicyAnswer | None, outcome: PolicyOutcome) -> str:
    rule_id = outcome.rule_id or (outcome.shadow[0].rule_id if outcome.shadow else "")
    by = f" by rule `{rule_id}`" if rule_id else ""
    why = f": {outcome.message}" if outcome.is_error or outcome.is_incomplete else ""
    return f"expected `{expect or 'none'}`, got `{then or 'none'}`{by}{why}"
