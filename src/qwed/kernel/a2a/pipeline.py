"""Pipeline of one message between agents: active, step, loops, budget, judge, record (ruling 4.14).

Like the pipeline of an action, with a judge in place of trust and risk. Only a durable verdict forwards a message.
"""

import re
from typing import Any, NamedTuple

import msgspec

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.conversation_step import assign_step
from qwed.kernel.a2a.message import TRUST_BOUNDARY, InterceptedMessage, Judge, MessageResult, MessageVerdict, Sender
from qwed.kernel.a2a.refusal_coalescing import AgentPair
from qwed.kernel.a2a.trust_boundary import wait_of
from qwed.kernel.a2a.verdict_record import assessment_of, bare_action, verdict_of_problem
from qwed.kernel.admin.approvals import expire_before_decision
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.audit_change import build_change, commit_change
from qwed.kernel.case import Case, Credentials, replace
from qwed.kernel.pipeline import PipelineRun, Stage, fail_closed, retry_on_conflict, run_stages
from qwed.kernel.privacy.decision_record import DecisionRecord, payload_of
from qwed.kernel.privacy.payload import masked_name
from qwed.kernel.request import is_subject
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import require_active
from qwed.kernel.stages.check_budget import check_request
from qwed.kernel.stages.detect_loops import detect_loops
from qwed.kernel.stages.reserve_step import reserve_step
from qwed.kernel.stages.settle import commit
from qwed.kernel.tools import A2A_MESSAGE
from qwed.model import Decision, ErrorCode, Event
from qwed.model.ids import timed_id
from qwed.store.change_parts import OrganisationActive
from qwed.store.protocol import ChangeReceipt, PrefetchKeys, StaleState

STAGES: tuple[Stage, ...] = (require_active, assign_step, reserve_step, detect_loops, check_request)
"""Stages that a message of a registered agent passes before the judge."""
_TRACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


async def process_message(
    message: InterceptedMessage, sender: Sender, judge: Judge, services: Services
) -> MessageResult | Problem:
    """Decide about a message and return the durable result; a problem if nothing could be stored, and then it is not
    forwarded."""
    if _TRACE.fullmatch(message.trace_id) is None:
        # It is part of the leaf, which is never erased.
        return problem(ErrorCode.MALFORMED, "a trace id must be 1 to 64 letters, digits, `_`, `-`, `.` or `:`")
    message_run = _MessageRun(message, sender, judge)
    run = PipelineRun(_case_of(message, sender))
    result: MessageResult | Problem = await fail_closed(run, (message_run.decide, message_run.record_failure), services)
    if isinstance(result, Problem):
        return problem(ErrorCode.DEPENDENCY_DOWN, "the verdict could not be stored, so none is given", retry_after=1)
    return result


def _case_of(message: InterceptedMessage, sender: Sender) -> Case:
    case = Case(
        agent_id=message.sender,
        credentials=Credentials(),
        action_raw=None,
        message=message,
        actor_id=sender.actor_id,
        now=message.now,
        key=sender.key,
    )
    return case if sender.agent is None else replace(case, agent=sender.agent)


