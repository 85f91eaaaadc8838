"""Decision about one message between agents (ruling 4.14).

`admit_message` decides what needs no content: who may send, and how often. The caller judges the content, and with
that verdict `process_message` runs the stages of an action once and commits: the verdict takes the place of trust and
risk. Only a durable verdict forwards a message.
"""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from qwed.domain.budget import ONE_REQUEST
from qwed.domain.change_parts import Conflict, OrganisationActive
from qwed.domain.snapshot import Snapshot
from qwed.domain.write_set import Committed
from qwed.guards.secrets import mask
from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.admission import organisation_halted, verdict_without_content
from qwed.kernel.a2a.conversation_step import parse_step, with_state
from qwed.kernel.a2a.message import InterceptedMessage, MessageResult, MessageVerdict, Sender
from qwed.kernel.a2a.verdict_record import assessment_of, bare_action, verdict_of_problem
from qwed.kernel.admission import Admission, admit_step, refuse_inactive, with_step_number
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.audit_change import build_change, commit_change
from qwed.kernel.case import Case, Credentials, replace
from qwed.kernel.pipeline import Run, decide_durably
from qwed.kernel.privacy.payload import masked_name
from qwed.kernel.record import DecisionRecord, payload_of
from qwed.kernel.request import is_subject
from qwed.kernel.services import Services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.model import Decision, ErrorCode, Event
from qwed.model.ids import timed_id
from qwed.store.protocol import RefreshKeys

_TRACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


async def admit_message(
    message: InterceptedMessage, sender: Sender, services: Services, trusted: Collection[str] = ()
) -> MessageVerdict | Problem | None:
    """Return the verdict on a message whose content need not be judged, None if it must be, or the problem if the
    store does not answer.

    Messages of the `trusted` agents, and of those on the list of the organisation, are not judged.
    """

    async def judge_without_content(run: Run) -> MessageVerdict | None:
        keys = RefreshKeys(agent_id=message.sender, organisation_id=sender.organisation_id)
        refresh = services.store.refresh(keys)
        if refresh is not None:
            await refresh
        verdict = verdict_without_content(message, sender, trusted, services)
        if verdict is None:
            _enter(run, "judge")
        return verdict

    run = Run(_case_of(message, sender), services)
    verdict: MessageVerdict | Problem | None = await decide_durably(run, _nothing, judge_without_content, _internal)
    if isinstance(verdict, Problem) and verdict.code == ErrorCode.INTERNAL.code:
        # Recorded as a refusal, as any failure of ours.
        return verdict_of_problem(verdict)
    return verdict


async def process_message(
    message: InterceptedMessage, sender: Sender, verdict: MessageVerdict, services: Services
) -> MessageResult | Problem:
    """Commit the verdict, or the refusal by a stage, and return the durable result; a problem if nothing could be
    stored, and then the message is not forwarded."""
    if _TRACE.fullmatch(message.trace_id) is None:
        # It is part of the leaf, which is never erased.
        return problem(ErrorCode.MALFORMED, "a trace id must be 1 to 64 letters, digits, `_`, `-`, `.` or `:`")
    run, decision = Run(_case_of(message, sender), services), _MessageDecision(message, sender, verdict)
    result: MessageResult | Problem = await decide_durably(
        run, decision.parse, decision.attempt, decision.record_failure
    )
    if isinstance(result, Problem):
        return problem(ErrorCode.DEPENDENCY_DOWN, "the verdict could not be stored, so none is given", retry_after=1)
    return result


def _case_of(message: InterceptedMessage, sender: Sender) -> Case:
    return Case(
        agent_id=message.sender,
        credentials=Credentials(),
        action_raw=None,
        message=message,
        actor_id=sender.actor_id,
        organisation_id=sender.organisation_id,
        now=message.now,
        key=sender.key,
        agent=sender.agent,  # type: ignore[arg-type]  # None, as before an agent is authenticated
        action=bare_action(message),
    )


