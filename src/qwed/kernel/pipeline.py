"""One request, in a straight line: DESIGN 3.

A refusal is a value and stops the walk. An exception is a surprise: it is caught once, here, and answered DENIED.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.judging.judgement import Judgement, conclude
from qwed.kernel.people.approvals import expire_in_passing
from qwed.kernel.services import Services
from qwed.kernel.stages.assess_risk import assess_risk
from qwed.kernel.stages.authenticate import authenticate, require_active
from qwed.kernel.stages.check_budget import check_budget, check_high_risk
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.stages.decide import decide
from qwed.kernel.stages.detect_loops import detect_loops
from qwed.kernel.stages.recall import recall, remembered_answer
from qwed.kernel.stages.require_context import require_context
from qwed.kernel.stages.reserve_step import reserve_step
from qwed.kernel.stages.run_engine import run_engine
from qwed.kernel.stages.settle import settle
from qwed.store.credentials import API_KEY, prefix_of
from qwed.store.protocol import Moved, StoreError, Wanted
from qwed.words import Decision, ErrorCode, Risk

Stage = Callable[[Case, Services], Any]
"""`Case | Answer`; `run_engine` may return a coroutine of one, because it alone may wait for a worker."""

ADMISSION: tuple[Stage, ...] = (authenticate, require_active, require_context, recall, reserve_step)

JUDGEMENT: tuple[Stage, ...] = (detect_loops, check_budget, check_permissions, run_engine, assess_risk, decide)

_HIGH = Risk.HIGH

MOMENT, MATTER = JUDGEMENT[:2], JUDGEMENT[2:]
"""What depends on when it is asked, and what depends on nothing but the agent and the action (see `judgement.py`)."""


T = TypeVar("T")

_WALKS = 5
"""How often a request is walked through before it is given back: each time somebody else got on."""


class Walk:
    """How far a case has come, so that a surprise knows what to free and what to record."""

    __slots__ = ("case",)

    def __init__(self, case: Case) -> None:
        self.case = case


async def verify_action(case: Case, services: Services) -> Answer:
    """The answer to one request; whatever happens on the way, never an approval by accident."""
    attempts = _ALONE if services.store.freshen is None else _AMONG_OTHERS
    answer: Answer | Moved | Problem = await fail_closed(Walk(case), attempts, services)
    if isinstance(answer, Answer):
        return answer
    return Answer(decision=Decision.DENIED, error=problem(ErrorCode.INTERNAL) if isinstance(answer, Moved) else answer)


Attempt = Callable[[Walk, Services], Coroutine[Any, None, T]]
Wanting = Callable[[Case, Services], Wanted]


async def fail_closed(walk: Walk, attempts: tuple[Attempt[T | Problem], ...], services: Services) -> T | Problem:
    """What the first attempt came to that was not surprised; why nothing is given, where there was none."""
    for attempt in attempts:
        try:
            # Inside what fails closed: a surprise while freeing is a refusal too.
            try:
                return await attempt(walk, services)
            finally:
                _free(walk.case, services)
        except (StoreError, TimeoutError) as error:
            services.log.error("store failed: %s", error, extra={"agent_id": walk.case.agent_id})
            return problem(
                ErrorCode.DEPENDENCY_DOWN, "the decision could not be kept, so it is not given", retry_after=1
            )
        except Exception:  # the kernel's one broad except: a surprise is a refusal
            services.log.exception("surprise", extra={"agent_id": walk.case.agent_id})
    return problem(ErrorCode.INTERNAL)


async def _walked(walk: Walk, services: Services) -> Answer | Moved:
    expire_in_passing(services, walk.case.now)
    refusal = pass_through(ADMISSION, walk, services)
    if walk.case.agent is None:
        return refusal or denied(ErrorCode.INTERNAL)
    if walk.case.remembered is not None:
        return remembered_answer(walk.case, walk.case.remembered, services)
    if refusal is None:
        refusal = pass_through(MOMENT, walk, services) or await _judged(walk, services)
    if services.at_stage is not None:
        services.at_stage("settle")
    answer = await settle(walk.case, refusal, services)
    if services.at_stage is not None:
        services.at_stage("answer")
    return answer


async def _judged(walk: Walk, services: Services) -> Answer | None:
    """Work the matter out, or remember what was worked out before."""
    tools = services.store.tool_rows(walk.case.agent.organisation_id)
    known = services.judgements.find(walk.case, tools)
    if known is None:
        known = await _judge(walk, services)
        services.judgements.keep(walk.case, tools, known)
    walk.case = replace(walk.case, judgement=known)
    if known.refusal is None and known.risk >= _HIGH:
        return pass_through((check_high_risk,), walk, services)
    return known.refusal


def pass_through(stages: tuple[Stage, ...], walk: Walk, services: Services) -> Answer | None:
    """Walk the case through `stages`; the refusal that stopped it, if one did."""
    hook = services.at_stage
    for stage in stages:
        if hook is not None:
            hook(stage.__name__)
        outcome = stage(walk.case, services)
        if isinstance(outcome, Answer):
            return outcome
        walk.case = outcome
    return None


async def _judge(walk: Walk, services: Services) -> Judgement:
    """Walk through MATTER, waiting where the engine has to be waited for."""
    for stage in MATTER:
        if services.at_stage is not None:
            services.at_stage(stage.__name__)
        outcome = stage(walk.case, services)
        if isinstance(outcome, Coroutine):
            outcome = await outcome
        if isinstance(outcome, Answer):
            return conclude(walk.case, outcome)
        walk.case = outcome
    return conclude(walk.case, None)


async def _record_surprise(walk: Walk, services: Services) -> Answer | Problem:
    if walk.case.agent is None:
        return denied(ErrorCode.INTERNAL)
    answer = await settle(walk.case, denied(ErrorCode.INTERNAL), services)
    return problem(ErrorCode.INTERNAL) if isinstance(answer, Moved) else answer


def _free(case: Case, services: Services) -> None:
    """Give back what is still held; after a settlement there is nothing left."""
    try:
        if case.reservation is not None and not case.reservation.settled:
            services.store.release(case.reservation)
    finally:
        if case.body_hash and case.idempotency_key is not None:
            services.store.release_key(case.agent_id, services.vault.fingerprint(case.idempotency_key))


async def again(walk: Walk, attempt: Attempt[T | Moved], wanted: Wanting, services: Services) -> T | Problem:
    """What the attempt came to on ground that did not move under it: freshened, from the start, and not for ever."""
    asked, freshen = walk.case, services.store.freshen
    for _ in range(_WALKS):
        if freshen is not None:
            ticket = freshen(wanted(asked, services))
            if ticket is not None:
                await ticket
        outcome = await attempt(walk, services)
        if not isinstance(outcome, Moved):
            return outcome
        _free(walk.case, services)
        walk.case = replace(asked, unsaid=walk.case.unsaid)
    return problem(ErrorCode.DEPENDENCY_DOWN, "others were always first: ask again", retry_after=1)


async def _decide(walk: Walk, services: Services) -> Answer | Problem:
    return await again(walk, _walked, _wanted, services)


def _wanted(case: Case, services: Services) -> Wanted:
    """What a decision looks at: the caller, the agent, its counters, the conversation, the stored answer."""
    shown, name, agent_id = case.credentials, services.vault.fingerprint, case.agent_id
    stated = case.context_raw.get("conversation_id") if isinstance(case.context_raw, dict) else None
    return Wanted(
        prefix=None if shown.api_key is None else prefix_of(shown.api_key, API_KEY),
        agent_id=agent_id,
        conversations=((agent_id, name(stated)),) if isinstance(stated, str) else (),
        memory=None if case.idempotency_key is None else (agent_id, name(case.idempotency_key)),
        spends=True,
    )


_ALONE: tuple[Attempt[Answer | Moved | Problem], ...] = (_walked, _record_surprise)
"""Where nobody else writes, nothing moves."""
_AMONG_OTHERS: tuple[Attempt[Answer | Moved | Problem], ...] = (_decide, _record_surprise)
