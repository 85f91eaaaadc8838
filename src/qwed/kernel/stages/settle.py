"""One durable transaction: step, charge, activity leaf and approval, or none of them. Nothing is answered before it."""

import time
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import (
    Answer,
    Problem,
    Remaining,
    RiskAssessment,
    Verification,
    denied,
    problem,
    verification_of,
)
from qwed.kernel.case import Case
from qwed.kernel.services import Services
from qwed.kernel.stages.reserve_step import refuse_loop, refuse_step
from qwed.kernel.tools import text_of
from qwed.ledger import leaf
from qwed.settings import VERSION as SETTINGS_VERSION
from qwed.store.protocol import Activity, Approval, Memory, Settled, Settlement
from qwed.store.usage import NOTHING, Charge
from qwed.words import Decision, ErrorCode, Risk, Status, sha256_of, usd_from
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id

_encode = msgspec.json.Encoder().encode

ONE_REQUEST = Charge(requests=1)
_BUDGET_PASSED = ("agent_active", "within_budget")
_TRUST_PASSED = (*_BUDGET_PASSED, "trust_level_sufficient")


class Outcome(NamedTuple):
    """What was decided about a case, ready to be kept."""

    decision: Decision
    error: Problem | None
    verification: Verification | None
    activity_id: str
    approval: Approval | None
    attestation_id: str | None


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept beside a leaf: content, which a leaf never holds."""

    action: Any = None
    corrected: Any = None
    error: Problem | None = None
    verification: Verification | None = None
    user_intent: str | None = None


async def settle(case: Case, refusal: Answer | None, services: Services) -> Answer:
    """The final answer, after it is durable."""
    now = services.clock.now()
    outcome = _outcome_of(case, refusal, services, now)
    entry = _leaf_of(case, outcome, now)
    ticket = services.store.settle(_settlement_of(case, outcome, entry, now, services))
    if isinstance(ticket, ErrorCode):
        return await settle(case, _refuse_late(case, ticket, services), services)
    settled = await ticket
    answer = _answer_of(case, outcome, settled)
    if outcome.attestation_id is None:
        return answer
    return msgspec.structs.replace(answer, attestation=services.signer.attest(entry, settled.log_index))


def _refuse_late(case: Case, code: ErrorCode, services: Services) -> Answer:
    """Another request committed first, or ours outlived its lease."""
    if code in (ErrorCode.REPETITION, ErrorCode.NO_PROGRESS) and case.reservation is not None:
        return refuse_loop(code, case.reservation.conversation)
    if code is ErrorCode.LEASE_EXPIRED:
        return denied(code, check="step_still_held", suggestion="send the step again")
    return refuse_step(case, code, services.settings.max_steps)


def _outcome_of(case: Case, refusal: Answer | None, services: Services, now: float) -> Outcome:
    activity_id = timed_id("act", now)
    if refusal is not None:
        return Outcome(refusal.decision, refusal.error, _verification_of(case, refusal.error), activity_id, None, None)
    verification = _verification_of(case, None)
    if case.decision is Decision.PENDING:
        approval = _approval_of(case, services, now)
        return Outcome(case.decision, _needs_approval(case, approval), verification, activity_id, approval, None)
    attestation_id = timed_id("att", now) if _attested(case) else None
    return Outcome(case.decision, None, verification, activity_id, None, attestation_id)


def _attested(case: Case) -> bool:
    """Spec 2.3: high risk is executed with attestation; anything else carries one when asked."""
    return case.options.require_attestation or case.risk >= Risk.HIGH


def _verification_of(case: Case, error: Problem | None) -> Verification | None:
    verdict = case.verdict
    if verdict is None:
        return _refused_by_permission(case, error)
    found = verification_of(verdict, case.risk)
    refused_by_trust = error is not None and error.check == "trust_level_sufficient"
    passed = _TRUST_PASSED if error is None else _BUDGET_PASSED
    failed = (*found.checks_failed, "trust_level_sufficient") if refused_by_trust else found.checks_failed
    return msgspec.structs.replace(found, checks_passed=found.checks_passed + passed, checks_failed=failed)


def _refused_by_permission(case: Case, error: Problem | None) -> Verification | None:
    if error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    return Verification(
        status=Status.BLOCKED,
        engine=case.subject.judge if case.subject else "tool",
        risk_level=case.risk.word,
        checks_passed=_BUDGET_PASSED,
        checks_failed=(error.check or "tool_allowed",),
        effects=(),
        message=error.message,
    )


def _approval_of(case: Case, services: Services, now: float) -> Approval:
    return Approval(
        approval_id=timed_id("apr", now),
        action_hash=_executable_hash(case),
        cost=case.charge.cost,
        tokens=case.charge.tokens,
        high_risk_calls=case.charge.high_risk_calls,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
    )


def _needs_approval(case: Case, approval: Approval) -> Problem:
    return problem(
        ErrorCode.NEEDS_APPROVAL,
        f"a person must approve this {case.risk.word} risk action",
        check="approval_given",
        suggestion="wait for the decision on `approval_id`",
        details={"approval_id": approval.approval_id, "expires_at": rfc3339(approval.expires_at)},
    )


def _executable_hash(case: Case) -> str:
    return case.action_hash if case.corrected is None else sha256_of(case.corrected)


def _leaf_of(case: Case, outcome: Outcome, now: float) -> leaf.Leaf:
    judged = outcome.verification
    permitted = outcome.decision.permits
    subject = case.subject
    return leaf.Leaf(
        v=leaf.VERSION,
        activity_id=outcome.activity_id,
        agent_id=case.agent_id,
        by=case.key.key_id if case.key is not None else case.agent_id,
        action_hash=case.action_hash or None,
        action_type=case.action.type[:64] if case.action else None,
        conversation_id=case.context.conversation_id if case.context else None,
        step_number=case.context.step_number if case.context else None,
        decision=outcome.decision,
        error=outcome.error.code if outcome.error else None,
        status=judged.status if judged else None,
        engine=judged.engine if judged else None,
        risk_level=judged.risk_level if judged else None,
        cost_micros=case.charge.cost if permitted else 0,
        tokens=case.charge.tokens if permitted else 0,
        sub=f"sha256:{_executable_hash(case)}" if permitted else None,
        policy_hash=case.agent.policy_hash(subject.name, msgspec.to_builtins(subject.row), SETTINGS_VERSION)
        if subject
        else None,
        attestation_id=outcome.attestation_id,
        time_ms=int(now * 1000),
        latency_us=int((time.perf_counter() - case.started) * 1e6),
    )


def _settlement_of(case: Case, outcome: Outcome, entry: leaf.Leaf, now: float, services: Services) -> Settlement:
    activity = Activity(
        activity_id=outcome.activity_id,
        decision=outcome.decision,
        at=now,
        cost=entry.cost_micros,
        leaf=leaf.encode(entry),
        payload=_encode(_payload_of(case, outcome)),
    )
    return Settlement(
        agent=case.agent,
        activity=activity,
        decision=outcome.decision,
        charge=_charge_of(case, outcome),
        reservation=case.reservation,
        approval=outcome.approval,
        memory=_memory_of(case, outcome, now, services),
    )


def _charge_of(case: Case, outcome: Outcome) -> Charge:
    if case.reservation is None or outcome.decision is Decision.BUDGET_EXCEEDED:
        return NOTHING
    return ONE_REQUEST if case.charge is NOTHING else case.charge


def _payload_of(case: Case, outcome: Outcome) -> _Payload:
    return _Payload(
        action=msgspec.Raw(case.action.canonical) if case.action else None,
        corrected=case.corrected,
        error=outcome.error,
        verification=outcome.verification,
        user_intent=case.context.user_intent if case.context else None,
    )


def _memory_of(case: Case, outcome: Outcome, now: float, services: Services) -> Memory | None:
    """Keep what was judged; a full budget or a surprise may pass next time."""
    if case.idempotency_key is None or not case.body_hash or case.verdict is None:
        return None
    if outcome.decision is Decision.BUDGET_EXCEEDED or (outcome.error is not None and _may_pass_later(outcome)):
        return None
    expires_at = now + services.settings.idempotency_ttl_seconds
    return Memory(
        case.idempotency_key, case.body_hash, lambda settled: _encode(_answer_of(case, outcome, settled)), expires_at
    )


def _may_pass_later(outcome: Outcome) -> bool:
    return outcome.decision is Decision.DENIED and outcome.error is not None and not outcome.error.final


def _answer_of(case: Case, outcome: Outcome, settled: Settled) -> Answer:
    permitted = outcome.decision.permits
    executed = case.corrected if case.corrected is not None else None
    approval = outcome.approval
    answer = Answer(
        decision=outcome.decision,
        action_id=outcome.activity_id,
        error=outcome.error,
        verification=outcome.verification,
        verified_query=_verified_query(case) if permitted else None,
        corrected=dict(executed) if executed is not None and outcome.decision is not Decision.DENIED else None,
        budget_remaining=_remaining(case, settled),
        approval_id=approval.approval_id if approval else None,
        expires_at=rfc3339(approval.expires_at) if approval else None,
    )
    return _with_tool(answer, case, outcome) if case.subject and case.subject.is_tool else answer


def _verified_query(case: Case) -> str | None:
    if case.corrected is not None:
        query = case.corrected.get("query")
        return query if isinstance(query, str) else None
    return text_of(case.action, "query") or None


def _remaining(case: Case, settled: Settled) -> Remaining:
    limits, spent = case.agent.limits, settled.spent
    cost = None if limits.daily_cost is None else limits.daily_cost - spent.cost_day - spent.pending_cost
    requests = None if limits.requests_per_hour is None else limits.requests_per_hour - spent.requests_hour
    return Remaining(
        daily_cost_usd=None if cost is None else usd_from(max(cost, 0)),
        hourly_requests=None if requests is None else max(requests, 0),
    )


def _with_tool(answer: Answer, case: Case, outcome: Outcome) -> Answer:
    assessment = RiskAssessment(
        base_risk=case.subject.base.word,
        factors=case.factors,
        final_risk=case.risk.word,
        requires_approval=outcome.decision is Decision.PENDING,
    )
    return msgspec.structs.replace(
        answer, tool_name=case.subject.name, risk_assessment=assessment, policy_checks=case.policies
    )
