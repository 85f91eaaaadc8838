"""Judges an assessed action under a policy set: a pure function of the assessment, the set, the time and the usage."""

from collections.abc import Callable

import msgspec

from qwed.domain.policy_set import PolicySet
from qwed.domain.usage_window import NO_USAGE_VALUES, UncountableArgument, UsageValues
from qwed.domain.write_set import UsageEffects
from qwed.kernel.analysis.assess import build_assessment
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import Answer, DecidingRule, denied
from qwed.kernel.case import Case, PolicyJudgement, replace
from qwed.kernel.policies.action_input import original_input, policy_input
from qwed.kernel.policies.compiled_sets import compiled_set
from qwed.kernel.policies.decide_by_policy import PolicyRuling, decide_by_policy
from qwed.kernel.policies.usage import usage_of_call, uses_of_call
from qwed.model import ErrorCode
from qwed.policy import CompiledPolicies, PolicyAnswer, PolicyOutcome, evaluate
from qwed.settings import VERSION as SETTINGS_VERSION


def judge(
    case: Case,
    assessment: Assessment,
    basis: Case,
    policies: PolicySet,
    now: float,
    usage: UsageValues = NO_USAGE_VALUES,
) -> Case:
    """Return the case with its assessment under the policies, the rule that decided, and what it adds to usage."""
    ruling, shadow = ruling_of(basis, policies, now, usage)
    keys = usage_of_call(compiled_set(policies), basis)
    effects = None
    if ruling.refusal is None and (keys.read or keys.counted or keys.shadow_counted):
        uses = uses_of_call(basis, keys)
        if isinstance(uses, UncountableArgument):
            ruling = PolicyRuling(basis, _refuse_argument(uses, policies.version))
        else:
            values = {key: usage[key] for key in keys.read}
            effects = UsageEffects(uses=uses, values=values, is_same_on=_same_ruling(ruling, basis, policies, now))
    return replace(
        case,
        assessment=_assessment_under(assessment, ruling, policies),
        judgement=PolicyJudgement(policies, ruling.rule, shadow, effects),
    )


def _same_ruling(ruling: PolicyRuling, basis: Case, policies: PolicySet, now: float) -> Callable[[UsageValues], bool]:
    """Return the function that decides again on other usage, and tells whether anything is different."""

    def is_same(values: UsageValues) -> bool:
        again, _shadow = ruling_of(basis, policies, now, values)
        return again.refusal is None and again.rule == ruling.rule and again.case.decision is ruling.case.decision

    return is_same


def _refuse_argument(uncountable: UncountableArgument, version: int) -> Answer:
    details = {"tool": uncountable.tool, "argument": uncountable.argument, "version": version}
    return denied(ErrorCode.POLICY_FAILED, uncountable.message, details=details)


def ruling_of(
    basis: Case, policies: PolicySet, now: float, usage: UsageValues = NO_USAGE_VALUES
) -> tuple[PolicyRuling, tuple[DecidingRule, ...]]:
    """Return the decision about an analyzed action, and what policies in shadow would have decided."""
    outcome = outcome_of(basis, compiled_set(policies), now, usage)
    shadow = tuple(
        DecidingRule(policy=one.policy_id, rule=one.rule_id, then=one.then, version=policies.version)
        for one in outcome.shadow
    )
    return decide_by_policy(basis, outcome, policies.version), shadow


def outcome_of(
    basis: Case, compiled: CompiledPolicies, now: float, usage: UsageValues = NO_USAGE_VALUES
) -> PolicyOutcome:
    """Return what the policies say of an action; of a repaired one, unless they deny the original."""
    if basis.executable is not None:
        original = evaluate(compiled, original_input(basis, now, usage))
        if original.then is PolicyAnswer.DENY:
            return original
    return evaluate(compiled, policy_input(basis, now, usage))


def _assessment_under(assessment: Assessment, ruling: PolicyRuling, policies: PolicySet) -> Assessment:
    basis = ruling.case
    decision = basis.decision if ruling.refusal is None else ruling.refusal.decision
    if decision is not assessment.decision or ruling.refusal != assessment.refusal:
        assessment = build_assessment(basis, ruling.refusal)
    resolved = basis.resolved_action
    policy_hash = basis.agent.policy_hash(resolved.name, resolved.tool, SETTINGS_VERSION, policies.digest)
    return msgspec.structs.replace(assessment, policy_hash=policy_hash, basis=None)
