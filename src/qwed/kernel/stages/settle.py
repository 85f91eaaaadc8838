"""One durable transaction: step, charge, activity leaf and approval, or none of them. Nothing is answered before it."""

from typing import NamedTuple

import msgspec

from qwed.kernel.agents.trust import degraded
from qwed.kernel.answer import HTTP, Answer, Problem, Remaining, denied, problem
from qwed.kernel.case import Case
from qwed.kernel.change import notices_of
from qwed.kernel.judging.judgement import Judgement
from qwed.kernel.keeping.recorded import Outcome, asked_by, leaf_of, payload_of
from qwed.kernel.people.approvals import expire_of
from qwed.kernel.proving.proof import attestation_of, receipt_of
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import refuse_inactive
from qwed.kernel.stages.recall import memory_place
from qwed.kernel.stages.reserve_step import refuse_loop, refuse_step
from qwed.ledger import leaf
from qwed.ledger.attest import Chain, Receipt, Stated
from qwed.ledger.vault import SubjectKey
from qwed.store.agent import Agent
from qwed.store.conduct import Mark, Offence
from qwed.store.parts import Approval
from qwed.store.protocol import MOVED, Activity, Change, Link, Memory, Moved, Notice, Settled, Settlement
from qwed.store.usage import NOTHING, ONE_REQUEST, Charge
from qwed.words import Decision, ErrorCode, Risk, Status, usd_from
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace
_PENDING, _DENIED, _BUDGET_EXCEEDED = Decision.PENDING, Decision.DENIED, Decision.BUDGET_EXCEEDED
_HIGH = Risk.HIGH

_OF_ITSELF = (
    ErrorCode.LEASE_EXPIRED,
    ErrorCode.AGENT_CHANGED,
    ErrorCode.APPROVALS_FULL,
    ErrorCode.MESSAGE_BLOCKED,
)
"""Refusals that need no more words than their code has."""
_REFUSED = frozenset({Status.FAILED, Status.BLOCKED})
_TRIES = 16
"""Others may lengthen the same chain each time; whoever is always late is asked to look at everything again."""


class Committed(NamedTuple):
    """What was decided about a case, durably."""

    outcome: Outcome
    entry: leaf.Leaf
    text: str
    """The leaf as it stands in the log."""
    settled: Settled


async def settle(case: Case, refusal: Answer | None, services: Services) -> Answer | Moved:
    """The final answer, after it is durable."""
    kept = await commit(case, refusal, services)
    if kept is MOVED:
        return kept
    answer = _answer_of(case, kept.outcome, kept.settled)
    if not kept.outcome.decision.permits:
        return answer
    if services.at_stage is not None:
        services.at_stage("attest")
    return _replace(answer, attestation=_proof_of(case, kept, services))


async def commit(case: Case, refusal: Answer | None, services: Services) -> Committed | Moved:
    """Decide for good, and give what was decided once it is durable."""
    for _ in range(_TRIES):
        now = services.clock.now()
        outcome = _outcome_of(case, refusal, services, now)
        key, text = _subject_of(case, services), payload_of(case, outcome)
        commitment, sealed = key.keep(outcome.activity_id, text)
        entry = leaf_of(case, outcome, commitment, now)
        settlement = _settlement_of(case, outcome, entry, sealed, key, now, services)
        ticket = services.store.settle(settlement)
        settled = ticket if isinstance(ticket, ErrorCode) else await ticket
        if isinstance(settled, Settled):
            return Committed(outcome, entry, settlement.activity.leaf, settled)
        if settled is MOVED:
            return settled
        if not _may_pass_now(case, settled, services, now):
            refusal = _refuse_late(case, settled, services)
    return MOVED


def _may_pass_now(case: Case, code: ErrorCode, services: Services, now: float) -> bool:
    """Whether the same decision may stand at the next try."""
    if code is ErrorCode.CONFLICT:
        # The chain has grown: this attestation is a later link of it.
        return True
    return code is ErrorCode.APPROVALS_FULL and expire_of(case.agent, services, now)


