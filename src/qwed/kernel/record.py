"""Record of a decision: ids, leaf, sealed content, write set; and the answer once it is durable."""

import dataclasses
import time
from typing import Any

import msgspec

from qwed.domain.change_parts import ApprovalRequest
from qwed.domain.transition import degraded_levels
from qwed.domain.write_set import (
    Activity,
    ChainLink,
    Committed,
    DecisionEffects,
    IdempotentAnswer,
    Notice,
    Reservation,
    WriteSet,
)
from qwed.kernel.agents.trust import degradation_change
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.answer import Answer, DecidingRule, Problem, Remaining, problem
from qwed.kernel.audit.issue import attestation_of
from qwed.kernel.audit_change import GATE, agent_notices
from qwed.kernel.case import Case, PolicyJudgement
from qwed.kernel.decision import Outcome
from qwed.kernel.privacy.payload import (
    Payload,
    PolicyMembers,
    encode_payload,
    masked_name,
    redacted_action,
    redacted_facts,
    redacted_text,
    with_members,
)
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.services import Services
from qwed.kernel.tools import KNOWN_TYPES
from qwed.ledger import leaf
from qwed.ledger.attest import AttestationExtras, Chain, Receipt
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import Decision, ErrorCode, Facts, Status, usd_from
from qwed.model.clock import rfc3339
from qwed.model.ids import timed_id
from qwed.policy import PolicyAnswer

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace
_PENDING, _DENIED = Decision.PENDING, Decision.DENIED
_REFUSED = frozenset({Status.FAILED, Status.BLOCKED})


class DecisionRecord(msgspec.Struct, frozen=True, gc=False):
    """A decision that is ready to be stored."""

    decision: Decision
    error: Problem | None
    activity_id: str
    approval: ApprovalRequest | None = None
    attestation_id: str | None = None
    chain: Chain | None = None
    """Position of its attestation in a chain."""
    rule: DecidingRule | None = None
    """Rule of the organisation's policies that decided."""


class RecordedDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision with its leaf and the write set that makes it durable."""

    record: DecisionRecord
    entry: leaf.Leaf
    write_set: WriteSet


def record_decision(
    case: Case, outcome: Outcome, reservation: Reservation | None, services: Services, now: float
) -> RecordedDecision:
    """Give the decision its ids, seal its content and collect all that it writes."""
    record = _record_of(case, outcome, services, now)
    agent, context = case.agent, case.context
    # The data subject is the one named by the context, else the principal (DESIGN 7).
    subject = agent.principal_id if context is None or context.subject is None else context.subject
    key = services.vault.key_for(agent.organisation_id, subject)
    commitment, sealed = key.seal_with_commitment(record.activity_id, payload_of(case, record))
    entry = _leaf_of(case, record, commitment, now)
    activity = Activity(
        record.activity_id,
        record.decision,
        now,
        entry.cost_micros,
        leaf.encode(entry).decode(),
        sealed,
        "",
        record.attestation_id,
        key.subject_id,
    )
    answer_to_store = None
    if case.idempotency_key is not None and case.assessment is not None:
        answer_to_store = _idempotent_answer_of(case, record, key, services, now)
    link = None
    if record.chain is not None and case.chain_id is not None and record.attestation_id is not None:
        link = ChainLink(case.chain_id, record.chain.index, record.chain.previous, record.attestation_id)
    effects = DecisionEffects(
        agent=case.agent,
        decision=record.decision,
        charge=outcome.charge,
        reservation=reservation,
        approval=record.approval,
        idempotency_key=None
        if case.idempotency_key is None or case.remembered is not None
        else services.vault.fingerprint(case.idempotency_key),
        answer_to_store=answer_to_store,
        behaviour_flag=outcome.behaviour_flag,
        broken_rules=outcome.broken_rules,
        degradations=_degradations_of(case, outcome, record, services, now) if outcome.broken_rules else (),
        policies=outcome.policies,
        usage=None if case.judgement is None else case.judgement.usage,
        pair=None if case.message is None else (case.message.sender, case.message.receiver),
        link=link,
    )
    return RecordedDecision(
        record,
        entry,
        WriteSet(
            organisation_id=case.agent.organisation_id,
            agent_id=case.agent_id,
            activity=activity,
            effects=effects,
            notices=() if record.decision.permits else _notices_of(case, record, services, now),
        ),
    )


def _record_of(case: Case, outcome: Outcome, services: Services, now: float) -> DecisionRecord:
    activity_id, rule = timed_id("act", now), outcome.rule
    if outcome.decision is _PENDING and case.assessment is not None:
        approval = ApprovalRequest(
            approval_id=timed_id("apr", now),
            cost=outcome.charge.cost,
            tokens=outcome.charge.tokens,
            high_risk_calls=outcome.charge.high_risk_calls,
            created_at=now,
            expires_at=now + services.settings.approval_ttl_seconds,
            requested_by=actor_of(case),
            approver_groups=() if rule is None else rule.approvers,
        )
        error = _needs_approval(case.assessment, approval, rule)
        return DecisionRecord(_PENDING, error, activity_id, approval, rule=rule)
    attestation_id = timed_id("att", now) if outcome.is_attested else None
    return DecisionRecord(outcome.decision, outcome.error, activity_id, None, attestation_id, outcome.chain, rule)


def _needs_approval(assessment: Assessment, approval: ApprovalRequest, rule: DecidingRule | None) -> Problem:
    cause = assessment.pending_cause
    message = f"a person must approve this {assessment.risk.word} risk action" if cause is None else cause.message
    details: dict[str, Any] = {"approval_id": approval.approval_id, "expires_at": rfc3339(approval.expires_at)}
    if cause is not None:
        details |= cause.details
    if rule is not None and rule.then == PolicyAnswer.ASK:
        message = rule.message or f"{message}: the rule `{rule.rule}` of the policy `{rule.policy}` asks for it"
        details |= {"policy": rule.policy, "rule": rule.rule, "version": rule.version}
        if rule.approvers:
            details["approvers"] = [*rule.approvers]
    return problem(ErrorCode.NEEDS_APPROVAL, message, check=None if cause is None else cause.check, details=details)


def _degradations_of(
    case: Case, outcome: Outcome, record: DecisionRecord, services: Services, now: float
) -> tuple[WriteSet, ...]:
    """Return the trust changes for the broken rules (spec 8.3), each based on the one before it."""
    before, changes = case.agent, []
    for rule, trust in degraded_levels(before.trust, outcome.broken_rules):
        after = dataclasses.replace(before, trust=trust)
        changes.append(degradation_change(before, after, rule, services, now, record.activity_id))
        before = after
    return tuple(changes)


def _notices_of(case: Case, record: DecisionRecord, services: Services, now: float) -> tuple[Notice, ...]:
    """Return the webhook notices about a failed verification or a pending approval (spec 2.3)."""
    if record.approval is not None:
        approval_id = record.approval.approval_id
        return agent_notices("pending", case.agent, record.activity_id, services, now, approval_id=approval_id)
    assessment = case.assessment
    if record.decision is not _DENIED or assessment is None or assessment.verification is None:
        return ()
    if assessment.verification.status not in _REFUSED:
        return ()
    return agent_notices("failed", case.agent, record.activity_id, services, now)


def sealing_context(agent_id: str, key: str) -> str:
    """Return the context string under which the answer of an idempotency key is sealed."""
    return f"{agent_id}:{key}"


def _idempotent_answer_of(
    case: Case, record: DecisionRecord, key: SubjectKey, services: Services, now: float
) -> IdempotentAnswer | None:
    """Return the answer to store for the idempotency key; None for an exceeded budget or a failure, which may pass
    later."""
    may_pass_later = record.error is not None and not record.error.final and record.decision is not _PENDING
    if case.idempotency_key is None or may_pass_later:
        return None
    context = sealing_context(case.agent_id, case.idempotency_key)

    def encode_answer(committed: Committed) -> bytes:
        return key.seal(context, _encode(answer_of(case, record, committed)).decode()).encode()

    name = services.vault.fingerprint(case.idempotency_key)
    expires_at = now + services.settings.idempotency_ttl_seconds
    return IdempotentAnswer(name, case.body_hash, encode_answer, expires_at, key.subject_id)


def answer_of(case: Case, record: DecisionRecord, committed: Committed) -> Answer:
    """Return the answer to a request whose decision is durable, without its proof."""
    assessment, approval = case.assessment, record.approval
    remaining = _remaining(case, committed)
    if assessment is None:
        return Answer(
            decision=record.decision, action_id=record.activity_id, error=record.error, budget_remaining=remaining
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
        policy=record.rule,
        facts=_shown_facts(case, assessment) if case.options.include_facts else None,
    )


def _shown_facts(case: Case, assessment: Assessment) -> Facts:
    return redacted_facts(assessment.facts, Redactor(case.action) if assessment.has_secret else None)


def _remaining(case: Case, committed: Committed) -> Remaining:
    limits, usage = case.agent.limits, committed.usage
    cost = None if limits.daily_cost is None else limits.daily_cost - usage.cost_day - usage.pending_cost
    requests = None if limits.requests_per_hour is None else limits.requests_per_hour - usage.requests_hour
    return Remaining(
        daily_cost_usd=None if cost is None else usd_from(max(cost, 0)),
        hourly_requests=None if requests is None else max(requests, 0),
    )


def proof_of(case: Case, recorded: RecordedDecision, committed: Committed, services: Services) -> str | Receipt | None:
    """Return the attestation if one was assigned, else the receipt; None for a store in memory."""
    record = recorded.record
    position = committed.position
    if record.attestation_id is None:
        if position is None:
            return None
        leaf_text = recorded.write_set.activity.leaf
        return Receipt(index=position.index, leaf=leaf_text, path=position.path(), head=position.head)
    extras = AttestationExtras(None if case.assessment is None else case.assessment.payload.sub, record.chain)
    return attestation_of(recorded.entry, extras, case.agent.organisation_id, committed.log_index, services, position)


def actor_of(case: Case) -> str:
    """Return the id of the caller, as logged."""
    if case.actor_id:
        return case.actor_id
    if case.key is not None:
        return case.key.key_id
    return case.agent_id if case.credentials.agent_token is not None else GATE


def _leaf_of(case: Case, record: DecisionRecord, commitment: str, now: float) -> leaf.Leaf:
    """Build the leaf of a decision, which is never erased."""
    assessment, context = case.assessment, case.context
    verification = assessment.verification if assessment is not None else None
    permitted = record.decision.permits
    # Only a known type: a leaf is never erased.
    is_known = case.message is not None or (case.action is not None and case.action.type in KNOWN_TYPES)
    entry = leaf.Leaf(
        v=leaf.VERSION,
        about=None if case.message is None else case.message.trace_id,
        activity_id=record.activity_id,
        agent_id=case.agent_id,
        by=actor_of(case),
        commitment=commitment,
        action_type=case.action.type if is_known else None,
        step_number=context.step_number if context is not None else None,
        decision=record.decision,
        error=record.error.code if record.error is not None else None,
        status=verification.status if verification is not None else None,
        engine=verification.engine if verification is not None else None,
        risk_level=verification.risk_level if verification is not None and case.message is None else None,
        cost_micros=case.charge.cost if permitted else 0,
        tokens=case.charge.tokens if permitted else 0,
        policy_hash=assessment.policy_hash if assessment is not None else None,
        attestation_id=record.attestation_id,
        repeats=case.coalesced_refusals,
        time_ms=int(now * 1000),
        latency_us=int((time.perf_counter() - case.started) * 1e6),
    )
    return entry if case.judgement is None else _with_policy(entry, case.judgement, record.rule)


def _with_policy(entry: leaf.Leaf, judgement: PolicyJudgement, rule: DecidingRule | None) -> leaf.Leaf:
    """Return the leaf with the version of the policy set, and the rule that decided."""
    return _replace(
        entry,
        policy=None if rule is None else rule.policy,
        policy_rule=None if rule is None else rule.rule,
        policy_version=judgement.policies.version,
    )


def payload_of(case: Case, record: DecisionRecord) -> str:
    """Build the encoded payload that is stored with the leaf."""
    assessment, context = case.assessment, case.context
    intent = context.user_intent if context is not None else None
    conversation_id = masked_name(context.conversation_id) if context is not None else None
    has_statements = intent is not None or case.justification is not None
    if assessment is not None and not has_statements and not assessment.has_secret:
        as_assessed = None if assessment.refusal is None else assessment.refusal.error
        if record.error is as_assessed:
            members = None if case.judgement is None else PolicyMembers(record.rule, case.judgement.shadow)
            return with_members(assessment.encoded_payload, conversation_id, record.chain, members)
    secret = _has_secret(case)
    redactor = Redactor(case.action) if secret and (assessment is None or has_statements) else None
    payload = assessment.payload if assessment is not None else _unassessed_payload(case, redactor)
    if secret and record.attestation_id is None and record.approval is None:
        # Nothing will be attested: an action with a secret leaves no hash.
        payload = _replace(payload, sub=None)
    statements = {
        "user_intent": redacted_text(intent, redactor),
        "justification": redacted_text(case.justification, redactor),
    }
    return encode_payload(
        _replace(
            payload,
            error=record.error,
            conversation_id=conversation_id,
            chain=record.chain,
            policy=record.rule,
            shadow=() if case.judgement is None else case.judgement.shadow,
            **statements,
        )
    )


def _unassessed_payload(case: Case, redactor: Redactor | None) -> Payload:
    if case.action is None:
        return Payload()
    # The hash of a message covers its payload, which has not been scanned for secrets yet.
    action_hash = case.action_hash if redactor is None and case.message is None else None
    return Payload(action=redacted_action(case.action, redactor), action_hash=action_hash)


def _has_secret(case: Case) -> bool:
    if case.assessment is not None:
        return case.assessment.has_secret
    return case.action is not None and bool(scan_content(case.action).secrets)