class _MessageRun(NamedTuple):
    """One message in the pipeline, with its judge."""

    message: InterceptedMessage
    sender: Sender
    judge: Judge

    @property
    def pair(self) -> AgentPair:
        """The same for all spellings of the names, as the rate limit is."""
        return self.sender.organisation_id, fold_name(self.message.sender), fold_name(self.message.receiver)

    async def decide(self, run: PipelineRun, services: Services) -> MessageResult | Problem:
        # The verdict is kept for a retry: the judge has counted the message already.
        memoized = self._replace(judge=_MemoizedJudge(self.judge))
        return await retry_on_conflict(run, memoized.run, memoized.prefetch_keys, services)

    def prefetch_keys(self, case: Case, services: Services) -> PrefetchKeys:
        """Return the keys of all rows that are read: the sender, and both sides of the conversation."""
        conversation_id, organisation_id = self.message.conversation_id, self.sender.organisation_id
        if case.agent is None or conversation_id is None:
            return PrefetchKeys(
                agent_id=case.agent_id, organisation_id=organisation_id, needs_usage=case.agent is not None
            )
        name = services.vault.fingerprint(conversation_id)
        sides = ((case.agent.agent_id, name), (fold_name(self.message.receiver), name))
        return PrefetchKeys(
            agent_id=case.agent_id, organisation_id=organisation_id, conversations=sides, needs_usage=True
        )

    async def run(self, pipeline_run: PipelineRun, services: Services) -> MessageResult | StaleState:
        expire_before_decision(services, pipeline_run.case.now)
        pipeline_run.case = replace(pipeline_run.case, action=bare_action(self.message))
        refusal = self._admit(pipeline_run, services)
        verdict = None
        if refusal is None:
            _enter_stage("judge", services)
            verdict = await self.judge(self.message, self.sender)
        coalescing_key = self._coalescing_key(verdict, refusal, services)
        if coalescing_key is not None:
            refused = verdict or verdict_of_problem(_error_of(refusal), pipeline_run.case)
            coalesced = services.refusal_coalescer.coalesce(self.pair, coalescing_key, refused, services.clock.now())
            if coalesced is not None:
                return coalesced
        if verdict is not None:
            assessment = assessment_of(self.message, verdict)
            pipeline_run.case, refusal = replace(pipeline_run.case, assessment=assessment), assessment.refusal
        pipeline_run.case = replace(
            pipeline_run.case,
            coalesced_refusals=pipeline_run.case.coalesced_refusals + services.refusal_coalescer.take_count(self.pair),
        )
        _enter_stage("settle", services)
        result = await self._commit(pipeline_run.case, verdict, refusal, services)
        if coalescing_key is not None and not isinstance(result, StaleState):
            services.refusal_coalescer.record(self.pair, coalescing_key, result)
        _enter_stage("answer", services)
        return result

    def _coalescing_key(self, verdict: MessageVerdict | None, refusal: Answer | None, services: Services) -> str | None:
        """Return the key under which this refusal is coalesced; None unless the pair is over its rate and the message
        was not inspected."""
        if verdict is not None:
            uninspected = verdict.engine == TRUST_BOUNDARY and not verdict.forwarded
            reason = "rate" if verdict.wait > 0 else "lists"
            return reason if verdict.over_rate and uninspected else None
        error = _error_of(refusal)
        return f"{error.code} {error.check}" if wait_of(*self.pair, services) > 0 else None

    def _admit(self, run: PipelineRun, services: Services) -> Answer | None:
        if run.case.agent is not None:
            return run_stages(STAGES, run, services)
        return _organisation_halted() if services.store.halted(self.sender.organisation_id) else None

    async def record_failure(self, run: PipelineRun, services: Services) -> MessageResult | Problem:
        result = await self._commit(run.case, None, denied(ErrorCode.INTERNAL), services)
        return problem(ErrorCode.INTERNAL) if isinstance(result, StaleState) else result

    async def _commit(
        self, case: Case, verdict: MessageVerdict | None, refusal: Answer | None, services: Services
    ) -> MessageResult | StaleState:
        if case.agent is None:
            return await self._commit_event(case, verdict, refusal, services)
        committed = await commit(case, refusal, services)
        if isinstance(committed, StaleState):
            return committed
        error = committed.record.error
        final = _final_verdict(verdict, refusal, error, case)
        return MessageResult(
            final, committed.record.activity_id, committed.receipt.log_index, committed.entry.time_ms / 1000
        )

    async def _commit_event(
        self, case: Case, verdict: MessageVerdict | None, refusal: Answer | None, services: Services
    ) -> MessageResult:
        """Write a leaf of the organisation, for a sender that is not registered."""
        now = services.clock.now()
        activity_id, organisation_id = timed_id("act", now), self.sender.organisation_id
        error = None if refusal is None else refusal.error
        decision = Decision.APPROVED if refusal is None else refusal.decision
        verification = None if case.assessment is None or verdict is None else case.assessment.verification
        change = build_change(
            Event.MESSAGE_FORWARDED if error is None else Event.MESSAGE_BLOCKED,
            self.sender.actor_id,
            organisation_id,
            now,
            services,
            key=services.vault.key_for(organisation_id, self.message.sender)
            if is_subject(self.message.sender)
            else None,
            content=_content_of(case, DecisionRecord(decision, error, activity_id, None, None)),
            activity_id=activity_id,
            parts=(OrganisationActive(organisation_id, self.message.sender, self.message.receiver),)
            if error is None
            else (),
            about=self.message.trace_id,
            action_type=A2A_MESSAGE,
            engine=None if verification is None else verification.engine,
            status=None if verification is None else verification.status,
            error=None if error is None else error.code,
            repeats=case.coalesced_refusals,
        )
        receipt = await commit_change(change, services)
        if isinstance(receipt, ChangeReceipt):
            return MessageResult(_final_verdict(verdict, refusal, error, case), activity_id, receipt.log_index, now)
        late_refusal = (
            _organisation_halted() if services.store.halted(organisation_id) else denied(ErrorCode.MESSAGE_BLOCKED)
        )
        return await self._commit_event(case, None, late_refusal, services)


class _MemoizedJudge:
    """Judge that is asked once per message, even if the pipeline is retried."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._verdict: MessageVerdict | None = None

    async def __call__(self, message: InterceptedMessage, sender: Sender) -> MessageVerdict:
        if self._verdict is None:
            self._verdict = await self._judge(message, sender)
        return self._verdict


def _final_verdict(
    verdict: MessageVerdict | None, refusal: Answer | None, error: Problem | None, case: Case
) -> MessageVerdict:
    """Return the judge's verdict, unless the kernel itself refused the message."""
    if error is not None and (verdict is None or verdict.forwarded or refusal is None or error is not refusal.error):
        return verdict_of_problem(error, case)
    if verdict is None:
        raise RuntimeError("the message has no verdict")
    return verdict


def _organisation_halted() -> Answer:
    return denied(ErrorCode.AGENT_SUSPENDED, "every agent of the organisation is stopped")


def _error_of(refusal: Answer | None) -> Problem:
    if refusal is None or refusal.error is None:
        raise RuntimeError("the message has no refusal")
    return refusal.error


def _content_of(case: Case, record: DecisionRecord) -> dict[str, Any]:
    """Return the stored content of a message from an unregistered sender, with its secrets masked."""
    content: dict[str, Any] = msgspec.json.decode(payload_of(case, record))
    conversation_id = None if case.message is None else case.message.conversation_id
    return {
        **content,
        "sender": mask(case.agent_id),
        "conversation_id": None if conversation_id is None else masked_name(conversation_id),
    }


def _enter_stage(stage: str, services: Services) -> None:
    if services.at_stage is not None:
        services.at_stage(stage)