def _proof_of(case: Case, kept: Committed, services: Services) -> str | Receipt | None:
    """The attestation where one was allotted, else the receipt; memory, which proves nothing to anybody, gives none."""
    outcome, entry, text, settled = kept
    placed = settled.placed
    if outcome.attestation_id is None:
        return None if placed is None else receipt_of(text, placed)
    stated = Stated(None if case.judgement is None else case.judgement.payload.sub, outcome.chain)
    return attestation_of(entry, stated, case.agent.organisation_id, settled.log_index, services, placed)


def _subject_of(case: Case, services: Services) -> SubjectKey:
    """DESIGN 7: whom the content is about: whoever the context names, else the principal."""
    context = case.context
    if context is None or context.subject is None:
        return services.vault.key_of_agent(case.agent)
    return services.vault.key_for(case.agent.organisation_id, context.subject)


def _refuse_late(case: Case, code: ErrorCode, services: Services) -> Answer:
    """Another request committed first, or ours outlived its lease."""
    if code in (ErrorCode.REPETITION, ErrorCode.NO_PROGRESS) and case.reservation is not None:
        return refuse_loop(code, case.reservation.conversation.past, case.step)
    if code in _OF_ITSELF:
        return denied(code)
    if code is ErrorCode.AGENT_SUSPENDED:
        return refuse_inactive(case, services)
    return refuse_step(case, code, services.settings.max_steps)


def _outcome_of(case: Case, refusal: Answer | None, services: Services, now: float) -> Outcome:
    activity_id = timed_id("act", now)
    judged = case.judgement
    if refusal is not None or judged is None:
        refusal = refusal or denied(ErrorCode.INTERNAL)
        return Outcome(refusal.decision, refusal.error, activity_id, None, None)
    if judged.decision is _PENDING:
        approval = _approval_of(case, services, now)
        return Outcome(_PENDING, _needs_approval(judged, approval), activity_id, approval, None)
    # Spec 2.3: high risk is executed with attestation; anything else carries one when asked.
    chain_id = case.options.chain_id
    if not (case.options.require_attestation or chain_id is not None or judged.risk >= _HIGH):
        return Outcome(judged.decision, None, activity_id, None, None)
    chain = None if chain_id is None else _next_link(case.agent.organisation_id, chain_id, services)
    return Outcome(judged.decision, None, activity_id, None, timed_id("att", now), chain=chain)


def _next_link(organisation_id: str, chain_id: str, services: Services) -> Chain:
    links, last = services.store.chain(organisation_id, services.vault.fingerprint(chain_id))
    return Chain(id=chain_id, index=links, previous=last)


def _approval_of(case: Case, services: Services, now: float) -> Approval:
    return Approval(
        approval_id=timed_id("apr", now),
        cost=case.charge.cost,
        tokens=case.charge.tokens,
        high_risk_calls=case.charge.high_risk_calls,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
        requested_by=asked_by(case),
    )


def _needs_approval(judged: Judgement, approval: Approval) -> Problem:
    return problem(
        ErrorCode.NEEDS_APPROVAL,
        f"a person must approve this {judged.risk.word} risk action",
        details={"approval_id": approval.approval_id, "expires_at": rfc3339(approval.expires_at)},
    )


def _settlement_of(
    case: Case, outcome: Outcome, entry: leaf.Leaf, sealed: str, key: SubjectKey, now: float, services: Services
) -> Settlement:
    activity = Activity(
        outcome.activity_id,
        outcome.decision,
        now,
        entry.cost_micros,
        leaf.encode(entry).decode(),
        sealed,
        attestation_id=outcome.attestation_id,
        subject_id=key.subject_id,
    )

    def degrade(before: Agent, after: Agent, offence: Offence) -> Change:
        return degraded(before, after, offence, services, now, outcome.activity_id)

    return Settlement(
        agent=case.agent,
        activity=activity,
        decision=outcome.decision,
        charge=_charge_of(case, outcome),
        reservation=case.reservation,
        approval=outcome.approval,
        key=_claimed(case, services),
        memory=_memory_of(case, outcome, key, now, services) if case.idempotency_key is not None else None,
        notices=_notices_of(case, outcome, services, now),
        mark=_mark_of(case, outcome),
        degrade=degrade,
        pair=None if case.message is None else (case.message.sender, case.message.receiver),
        link=_link_of(outcome, services),
    )


