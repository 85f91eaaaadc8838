"""Ruling 4.14: one message, in a straight line: who sends is known; then active, step, loops, budget, judge, record.

The walk of an action, with a judge in place of trust and risk. What is not durable is not forwarded.
"""

import re
from typing import Any, NamedTuple

import msgspec

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import folded
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, Credentials, replace
from qwed.kernel.change import change_of, keep
from qwed.kernel.keeping.payload import shown_name
from qwed.kernel.keeping.recorded import Outcome, payload_of
from qwed.kernel.messages.boundary import wait_of
from qwed.kernel.messages.floods import Place
from qwed.kernel.messages.message import TRUST_BOUNDARY, Carried, Judge, Message, Ruled, Sender
from qwed.kernel.messages.place import place_message
from qwed.kernel.messages.ruling import bare_action, judged, refused_by
from qwed.kernel.people.approvals import expire_in_passing
from qwed.kernel.pipeline import Stage, Walk, again, fail_closed, pass_through
from qwed.kernel.request import is_subject
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import require_active
from qwed.kernel.stages.check_budget import check_request
from qwed.kernel.stages.detect_loops import detect_loops
from qwed.kernel.stages.reserve_step import reserve_step
from qwed.kernel.stages.settle import commit
from qwed.kernel.tools import A2A_MESSAGE
from qwed.store.parts import OrganisationStands
from qwed.store.protocol import Kept, Moved, Wanted
from qwed.words import Decision, ErrorCode, Event
from qwed.words.ids import timed_id

STAGES: tuple[Stage, ...] = (require_active, place_message, reserve_step, detect_loops, check_request)
"""What a message of a registered agent passes before it is judged."""
_TRACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


async def carry(message: Message, sender: Sender, judge: Judge, services: Services) -> Carried | Problem:
    """What became of the message, once that is durable; a problem where nothing could be kept, and then it stays."""
    if _TRACE.fullmatch(message.trace_id) is None:
        # It stands in the leaf for good.
        return problem(ErrorCode.MALFORMED, "a trace id must be 1 to 64 letters, digits, `_`, `-`, `.` or `:`")
    errand = _Errand(message, sender, judge)
    walk = Walk(_case_of(message, sender))
    carried: Carried | Problem = await fail_closed(walk, (errand.decide, errand.record_surprise), services)
    if isinstance(carried, Problem):
        return problem(ErrorCode.DEPENDENCY_DOWN, "the verdict could not be kept, so it is not given", retry_after=1)
    return carried


def _case_of(message: Message, sender: Sender) -> Case:
    case = Case(
        agent_id=message.sender,
        credentials=Credentials(),
        action_raw=None,
        message=message,
        by=sender.by,
        now=message.now,
        key=sender.key,
    )
    return case if sender.agent is None else replace(case, agent=sender.agent)


