"""Explanation of a decision that nobody asked for: which rules looked at an action, and which would decide."""

from collections.abc import Coroutine
from typing import Any

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.analysis.assess import assess
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import Answer, DecidingRule, Problem, problem
from qwed.kernel.case import Case, Credentials, replace
from qwed.kernel.policies.action_input import policy_input
from qwed.kernel.policies.compiled_sets import compiled_set
from qwed.kernel.policies.judge import ruling_of
from qwed.kernel.policies.usage import usage_of_call
from qwed.kernel.request import NO_OPTIONS, read_action, read_options
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode
from qwed.policy import explain
from qwed.policy.evaluator import RuleResult


class RuleExplanationView(View, frozen=True, kw_only=True):
    """Answer of one rule about the action; `then` is null if it does not match."""

    policy: str
    rule: str
    mode: str
    then: str | None
    reason: str


class ExplanationView(View, frozen=True, kw_only=True):
    """Decision that would be made about an action, and why; `policy` is null where hard limits or the tables decide."""

    decision: str
    error: Problem | None
    policy: DecidingRule | None
    version: int
    risk_level: str
    effects: list[dict[str, str]]
    facts: dict[str, Any]
    rules: list[RuleExplanationView]


async def explain_action(
    raw: Any, options: Any, agent: Agent, now: float, services: Services
) -> ExplanationView | Problem:
    """Return what would be decided about an action of an agent, without a step, a charge or an entry of the log.

    Step, loops and budget are not looked at.
    """
    policies = services.store.policies(agent.organisation_id)
    case = _case_of(raw, options, agent, now, services)
    if isinstance(case, Answer):
        return case.error or problem(ErrorCode.INTERNAL)
    assessed: Assessment | Coroutine[Any, None, Assessment] = assess(case, services)
    assessment = assessed if isinstance(assessed, Assessment) else await assessed
    basis = assessment.basis
    if basis is None or policies.is_empty:
        return _explanation(assessment, None, policies.version, [])
    compiled = compiled_set(policies)
    keys = usage_of_call(compiled, basis).all_read
    usage = services.store.usage_values(agent.agent_id, agent.organisation_id, keys, now)
    (ruled, refusal, rule), _shadow = ruling_of(basis, policies, now, usage)
    results = explain(compiled, policy_input(basis, now, usage)).results
    decided = replace(ruled, assessment=None)
    explained = _explanation(assessment, rule, policies.version, [_rule(result) for result in results], decided)
    decision = decided.decision if refusal is None else refusal.decision
    return msgspec.structs.replace(explained, decision=decision, error=None if refusal is None else refusal.error)


def _case_of(raw: Any, options: Any, agent: Agent, now: float, services: Services) -> Case | Answer:
    action = read_action(raw)
    if isinstance(action, Answer):
        return action
    read = NO_OPTIONS if options is None else read_options(options)
    if isinstance(read, Answer):
        return read
    return Case(
        agent_id=agent.agent_id,
        credentials=Credentials(organisation_id=agent.organisation_id),
        action_raw=None,
        now=now,
        agent=agent,
        action=action,
        action_hash=action.hash,
        options=read,
        tools=services.store.tool_rows(agent.organisation_id),
    )


def _explanation(
    assessment: Assessment,
    rule: DecidingRule | None,
    version: int,
    rules: list[RuleExplanationView],
    case: Case | None = None,
) -> ExplanationView:
    verification = assessment.verification
    facts = {} if case is None else _facts_of(case)
    return ExplanationView(
        decision=assessment.decision,
        error=None if assessment.refusal is None else assessment.refusal.error,
        policy=rule,
        version=version,
        risk_level=assessment.risk.word,
        effects=[] if verification is None else [dict(effect) for effect in verification.effects],
        facts=facts,
        rules=rules,
    )


def _facts_of(case: Case) -> dict[str, Any]:
    """Return the groups of facts that are present."""
    facts = msgspec.to_builtins(case.facts)
    return {name: group for name, group in facts.items() if group is not None}


def _rule(result: RuleResult) -> RuleExplanationView:
    policy_id, rule_id = result.rule.key
    policy = result.rule.owner.policy
    return RuleExplanationView(
        policy=policy_id,
        rule=rule_id,
        mode=policy.mode,
        then=None if result.then is None else result.then,
        reason=result.reason or result.rule.rule.message,
    )