def _link_of(outcome: Outcome, services: Services) -> Link | None:
    chain = outcome.chain
    if chain is None or outcome.attestation_id is None:
        return None
    # Under a keyed name, as a conversation is.
    return Link(services.vault.fingerprint(chain.id), chain.index, chain.previous, outcome.attestation_id)


def _notices_of(case: Case, outcome: Outcome, services: Services, now: float) -> tuple[Notice, ...]:
    """Spec 2.3: the principal is told what failed and what waits."""
    if outcome.approval is not None:
        approval_id = outcome.approval.approval_id
        return notices_of("pending", case.agent, outcome.activity_id, services, now, approval_id=approval_id)
    judged = case.judgement
    if judged is None or outcome.decision is not _DENIED or judged.verification is None:
        return ()
    if judged.verification.status not in _REFUSED:
        return ()
    return notices_of("failed", case.agent, outcome.activity_id, services, now)


def _mark_of(case: Case, outcome: Outcome) -> Mark:
    """Ruling 4.2: what the answer says about the agent. A failure of ours, or no decision at all, says nothing."""
    if outcome.decision is _BUDGET_EXCEEDED:
        return Mark.EXCEEDED
    if outcome.decision is not _DENIED or outcome.error is None:
        return Mark.CLEAN
    if not outcome.error.final or HTTP[outcome.error.code] != 200:
        return Mark.NONE
    return Mark.VIOLATION if case.judgement is not None and case.judgement.violation else Mark.DENIED


def _charge_of(case: Case, outcome: Outcome) -> Charge:
    held = case.reservation
    if held is None or held.settled or outcome.decision is _BUDGET_EXCEEDED:
        return NOTHING
    return ONE_REQUEST if case.charge is NOTHING else case.charge


def _claimed(case: Case, services: Services) -> str | None:
    """The idempotency key that this request has claimed, as it is filed."""
    if case.idempotency_key is None or not case.body_hash:
        return None
    return services.vault.fingerprint(case.idempotency_key)


def _memory_of(case: Case, outcome: Outcome, key: SubjectKey, now: float, services: Services) -> Memory | None:
    """Keep what was judged; a full budget or a surprise may pass next time."""
    name = _claimed(case, services)
    if case.idempotency_key is None or name is None or case.judgement is None:
        return None
    may_pass_later = outcome.error is not None and not outcome.error.final and outcome.decision is not _PENDING
    if may_pass_later:
        return None
    place = memory_place(case.agent_id, case.idempotency_key)

    def answer(settled: Settled) -> bytes:
        return key.seal(place, _encode(_answer_of(case, outcome, settled)).decode()).encode()

    expires_at = now + services.settings.idempotency_ttl_seconds
    return Memory(name, case.body_hash, answer, expires_at, key.subject_id)


def _answer_of(case: Case, outcome: Outcome, settled: Settled) -> Answer:
    judged, approval = case.judgement, outcome.approval
    remaining = _remaining(case, settled)
    if judged is None:
        return Answer(
            decision=outcome.decision,
            action_id=outcome.activity_id,
            error=outcome.error,
            budget_remaining=remaining,
        )
    return Answer(
        decision=outcome.decision,
        action_id=outcome.activity_id,
        error=outcome.error,
        verification=judged.verification,
        verified_query=judged.verified_query if outcome.decision.permits else None,
        corrected=judged.corrected if outcome.decision.commits else None,
        budget_remaining=remaining,
        approval_id=approval.approval_id if approval is not None else None,
        expires_at=rfc3339(approval.expires_at) if approval is not None else None,
        tool_name=judged.tool_name,
        risk_assessment=judged.risk_assessment,
        policy_checks=judged.policy_checks,
    )


def _remaining(case: Case, settled: Settled) -> Remaining:
    limits, spent = case.agent.limits, settled.spent
    cost = None if limits.daily_cost is None else limits.daily_cost - spent.cost_day - spent.pending_cost
    requests = None if limits.requests_per_hour is None else limits.requests_per_hour - spent.requests_hour
    return Remaining(
        daily_cost_usd=None if cost is None else usd_from(max(cost, 0)),
        hourly_requests=None if requests is None else max(requests, 0),
    )
