"""The decision: a pure function of the request, the snapshot and the assessment of its action.

Nothing is read, written, drawn or timed here. The pipeline, a simulation and a replay of history call the same
function.
"""

import msgspec

from qwed.domain.behaviour import BehaviourFlag, DegradationRule
from qwed.domain.budget import NO_COST, RequestCost, exceeded_limit
from qwed.domain.policy_set import NO_POLICIES, PolicySet
from qwed.domain.snapshot import Snapshot
from qwed.kernel.admission import admit, refuse_budget
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import HTTP, Answer, DecidingRule, Problem, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.policies.judge import judge
from qwed.ledger.attest import Chain
from qwed.model import Decision, ErrorCode, Risk
from qwed.settings import Settings

_PENDING, _DENIED, _BUDGET_EXCEEDED = Decision.PENDING, Decision.DENIED, Decision.BUDGET_EXCEEDED
_HIGH = Risk.HIGH
_POLICY_CODES = frozenset({ErrorCode.POLICY_DENIED.code, ErrorCode.POLICY_FAILED.code})
_APPROVALS_LEFT = ErrorCode.APPROVALS_FULL.check


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What is decided, before it has an id and a place in the log."""

    decision: Decision
    error: Problem | None = None
    charge: RequestCost = NO_COST
    is_attested: bool = False
    chain: Chain | None = None
    """Position of its attestation in a chain."""
    behaviour_flag: BehaviourFlag = BehaviourFlag.NONE
    broken_rules: tuple[DegradationRule, ...] = ()
    """Rules of spec 8.3 that it breaks, which lower the agent's trust."""
    rule: DecidingRule | None = None
    """Rule of the organisation's policies that decided."""
    policies: PolicySet | None = None
    """Policy set that it depends on."""

    @property
    def may_pass_after_expiry(self) -> bool:
        """True if open approvals stand in the way: some of them may have expired."""
        return self.decision is _BUDGET_EXCEEDED or (self.error is not None and self.error.check == _APPROVALS_LEFT)


def decide(case: Case, snapshot: Snapshot, assessment: Assessment, settings: Settings) -> tuple[Case, Outcome]:
    """Return the decision about a request with this assessment."""
    admission = admit(case, snapshot, settings)
    case, refusal = admission.case, admission.refusal
    if refusal is None:
        case = apply_policies(replace(case, assessment=assessment), snapshot, case.now)
    return case, conclude(case, snapshot, refusal, settings, case.now)


def apply_policies(case: Case, snapshot: Snapshot, now: float) -> Case:
    """Return an assessed case with what the organisation's policies make of it; raise PolicySetError for a set that
    cannot be evaluated."""
    assessment, policies = case.assessment, snapshot.policies
    if policies is NO_POLICIES or assessment is None or assessment.basis is None or policies.is_empty:
        return case
    return judge(case, assessment, assessment.basis, policies, now, snapshot.usage_values)


def conclude(case: Case, snapshot: Snapshot, refusal: Answer | None, settings: Settings, now: float) -> Outcome:
    """Return the decision about an admitted and assessed request, or about a refused one."""
    assessment = case.assessment
    assessed = None if assessment is None else assessment.refusal
    if refusal is None and assessment is not None:
        refusal = assessed
        charge = case.charge
        if refusal is None and assessment.risk >= _HIGH and case.agent.limits.high_risk_calls_per_day is not None:
            charge, refusal = _with_high_risk_call(case, snapshot, now)
        if refusal is None and assessment.decision is _PENDING:
            refusal = _refuse_approvals(snapshot, settings.max_open_approvals)
        if refusal is None:
            return _approved(case, assessment, charge, snapshot, now)
    refusal = refusal or denied(ErrorCode.INTERNAL)
    exceeded = refusal.decision is _BUDGET_EXCEEDED
    flag = _flag_of(case, refusal)
    return Outcome(
        refusal.decision,
        refusal.error,
        NO_COST if exceeded else case.charge,
        behaviour_flag=flag,
        rule=case.judgement.rule if case.judgement is not None and assessed is refusal else None,
        policies=None if assessment is None or assessment.is_final else snapshot.policies,
        broken_rules=() if flag is BehaviourFlag.NONE else snapshot.usage.behaviour.after(flag, now)[1],
    )


def _approved(case: Case, assessment: Assessment, charge: RequestCost, snapshot: Snapshot, now: float) -> Outcome:
    decision, options, flag = assessment.decision, case.options, BehaviourFlag.CLEAN
    if decision is _DENIED or decision is _BUDGET_EXCEEDED:
        raise RuntimeError("an assessment that denies has a refusal")
    # Spec 2.3: high risk is executed with attestation; anything else carries one when asked.
    is_attested = decision is not _PENDING and (
        options.require_attestation or options.chain_id is not None or assessment.risk >= _HIGH
    )
    chain = None
    if is_attested and options.chain_id is not None:
        chain = Chain(id=options.chain_id, index=snapshot.chain.links, previous=snapshot.chain.last)
    rules = snapshot.usage.behaviour.after(flag, now)[1]
    rule = None if case.judgement is None else case.judgement.rule
    policies = None if assessment.is_final else snapshot.policies
    return Outcome(decision, None, charge, is_attested, chain, flag, rules, rule, policies)


def _with_high_risk_call(case: Case, snapshot: Snapshot, now: float) -> tuple[RequestCost, Answer | None]:
    """Return the charge with a high-risk call, or the refusal of one above the limit (6.1)."""
    more = RequestCost(high_risk_calls=1)
    counters = snapshot.usage.counters.at(now)
    exceeded = exceeded_limit(counters, snapshot.reserved, more, case.agent.limits)
    return case.charge.plus(more), None if exceeded is None else refuse_budget(exceeded, now)


def _refuse_approvals(snapshot: Snapshot, max_open: int) -> Answer | None:
    return denied(ErrorCode.APPROVALS_FULL) if snapshot.usage.counters.open_approvals >= max_open else None


def _flag_of(case: Case, refusal: Answer) -> BehaviourFlag:
    """Return the effect of a refusal on the agent's trust (rulings 4.2 and 4.24): none for an internal failure or a
    missing decision, and none but on its evidence for what the agent may not do yet."""
    error = refusal.error
    if refusal.decision is _BUDGET_EXCEEDED:
        return BehaviourFlag.EXCEEDED
    if refusal.decision is not _DENIED or error is None:
        return BehaviourFlag.CLEAN
    if not error.final or HTTP[error.code] != 200:
        return BehaviourFlag.NONE
    assessment = case.assessment
    if assessment is None or assessment.refusal is not refusal or error.code in _POLICY_CODES:
        return BehaviourFlag.REFUSED
    if assessment.violation:
        return BehaviourFlag.VIOLATION
    return BehaviourFlag.DENIED if assessment.misconduct else BehaviourFlag.REFUSED
