"""Commit stage: one durable transaction of step, cost, activity leaf and approval. Nothing is answered before it."""

from typing import NamedTuple

import msgspec

from qwed.kernel.admin.approvals import expire_of
from qwed.kernel.agents.trust import degradation_change
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import HTTP, Answer, Problem, Remaining, denied, problem
from qwed.kernel.audit.issue import attestation_of, receipt_of
from qwed.kernel.audit_change import agent_notices
from qwed.kernel.case import Case
from qwed.kernel.privacy.decision_record import DecisionRecord, actor_of, leaf_of, payload_of
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import refuse_inactive
from qwed.kernel.stages.check_idempotency import sealing_context
from qwed.kernel.stages.reserve_step import refuse_loop, refuse_step
from qwed.ledger import leaf
from qwed.ledger.attest import AttestationExtras, Chain, Receipt
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import Decision, ErrorCode, Risk, Status, usd_from
from qwed.model.clock import rfc3339
from qwed.model.ids import timed_id
from qwed.store.agent import Agent
from qwed.store.budget import NO_COST, ONE_REQUEST, RequestCost
from qwed.store.change_parts import ApprovalRequest
from qwed.store.protocol import (
    STALE_STATE,
    Activity,
    ChainLink,
    Change,
    CommitReceipt,
    CommitRequest,
    IdempotentAnswer,
    Notice,
    StaleState,
)
from qwed.store.trust_degradation import BehaviourFlag, DegradationRule

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace
_PENDING, _DENIED, _BUDGET_EXCEEDED = Decision.PENDING, Decision.DENIED, Decision.BUDGET_EXCEEDED
_HIGH = Risk.HIGH

_SELF_EXPLANATORY = (
    ErrorCode.LEASE_EXPIRED,
    ErrorCode.AGENT_CHANGED,
    ErrorCode.APPROVALS_FULL,
    ErrorCode.MESSAGE_BLOCKED,
)
"""Refusals whose error code needs no further message."""
_REFUSED = frozenset({Status.FAILED, Status.BLOCKED})
_MAX_ATTEMPTS = 16
"""Attempts while other requests extend the same attestation chain; after that the request starts again."""


class CommittedDecision(NamedTuple):
    """A decision that is durable."""

    record: DecisionRecord
    entry: leaf.Leaf
    text: str
    """The leaf as encoded in the log."""
    receipt: CommitReceipt


async def settle(case: Case, refusal: Answer | None, services: Services) -> Answer | StaleState:
    """Commit the decision and return the final answer."""
    committed = await commit(case, refusal, services)
    if committed is STALE_STATE:
        return committed
    answer = _answer_of(case, committed.record, committed.receipt)
    if not committed.record.decision.permits:
        return answer
    if services.at_stage is not None:
        services.at_stage("attest")
    return _replace(answer, attestation=_proof_of(case, committed, services))


async def commit(case: Case, refusal: Answer | None, services: Services) -> CommittedDecision | StaleState:
    """Commit the decision and return it once it is durable."""
    for _ in range(_MAX_ATTEMPTS):
        now = services.clock.now()
        record = _record_of(case, refusal, services, now)
        key, text = _subject_key_of(case, services), payload_of(case, record)
        commitment, sealed = key.seal_with_commitment(record.activity_id, text)
        entry = leaf_of(case, record, commitment, now)
        request = _commit_request_of(case, record, entry, sealed, key, now, services)
        future = services.store.commit(request)
        result = future if isinstance(future, ErrorCode) else await future
        if isinstance(result, CommitReceipt):
            return CommittedDecision(record, entry, request.activity.leaf, result)
        if result is STALE_STATE:
            return result
        if not _may_pass_now(case, result, services, now):
            refusal = _refuse_late(case, result, services)
    return STALE_STATE


def _may_pass_now(case: Case, code: ErrorCode, services: Services, now: float) -> bool:
    """Return True if the same decision may be committed at the next attempt."""
    if code is ErrorCode.CONFLICT:
        # The chain has grown: the next attempt uses a later link.
        return True
    return code is ErrorCode.APPROVALS_FULL and expire_of(case.agent, services, now)