class _Errand(NamedTuple):
    """One message on its way, and who judges it."""

    message: Message
    sender: Sender
    judge: Judge

    @property
    def place(self) -> Place:
        """One for all spellings of a name, as their rate is."""
        return self.sender.organisation_id, folded(self.message.sender), folded(self.message.receiver)

    async def decide(self, walk: Walk, services: Services) -> Carried | Problem:
        # What the judge said stays said: it has counted the message.
        errand = self._replace(judge=_Once(self.judge))
        return await again(walk, errand.walked, errand.wanted, services)

    def wanted(self, case: Case, services: Services) -> Wanted:
        """What is looked at: the sender, and what both sides have said in the conversation."""
        stated, house = self.message.conversation_id, self.sender.organisation_id
        if case.agent is None or stated is None:
            return Wanted(agent_id=case.agent_id, organisation_id=house, spends=case.agent is not None)
        name = services.vault.fingerprint(stated)
        sides = ((case.agent.agent_id, name), (folded(self.message.receiver), name))
        return Wanted(agent_id=case.agent_id, organisation_id=house, conversations=sides, spends=True)

    async def walked(self, walk: Walk, services: Services) -> Carried | Moved:
        expire_in_passing(services, walk.case.now)
        walk.case = replace(walk.case, action=bare_action(self.message))
        refusal = self._admit(walk, services)
        ruled = None
        if refusal is None:
            _at("judge", services)
            ruled = await self.judge(self.message, self.sender)
        flood = self._flood_of(ruled, refusal, services)
        if flood is not None:
            said = ruled or refused_by(_error(refusal), walk.case)
            known = services.floods.join(self.place, flood, said, services.clock.now())
            if known is not None:
                return known
        if ruled is not None:
            judgement = judged(self.message, ruled)
            walk.case, refusal = replace(walk.case, judgement=judgement), judgement.refusal
        walk.case = replace(walk.case, unsaid=walk.case.unsaid + services.floods.unsaid(self.place))
        _at("settle", services)
        carried = await self._keep(walk.case, ruled, refusal, services)
        if flood is not None and not isinstance(carried, Moved):
            services.floods.begin(self.place, flood, carried)
        _at("answer", services)
        return carried

    def _flood_of(self, ruled: Ruled | None, refusal: Answer | None, services: Services) -> str | None:
        """Which of the floods of a pair over its rate this is: of messages that are refused and nobody looked into."""
        if ruled is not None:
            unseen = ruled.engine == TRUST_BOUNDARY and not ruled.forwarded
            why = "rate" if ruled.wait > 0 else "lists"
            return why if ruled.flood and unseen else None
        error = _error(refusal)
        return f"{error.code} {error.check}" if wait_of(*self.place, services) > 0 else None

    def _admit(self, walk: Walk, services: Services) -> Answer | None:
        if walk.case.agent is not None:
            return pass_through(STAGES, walk, services)
        return _stopped() if services.store.halted(self.sender.organisation_id) else None

    async def record_surprise(self, walk: Walk, services: Services) -> Carried | Problem:
        carried = await self._keep(walk.case, None, denied(ErrorCode.INTERNAL), services)
        return problem(ErrorCode.INTERNAL) if isinstance(carried, Moved) else carried

    async def _keep(
        self, case: Case, ruled: Ruled | None, refusal: Answer | None, services: Services
    ) -> Carried | Moved:
        if case.agent is None:
            return await self._keep_event(case, ruled, refusal, services)
        kept = await commit(case, refusal, services)
        if isinstance(kept, Moved):
            return kept
        error = kept.outcome.error
        said = _said(ruled, refusal, error, case)
        return Carried(said, kept.outcome.activity_id, kept.settled.log_index, kept.entry.time_ms / 1000)

    async def _keep_event(self, case: Case, ruled: Ruled | None, refusal: Answer | None, services: Services) -> Carried:
        """A leaf of the organisation: the sender is nobody of its own."""
        now = services.clock.now()
        activity_id, house = timed_id("act", now), self.sender.organisation_id
        error = None if refusal is None else refusal.error
        decision = Decision.APPROVED if refusal is None else refusal.decision
        found = None if case.judgement is None or ruled is None else case.judgement.verification
        change = change_of(
            Event.MESSAGE_FORWARDED if error is None else Event.MESSAGE_BLOCKED,
            self.sender.by,
            house,
            now,
            services,
            key=services.vault.key_for(house, self.message.sender) if is_subject(self.message.sender) else None,
            said=_content_of(case, Outcome(decision, error, activity_id, None, None)),
            activity_id=activity_id,
            parts=(OrganisationStands(house, self.message.sender, self.message.receiver),) if error is None else (),
            about=self.message.trace_id,
            action_type=A2A_MESSAGE,
            engine=None if found is None else found.engine,
            status=None if found is None else found.status,
            error=None if error is None else error.code,
            repeats=case.unsaid,
        )
        kept = await keep(change, services)
        if isinstance(kept, Kept):
            return Carried(_said(ruled, refusal, error, case), activity_id, kept.log_index, now)
        late = _stopped() if services.store.halted(house) else denied(ErrorCode.MESSAGE_BLOCKED)
        return await self._keep_event(case, None, late, services)


class _Once:
    """A judge who is asked once about a message, however often it is walked through."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._said: Ruled | None = None

    async def __call__(self, message: Message, sender: Sender) -> Ruled:
        if self._said is None:
            self._said = await self._judge(message, sender)
        return self._said


def _said(ruled: Ruled | None, refusal: Answer | None, error: Problem | None, case: Case) -> Ruled:
    """What was decided: the judge's word, unless the kernel had another."""
    if error is not None and (ruled is None or ruled.forwarded or refusal is None or error is not refusal.error):
        return refused_by(error, case)
    if ruled is None:
        raise RuntimeError("nobody has judged the message")
    return ruled


def _stopped() -> Answer:
    return denied(ErrorCode.AGENT_SUSPENDED, "every agent of the organisation is stopped")


def _error(refusal: Answer | None) -> Problem:
    if refusal is None or refusal.error is None:
        raise RuntimeError("nobody has refused the message")
    return refusal.error


def _content_of(case: Case, outcome: Outcome) -> dict[str, Any]:
    """What is kept of a message of nobody's: as of an agent's, without its secrets."""
    kept: dict[str, Any] = msgspec.json.decode(payload_of(case, outcome))
    stated = None if case.message is None else case.message.conversation_id
    return {**kept, "sender": mask(case.agent_id), "conversation_id": None if stated is None else shown_name(stated)}


def _at(stage: str, services: Services) -> None:
    if services.at_stage is not None:
        services.at_stage(stage)
