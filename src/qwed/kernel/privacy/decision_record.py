"""Builds the leaf and the payload of a decision."""

import time
from typing import NamedTuple

import msgspec

from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import GATE
from qwed.kernel.case import Case
from qwed.kernel.privacy.payload import (
    Payload,
    encode_payload,
    masked_name,
    redacted_action,
    redacted_text,
    with_members,
)
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.tools import A2A_MESSAGE, KNOWN_TYPES
from qwed.ledger import leaf
from qwed.ledger.attest import Chain
from qwed.model import Decision
from qwed.store.change_parts import ApprovalRequest

_replace = msgspec.structs.replace


class DecisionRecord(NamedTuple):
    """A decision that is ready to be stored."""

    decision: Decision
    error: Problem | None
    activity_id: str
    approval: ApprovalRequest | None
    attestation_id: str | None
    chain: Chain | None = None
    """Position of its attestation in a chain."""


def actor_of(case: Case) -> str:
    """Return the id of the caller, as logged."""
    if case.actor_id:
        return case.actor_id
    if case.key is not None:
        return case.key.key_id
    return case.agent_id if case.credentials.agent_token is not None else GATE


def leaf_of(case: Case, record: DecisionRecord, commitment: str, now: float) -> leaf.Leaf:
    """Build the leaf of a decision, which is never erased."""
    assessment, context = case.assessment, case.context
    verification = assessment.verification if assessment is not None else None
    permitted = record.decision.permits
    return leaf.Leaf(
        v=leaf.VERSION,
        about=None if case.message is None else case.message.trace_id,
        activity_id=record.activity_id,
        agent_id=case.agent_id,
        by=actor_of(case),
        commitment=commitment,
        action_type=_type_of(case),
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


def _type_of(case: Case) -> str | None:
    """Return the action type if it is a known one, else None."""
    if case.message is not None:
        return A2A_MESSAGE
    return case.action.type if case.action is not None and case.action.type in KNOWN_TYPES else None


def payload_of(case: Case, record: DecisionRecord) -> str:
    """Build the encoded payload that is stored with the leaf."""
    assessment, context = case.assessment, case.context
    intent = context.user_intent if context is not None else None
    conversation_id = masked_name(context.conversation_id) if context is not None else None
    if assessment is not None and intent is None and case.justification is None and _is_as_assessed(assessment, record):
        return with_members(assessment.encoded_payload, conversation_id, record.chain)
    secret, has_statements = _has_secret(case), intent is not None or case.justification is not None
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
        _replace(payload, error=record.error, conversation_id=conversation_id, chain=record.chain, **statements)
    )


def _is_as_assessed(assessment: Assessment, record: DecisionRecord) -> bool:
    return not assessment.has_secret and record.error is (
        None if assessment.refusal is None else assessment.refusal.error
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