def _proof_of(case: Case, committed: CommittedDecision, services: Services) -> str | Receipt | None:
    """Return the attestation if one was assigned, else the receipt; None for a store in memory."""
    record, entry, text, receipt = committed
    position = receipt.position
    if record.attestation_id is None:
        return None if position is None else receipt_of(text, position)
    extras = AttestationExtras(None if case.assessment is None else case.assessment.payload.sub, record.chain)
    return attestation_of(entry, extras, case.agent.organisation_id, receipt.log_index, services, position)


def _subject_key_of(case: Case, services: Services) -> SubjectKey:
    """Return the key of the data subject: the one named by the context, else the principal (DESIGN 7)."""
    context = case.context
    if context is None or context.subject is None:
        return services.vault.key_of_agent(case.agent)
    return services.vault.key_for(case.agent.organisation_id, context.subject)


def _refuse_late(case: Case, code: ErrorCode, services: Services) -> Answer:
    """Build the refusal after another request committed first, or after the lease expired."""
    if code in (ErrorCode.REPETITION, ErrorCode.NO_PROGRESS) and case.reservation is not None:
        return refuse_loop(code, case.reservation.conversation.history, case.step)
    if code in _SELF_EXPLANATORY:
        return denied(code)
    if code is ErrorCode.AGENT_SUSPENDED:
        return refuse_inactive(case, services)
    return refuse_step(case, code, services.settings.max_steps)


def _record_of(case: Case, refusal: Answer | None, services: Services, now: float) -> DecisionRecord:
    activity_id = timed_id("act", now)
    assessment = case.assessment
    if refusal is not None or assessment is None:
        refusal = refusal or denied(ErrorCode.INTERNAL)
        return DecisionRecord(refusal.decision, refusal.error, activity_id, None, None)
    if assessment.decision is _PENDING:
        approval = _approval_of(case, services, now)
        return DecisionRecord(_PENDING, _needs_approval(assessment, approval), activity_id, approval, None)
    # Spec 2.3: high risk is executed with attestation; anything else carries one when asked.
    chain_id = case.options.chain_id
    if not (case.options.require_attestation or chain_id is not None or assessment.risk >= _HIGH):
        return DecisionRecord(assessment.decision, None, activity_id, None, None)
    chain = None if chain_id is None else _next_link(case.agent.organisation_id, chain_id, services)
    return DecisionRecord(assessment.decision, None, activity_id, None, timed_id("att", now), chain=chain)


def _next_link(organisation_id: str, chain_id: str, services: Services) -> Chain:
    links, last = services.store.chain(organisation_id, services.vault.fingerprint(chain_id))
    return Chain(id=chain_id, index=links, previous=last)


def _approval_of(case: Case, services: Services, now: float) -> ApprovalRequest:
    return ApprovalRequest(
        approval_id=timed_id("apr", now),
        cost=case.charge.cost,
        tokens=case.charge.tokens,
        high_risk_calls=case.charge.high_risk_calls,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
        requested_by=actor_of(case),
    )


def _needs_approval(assessment: Assessment, approval: ApprovalRequest) -> Problem:
    return problem(
        ErrorCode.NEEDS_APPROVAL,
        f"a person must approve this {assessment.risk.word} risk action",
        details={"approval_id": approval.approval_id, "expires_at": rfc3339(approval.expires_at)},
    )


def _commit_request_of(
    case: Case, record: DecisionRecord, entry: leaf.Leaf, sealed: str, key: SubjectKey, now: float, services: Services
) -> CommitRequest:
    activity = Activity(
        record.activity_id,
        record.decision,
        now,
        entry.cost_micros,
        leaf.encode(entry).decode(),
        sealed,
        attestation_id=record.attestation_id,
        subject_id=key.subject_id,
    )

    def degrade(before: Agent, after: Agent, rule: DegradationRule) -> Change:
        return degradation_change(before, after, rule, services, now, record.activity_id)

    return CommitRequest(
        agent=case.agent,
        activity=activity,
        decision=record.decision,
        charge=_cost_of(case, record),
        reservation=case.reservation,
        approval=record.approval,
        idempotency_key=_claimed_key(case, services),
        answer_to_store=_idempotent_answer_of(case, record, key, now, services)
        if case.idempotency_key is not None
        else None,
        notices=_notices_of(case, record, services, now),
        behaviour_flag=_behaviour_flag_of(case, record),
        degrade=degrade,
        pair=None if case.message is None else (case.message.sender, case.message.receiver),
        link=_link_of(record, services),
    )


