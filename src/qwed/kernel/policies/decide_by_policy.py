"""Order of a decision: hard limits, then policies (deny over ask over allow), then the tables (DESIGN 11).

The hard limits have passed where these functions are called: an assessment that one of them refuses is never evaluated.
"""

from typing import Any, NamedTuple

from qwed.kernel.answer import Answer, DecidingRule, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.stages.decide import (
    decide_by_tables,
    needs_approval,
    status_decision,
    stricter,
    trust_decision,
    with_decision,
)
from qwed.model import Decision, EffectKind, ErrorCode, Trust
from qwed.policy import PolicyAnswer, PolicyOutcome

_APPROVED, _PENDING, _DENIED = Decision.APPROVED, Decision.PENDING, Decision.DENIED
_TRUST_CHECK = "trust_level_sufficient"


class PolicyRuling(NamedTuple):
    """Decision about an assessed action under a policy set."""

    case: Case
    refusal: Answer | None = None
    rule: DecidingRule | None = None
    """Rule that decided; None where the tables did."""


def rule_of(outcome: PolicyOutcome, version: int) -> DecidingRule | None:
    """Return the rule behind an outcome, as answers name it; None where no rule matched."""
    if outcome.then is None:
        return None
    return DecidingRule(
        policy=outcome.policy_id,
        rule=outcome.rule_id,
        then=outcome.then,
        version=version,
        message=outcome.message,
        approvers=outcome.approvers,
    )


def decide_by_policy(case: Case, outcome: PolicyOutcome, version: int) -> PolicyRuling:
    """Return the decision about an action for which the policies have this outcome."""
    rule = rule_of(outcome, version)
    if rule is None or (outcome.then is PolicyAnswer.ALLOW and not _applies(case, outcome)):
        return _ruling(case, decide_by_tables(case), None)
    if outcome.then is PolicyAnswer.DENY:
        return PolicyRuling(case, _refuse(outcome, rule), rule)
    if outcome.then is PolicyAnswer.ASK:
        return _ruling(case, _ask(case, outcome), rule)
    return _ruling(case, _allow(case), rule)


def _ruling(case: Case, decided: Case | Answer, rule: DecidingRule | None) -> PolicyRuling:
    if isinstance(decided, Answer):
        # The tables refuse what the rule only asks about: they decided.
        return PolicyRuling(case, decided)
    return PolicyRuling(decided, None, rule)


def _applies(case: Case, outcome: PolicyOutcome) -> bool:
    """Return True if an allow counts for this agent: one that lost trust loses what policies allow."""
    agent = case.agent
    needed = agent.registered_trust if outcome.min_trust is None else Trust(outcome.min_trust)
    if agent.trust is Trust.UNTRUSTED or agent.trust < needed:
        return False
    verdict = case.verdict
    is_unresolved = verdict is not None and any(effect.kind is EffectKind.UNRESOLVED for effect in verdict.effects)
    return outcome.names_unresolved or not is_unresolved


def _allow(case: Case) -> Case:
    """Return the decision of an allow, which takes the place of the trust table and of nothing else."""
    decision = stricter(status_decision(case), _PENDING if needs_approval(case) else _APPROVED)
    return with_decision(case, decision, _checks_passed(case), by_trust=False)


def _ask(case: Case, outcome: PolicyOutcome) -> Case | Answer:
    """Return PENDING, or the refusal by trust, which only a rule that overrides trust lifts."""
    if not outcome.overrides_trust:
        decided = decide_by_tables(case)
        return decided if isinstance(decided, Answer) else replace(decided, decision=_PENDING)
    return replace(case, decision=_PENDING, checks_passed=_checks_passed(case))


def _checks_passed(case: Case) -> tuple[str, ...]:
    return case.checks_passed if trust_decision(case) is _DENIED else (*case.checks_passed, _TRUST_CHECK)


def _refuse(outcome: PolicyOutcome, rule: DecidingRule) -> Answer:
    details: dict[str, Any] = {"policy": rule.policy, "rule": rule.rule, "version": rule.version}
    if outcome.is_error:
        message = f"the rule `{rule.rule}` of the policy `{rule.policy}` could not be evaluated: {outcome.message}"
        return denied(ErrorCode.POLICY_FAILED, message, details=details)
    message = outcome.message or f"the rule `{rule.rule}` of the policy `{rule.policy}` denies it"
    return denied(ErrorCode.POLICY_DENIED, message, details=details)
