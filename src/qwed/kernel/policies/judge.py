"""Judges an assessed action under a policy set: a pure function of the assessment, the set and the time."""

import msgspec

from qwed.domain.policy_set import PolicySet
from qwed.kernel.analysis.assess import build_assessment
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import DecidingRule
from qwed.kernel.case import Case, PolicyJudgement, replace
from qwed.kernel.policies.action_input import original_input, policy_input
from qwed.kernel.policies.compiled_sets import compiled_set
from qwed.kernel.policies.decide_by_policy import PolicyRuling, decide_by_policy
from qwed.policy import CompiledPolicies, PolicyAnswer, PolicyOutcome, evaluate
from qwed.settings import VERSION as SETTINGS_VERSION


def judge(case: Case, assessment: Assessment, basis: Case, policies: PolicySet, now: float) -> Case:
    """Return the case with its assessment under the policies, and the rule that decided."""
    ruling, shadow = ruling_of(basis, policies, now)
    return replace(
        case,
        assessment=_assessment_under(assessment, ruling, policies),
        judgement=PolicyJudgement(policies, ruling.rule, shadow),
    )


def ruling_of(basis: Case, policies: PolicySet, now: float) -> tuple[PolicyRuling, tuple[DecidingRule, ...]]:
    """Return the decision about an analyzed action, and what policies in shadow would have decided."""
    outcome = outcome_of(basis, compiled_set(policies), now)
    shadow = tuple(
        DecidingRule(policy=one.policy_id, rule=one.rule_id, then=one.then, version=policies.version)
        for one in outcome.shadow
    )
    return decide_by_policy(basis, outcome, policies.version), shadow


def outcome_of(basis: Case, compiled: CompiledPolicies, now: float) -> PolicyOutcome:
    """Return what the policies say of an action; of a repaired one, unless they deny the original."""
    if basis.executable is not None:
        original = evaluate(compiled, original_input(basis, now))
        if original.then is PolicyAnswer.DENY:
            return original
    return evaluate(compiled, policy_input(basis, now))


def _assessment_under(assessment: Assessment, ruling: PolicyRuling, policies: PolicySet) -> Assessment:
    basis = ruling.case
    decision = basis.decision if ruling.refusal is None else ruling.refusal.decision
    if decision is not assessment.decision or (ruling.refusal is not None and ruling.rule is not None):
        assessment = build_assessment(basis, ruling.refusal)
    resolved = basis.resolved_action
    policy_hash = basis.agent.policy_hash(resolved.name, resolved.tool, SETTINGS_VERSION, policies.digest)
    return msgspec.structs.replace(assessment, policy_hash=policy_hash, basis=None)