class _MessageDecision(NamedTuple):
    """One message in the pipeline, with the verdict on its content."""

    message: InterceptedMessage
    sender: Sender
    verdict: MessageVerdict

    def parse(self, run: Run) -> None:
        run.case = parse_step(run.case, self.message, run.services.vault)

    async def record_failure(self, run: Run) -> MessageResult | Problem:
        result = await self._commit(run, denied(ErrorCode.INTERNAL), Snapshot())
        return problem(ErrorCode.INTERNAL) if isinstance(result, Conflict) else result

    async def attempt(self, run: Run) -> MessageResult | Conflict:
        services, snapshot = run.services, await run.load()
        _enter(run, "admit")
        admission = self._admit(run.case, snapshot, services)
        run.case, refusal = admission.case, admission.refusal
        coalescer, key = services.refusal_coalescer, self._coalescing_key(refusal)
        # The same for all spellings of the names, as the rate limit is.
        pair = self.sender.organisation_id, fold_name(self.message.sender), self.message.receiver_id
        if key is not None:
            verdict = self._final_verdict(run.case, None if refusal is None else refusal.error)
            coalesced = coalescer.coalesce(pair, key, verdict, services.clock.now())
            if coalesced is not None:
                return coalesced
        if refusal is None:
            assessment = assessment_of(self.message, run.case.action, self.verdict)
            run.case, refusal = replace(run.case, assessment=assessment), assessment.refusal
        if refusal is None and run.case.agent is not None:
            conflict = run.reserve(snapshot)
            if conflict is not None:
                return conflict
        repeats = run.case.coalesced_refusals + coalescer.take_count(pair)
        run.case = replace(run.case, coalesced_refusals=repeats)
        result = await self._commit(run, refusal, snapshot)
        if key is not None and not isinstance(result, Conflict):
            coalescer.record(pair, key, result)
        _enter(run, "answer")
        return result

    def _admit(self, case: Case, snapshot: Snapshot, services: Services) -> Admission:
        """Admit a message whatever its content, or refuse it."""
        if case.agent is None or snapshot.agent is None:
            halted = Answer(decision=Decision.DENIED, error=organisation_halted())
            return Admission(case, halted if snapshot.halted else None)
        case = with_state(replace(case, agent=snapshot.agent), snapshot, services.vault)
        if snapshot.stopped:
            return Admission(case, refuse_inactive(snapshot.agent, snapshot.halted))
        if case.unparsed is not None:
            return Admission(case, case.unparsed)
        if self.verdict.forwarded and snapshot.access_lists.refuses(self.message.sender, self.message.receiver):
            return Admission(case, denied(ErrorCode.MESSAGE_BLOCKED))
        return admit_step(with_step_number(case, snapshot), snapshot, ONE_REQUEST, services.settings.max_steps)

    def _coalescing_key(self, refusal: Answer | None) -> str | None:
        """Return the key under which this refusal is coalesced; None unless the pair is over its rate."""
        if not self.verdict.over_rate:
            return None
        error = self.verdict.problem if refusal is None else refusal.error
        return "lists" if error is None else f"{error.code} {error.check}"

    async def _commit(self, run: Run, refusal: Answer | None, snapshot: Snapshot) -> MessageResult | Conflict:
        if run.case.agent is None:
            _enter(run, "commit")
            return await self._commit_event(run.case, refusal, run.services)
        decision = await run.commit(refusal, snapshot)
        if isinstance(decision, Conflict):
            return decision
        record, entry = decision.recorded.record, decision.recorded.entry
        verdict = self._final_verdict(run.case, record.error)
        return MessageResult(verdict, record.activity_id, decision.committed.log_index, entry.time_ms / 1000)

    async def _commit_event(self, case: Case, refusal: Answer | None, services: Services) -> MessageResult:
        """Write a leaf of the organisation, for a sender that is not registered."""
        now, organisation_id, name = services.clock.now(), self.sender.organisation_id, self.message.sender
        activity_id, error = timed_id("act", now), None if refusal is None else refusal.error
        assessment = case.assessment if _is_judged(case, error) else None
        verification = None if assessment is None else assessment.verification
        decision = Decision.APPROVED if refusal is None else refusal.decision
        change = build_change(
            Event.MESSAGE_FORWARDED if error is None else Event.MESSAGE_BLOCKED,
            self.sender.actor_id,
            organisation_id,
            now,
            services,
            key=services.vault.key_for(organisation_id, name) if is_subject(name) else None,
            content=_content_of(case, DecisionRecord(decision, error, activity_id)),
            activity_id=activity_id,
            parts=(OrganisationActive(organisation_id, name, self.message.receiver),) if error is None else (),
            about=self.message.trace_id,
            action_type=A2A_MESSAGE,
            engine=None if verification is None else verification.engine,
            status=None if verification is None else verification.status,
            error=None if error is None else error.code,
            repeats=case.coalesced_refusals,
        )
        receipt = await commit_change(change, services)
        if isinstance(receipt, Committed):
            return MessageResult(self._final_verdict(case, error), activity_id, receipt.log_index, now)
        is_halted = services.store.halted(organisation_id)
        late = organisation_halted() if is_halted else problem(ErrorCode.MESSAGE_BLOCKED)
        return await self._commit_event(case, Answer(decision=Decision.DENIED, error=late), services)

    def _final_verdict(self, case: Case, error: Problem | None) -> MessageVerdict:
        """Return the verdict on the content, unless the kernel itself refused the message."""
        if error is None or _is_judged(case, error):
            return self.verdict
        return verdict_of_problem(error, None if self.message.conversation_id is None else case.context)


def _is_judged(case: Case, error: Problem | None) -> bool:
    """Return True if the content decided, and not a stage, another request, or a failure."""
    refusal = None if case.assessment is None else case.assessment.refusal
    return case.assessment is not None and error is (None if refusal is None else refusal.error)


def _content_of(case: Case, record: DecisionRecord) -> dict[str, Any]:
    """Return the stored content of a message from an unregistered sender, with its secrets masked."""
    content: dict[str, Any] = msgspec.json.decode(payload_of(case, record))
    conversation_id = None if case.message is None else case.message.conversation_id
    return {
        **content,
        "sender": mask(case.agent_id),
        "conversation_id": None if conversation_id is None else masked_name(conversation_id),
    }


def _enter(run: Run, stage: str) -> None:
    if run.enter is not None:
        run.enter(stage)


def _nothing(_run: Run) -> None:
    """Prepare nothing."""


async def _internal(_run: Run) -> Problem:
    return problem(ErrorCode.INTERNAL)