def _link_of(record: DecisionRecord, services: Services) -> ChainLink | None:
    chain = record.chain
    if chain is None or record.attestation_id is None:
        return None
    # Under a keyed name, as a conversation is.
    return ChainLink(services.vault.fingerprint(chain.id), chain.index, chain.previous, record.attestation_id)


def _notices_of(case: Case, record: DecisionRecord, services: Services, now: float) -> tuple[Notice, ...]:
    """Return the webhook notices about a failed verification or a pending approval (spec 2.3)."""
    if record.approval is not None:
        approval_id = record.approval.approval_id
        return agent_notices("pending", case.agent, record.activity_id, services, now, approval_id=approval_id)
    assessment = case.assessment
    if assessment is None or record.decision is not _DENIED or assessment.verification is None:
        return ()
    if assessment.verification.status not in _REFUSED:
        return ()
    return agent_notices("failed", case.agent, record.activity_id, services, now)


def _behaviour_flag_of(case: Case, record: DecisionRecord) -> BehaviourFlag:
    """Return the effect of the answer on the agent's trust; none for an internal failure or a missing decision (ruling
    4.2)."""
    if record.decision is _BUDGET_EXCEEDED:
        return BehaviourFlag.EXCEEDED
    if record.decision is not _DENIED or record.error is None:
        return BehaviourFlag.CLEAN
    if not record.error.final or HTTP[record.error.code] != 200:
        return BehaviourFlag.NONE
    return (
        BehaviourFlag.VIOLATION if case.assessment is not None and case.assessment.violation else BehaviourFlag.DENIED
    )


def _cost_of(case: Case, record: DecisionRecord) -> RequestCost:
    reservation = case.reservation
    if reservation is None or reservation.committed or record.decision is _BUDGET_EXCEEDED:
        return NO_COST
    return ONE_REQUEST if case.charge is NO_COST else case.charge


def _claimed_key(case: Case, services: Services) -> str | None:
    """Return the fingerprint of the idempotency key that this request has claimed, or None."""
    if case.idempotency_key is None or not case.body_hash:
        return None
    return services.vault.fingerprint(case.idempotency_key)


def _idempotent_answer_of(
    case: Case, record: DecisionRecord, key: SubjectKey, now: float, services: Services
) -> IdempotentAnswer | None:
    """Return the answer to store for the idempotency key; None for an exceeded budget or a failure, which may pass
    later."""
    name = _claimed_key(case, services)
    if case.idempotency_key is None or name is None or case.assessment is None:
        return None
    may_pass_later = record.error is not None and not record.error.final and record.decision is not _PENDING
    if may_pass_later:
        return None
    context = sealing_context(case.agent_id, case.idempotency_key)

    def answer(receipt: CommitReceipt) -> bytes:
        return key.seal(context, _encode(_answer_of(case, record, receipt)).decode()).encode()

    expires_at = now + services.settings.idempotency_ttl_seconds
    return IdempotentAnswer(name, case.body_hash, answer, expires_at, key.subject_id)


def _answer_of(case: Case, record: DecisionRecord, receipt: CommitReceipt) -> Answer:
    assessment, approval = case.assessment, record.approval
    remaining = _remaining(case, receipt)
    if assessment is None:
        return Answer(
            decision=record.decision,
            action_id=record.activity_id,
            error=record.error,
            budget_remaining=remaining,
        )
    return Answer(
        decision=record.decision,
        action_id=record.activity_id,
        error=record.error,
        verification=assessment.verification,
        verified_query=assessment.verified_query if record.decision.permits else None,
        corrected=assessment.corrected if record.decision.commits else None,
        budget_remaining=remaining,
        approval_id=approval.approval_id if approval is not None else None,
        expires_at=rfc3339(approval.expires_at) if approval is not None else None,
        tool_name=assessment.tool_name,
        risk_assessment=assessment.risk_assessment,
        policy_checks=assessment.policy_checks,
    )


def _remaining(case: Case, receipt: CommitReceipt) -> Remaining:
    limits, usage = case.agent.limits, receipt.usage
    cost = None if limits.daily_cost is None else limits.daily_cost - usage.cost_day - usage.pending_cost
    requests = None if limits.requests_per_hour is None else limits.requests_per_hour - usage.requests_hour
    return Remaining(
        daily_cost_usd=None if cost is None else usd_from(max(cost, 0)),
        hourly_requests=None if requests is None else max(requests, 0),
    )
