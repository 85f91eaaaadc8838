"""Policies at the approval of an action: decided again on the set of that moment, with the question answered."""

from collections.abc import Mapping
from dataclasses import replace as dataclass_replace
from typing import Any, NamedTuple

import msgspec

from qwed.domain.policy_set import PolicySet
from qwed.domain.usage_window import NO_USAGE_VALUES, UsageValues, values_without
from qwed.kernel.answer import Answer, DecidingRule, Problem, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.policies.compiled_sets import PolicySetError, compiled_set
from qwed.kernel.policies.judge import ruling_of
from qwed.kernel.policies.usage import usage_of_call
from qwed.kernel.privacy.payload import OriginalFindings
from qwed.kernel.request import read_action
from qwed.model import Effect, EffectKind, ErrorCode, Facts, Risk, Status, Verdict
from qwed.policy import PolicyAnswer
from qwed.store.protocol import ApprovalRecord, Store


class ApprovalRuling(NamedTuple):
    """Policies under which an action is approved."""

    policies: PolicySet
    rule: DecidingRule | None = None

    @property
    def leaf_members(self) -> dict[str, Any]:
        """Members of the leaf that name the rule and the version of the set."""
        if self.policies.is_empty:
            return {}
        names = {} if self.rule is None else {"policy": self.rule.policy, "policy_rule": self.rule.rule}
        return {"policy_version": self.policies.version, **names}


def rule_approval(
    approval: ApprovalRecord, content: Mapping[str, Any], case: Case, risk: Risk, policies: PolicySet, store: Store
) -> ApprovalRuling | Problem:
    """Return the rule that a present decision would name, or why the action would be refused today."""
    if content.get("facts") is None:
        return _refuse("the request is from before the policies: reject it, and let the agent send it again")
    analyzed = _analyzed(case, content, risk)
    if isinstance(analyzed, Problem):
        return analyzed
    try:
        ruling, _shadow = ruling_of(analyzed, policies, case.now, _usage_of(approval, analyzed, policies, store))
    except PolicySetError:
        return problem(ErrorCode.POLICIES_DAMAGED)
    if ruling.refusal is not None:
        error = ruling.refusal.error
        return _refuse("" if error is None else error.message, {} if error is None else error.details)
    missing = _unanswered(approval, ruling.rule)
    if missing:
        return _refuse(f"it would need the approval of {' and '.join(missing)}: reject it, and let the agent ask again")
    return ApprovalRuling(policies, ruling.rule)


def _usage_of(approval: ApprovalRecord, analyzed: Case, policies: PolicySet, store: Store) -> UsageValues:
    """Return the rolling usage that rules read, without what the request itself holds."""
    keys = usage_of_call(compiled_set(policies), analyzed).all_read
    if not keys:
        return NO_USAGE_VALUES
    agent_id, organisation_id = analyzed.agent.agent_id, analyzed.agent.organisation_id
    values = store.usage_values(agent_id, organisation_id, keys, analyzed.now)
    return values_without(values, store.held_uses(approval.approval_id), agent_id, organisation_id)


def _unanswered(approval: ApprovalRecord, rule: DecidingRule | None) -> list[str]:
    """Return the groups that the present rule asks and the request did not."""
    if rule is None or rule.then != PolicyAnswer.ASK:
        return []
    return [f"the group `{group}`" for group in rule.approvers if group not in approval.approver_groups]


def _analyzed(case: Case, content: Mapping[str, Any], risk: Risk) -> Case | Problem:
    """Return the case with the stored findings of its analysis."""
    verification = content.get("verification") or {}
    verdict = Verdict(
        status=Status(verification["status"]),
        engine=verification["engine"],
        message=verification.get("message", ""),
        effects=tuple([Effect(EffectKind(one["effect"]), one["target"]) for one in verification["effects"]]),
        checks_failed=tuple(verification["checks_failed"]),
    )
    case = replace(case, verdict=verdict, facts=msgspec.convert(content["facts"], Facts), risk=risk)
    corrected = content.get("corrected")
    if corrected is None:
        return case
    executable = read_action(corrected)
    if isinstance(executable, Answer):
        return _refuse("its correction cannot be read")
    before = msgspec.convert(content["original"], OriginalFindings)
    original = dataclass_replace(verdict, effects=before.effects, facts=before.facts)
    return replace(case, executable=executable, original_verdict=original, corrected=corrected)


def _refuse(reason: str, details: dict[str, Any] | None = None) -> Problem:
    message = f"it would be refused today: {reason}"
    return problem(ErrorCode.CONFLICT, message, check="policy_unchanged", details=details or {})
