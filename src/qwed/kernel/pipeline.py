"""Decision pipeline of one request: a fixed list of stages (DESIGN 3).

A refusal is a value and stops the pipeline. An exception is unexpected: it is caught once, here, and answered DENIED.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from qwed.kernel.admin.approvals import expire_before_decision
from qwed.kernel.analysis.assessment import Assessment, assess
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.kernel.stages.assess_risk import assess_risk
from qwed.kernel.stages.authenticate import authenticate, require_active
from qwed.kernel.stages.check_budget import check_budget, check_high_risk
from qwed.kernel.stages.check_idempotency import check_idempotency, stored_answer
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.stages.decide import decide
from qwed.kernel.stages.detect_loops import detect_loops
from qwed.kernel.stages.require_context import require_context
from qwed.kernel.stages.reserve_step import reserve_step
from qwed.kernel.stages.run_engine import run_engine
from qwed.kernel.stages.settle import settle
from qwed.model import Decision, ErrorCode, Risk
from qwed.store.credentials import API_KEY, prefix_of
from qwed.store.protocol import PrefetchKeys, StaleState, StoreError

Stage = Callable[[Case, Services], Any]
"""Returns `Case | Answer`; `run_engine` may return a coroutine of one, because it alone may wait for a worker."""

ADMISSION_STAGES: tuple[Stage, ...] = (authenticate, require_active, require_context, check_idempotency, reserve_step)

DECISION_STAGES: tuple[Stage, ...] = (detect_loops, check_budget, check_permissions, run_engine, assess_risk, decide)

_HIGH = Risk.HIGH

UNCACHED_STAGES, CACHEABLE_STAGES = DECISION_STAGES[:2], DECISION_STAGES[2:]
"""Stages that depend on the time of the request, and stages that depend only on the agent and the action (see
`assessment.py`)."""


T = TypeVar("T")

_MAX_ATTEMPTS = 5
"""Attempts at one request before it is refused because of concurrent commits."""


class PipelineRun:
    """Holder of the current case, so that a failure handler knows what to release and what to record."""

    __slots__ = ("case",)

    def __init__(self, case: Case) -> None:
        self.case = case


async def verify_action(case: Case, services: Services) -> Answer:
    """Decide about one request. A failure of any kind is never an approval."""
    attempts = _SINGLE_PROCESS if services.store.prefetch is None else _SHARED_STORE
    answer: Answer | StaleState | Problem = await fail_closed(PipelineRun(case), attempts, services)
    if isinstance(answer, Answer):
        return answer
    return Answer(
        decision=Decision.DENIED, error=problem(ErrorCode.INTERNAL) if isinstance(answer, StaleState) else answer
    )


Attempt = Callable[[PipelineRun, Services], Coroutine[Any, None, T]]
PrefetchKeysOf = Callable[[Case, Services], PrefetchKeys]


async def fail_closed(run: PipelineRun, attempts: tuple[Attempt[T | Problem], ...], services: Services) -> T | Problem:
    """Return the result of the first attempt that raises nothing, or the problem to answer if all of them raise."""
    for attempt in attempts:
        try:
            # Inside the outer `try`: an exception while releasing is a refusal too.
            try:
                return await attempt(run, services)
            finally:
                _release(run.case, services)
        except (StoreError, TimeoutError) as error:
            services.log.error("store failed: %s", error, extra={"agent_id": run.case.agent_id})
            return problem(
                ErrorCode.DEPENDENCY_DOWN, "the decision could not be stored, so none is given", retry_after=1
            )
        except Exception:  # the kernel's one broad except: an unexpected failure is a refusal
            services.log.exception("pipeline failed; request denied", extra={"agent_id": run.case.agent_id})
    return problem(ErrorCode.INTERNAL)


async def _run_pipeline(run: PipelineRun, services: Services) -> Answer | StaleState:
    expire_before_decision(services, run.case.now)
    refusal = run_stages(ADMISSION_STAGES, run, services)
    if run.case.agent is None:
        return refusal or denied(ErrorCode.INTERNAL)
    if run.case.remembered is not None:
        return stored_answer(run.case, run.case.remembered, services)
    if refusal is None:
        refusal = run_stages(UNCACHED_STAGES, run, services) or await _assess_cached(run, services)
    if services.at_stage is not None:
        services.at_stage("settle")
    answer = await settle(run.case, refusal, services)
    if services.at_stage is not None:
        services.at_stage("answer")
    return answer


async def _assess_cached(run: PipelineRun, services: Services) -> Answer | None:
    """Run the cacheable stages, or take their result from the cache."""
    tools = services.store.tool_rows(run.case.agent.organisation_id)
    assessment = services.assessments.find(run.case, tools)
    if assessment is None:
        assessment = await _assess(run, services)
        services.assessments.keep(run.case, tools, assessment)
    run.case = replace(run.case, assessment=assessment)
    if assessment.refusal is None and assessment.risk >= _HIGH:
        return run_stages((check_high_risk,), run, services)
    return assessment.refusal


def run_stages(stages: tuple[Stage, ...], run: PipelineRun, services: Services) -> Answer | None:
    """Run the case through `stages`; return the refusal that stopped it, or None."""
    hook = services.at_stage
    for stage in stages:
        if hook is not None:
            hook(stage.__name__)
        outcome = stage(run.case, services)
        if isinstance(outcome, Answer):
            return outcome
        run.case = outcome
    return None


async def _assess(run: PipelineRun, services: Services) -> Assessment:
    """Run the cacheable stages, awaiting the engine where necessary."""
    for stage in CACHEABLE_STAGES:
        if services.at_stage is not None:
            services.at_stage(stage.__name__)
        outcome = stage(run.case, services)
        if isinstance(outcome, Coroutine):
            outcome = await outcome
        if isinstance(outcome, Answer):
            return assess(run.case, outcome)
        run.case = outcome
    return assess(run.case, None)


async def _record_failure(run: PipelineRun, services: Services) -> Answer | Problem:
    if run.case.agent is None:
        return denied(ErrorCode.INTERNAL)
    answer = await settle(run.case, denied(ErrorCode.INTERNAL), services)
    return problem(ErrorCode.INTERNAL) if isinstance(answer, StaleState) else answer


def _release(case: Case, services: Services) -> None:
    """Release what the case still reserves; after a commit there is nothing left."""
    try:
        if case.reservation is not None and not case.reservation.committed:
            services.store.release(case.reservation)
    finally:
        if case.body_hash and case.idempotency_key is not None:
            services.store.release_key(case.agent_id, services.vault.fingerprint(case.idempotency_key))


async def retry_on_conflict(
    run: PipelineRun, attempt: Attempt[T | StaleState], wanted: PrefetchKeysOf, services: Services
) -> T | Problem:
    """Run the attempt on refreshed state, again from the start after each conflict, up to a fixed number of times."""
    original, prefetch = run.case, services.store.prefetch
    for _ in range(_MAX_ATTEMPTS):
        if prefetch is not None:
            future = prefetch(wanted(original, services))
            if future is not None:
                await future
        outcome = await attempt(run, services)
        if not isinstance(outcome, StaleState):
            return outcome
        _release(run.case, services)
        run.case = replace(original, coalesced_refusals=run.case.coalesced_refusals)
    message = f"the decision conflicted with concurrent requests {_MAX_ATTEMPTS} times: retry"
    return problem(ErrorCode.DEPENDENCY_DOWN, message, retry_after=1)


async def _run_with_retries(run: PipelineRun, services: Services) -> Answer | Problem:
    return await retry_on_conflict(run, _run_pipeline, _prefetch_keys_of, services)


def _prefetch_keys_of(case: Case, services: Services) -> PrefetchKeys:
    """Return the keys of all rows that a decision reads: caller, agent, counters, conversation, stored answer."""
    credentials, fingerprint, agent_id = case.credentials, services.vault.fingerprint, case.agent_id
    conversation_id = case.context_raw.get("conversation_id") if isinstance(case.context_raw, dict) else None
    return PrefetchKeys(
        prefix=None if credentials.api_key is None else prefix_of(credentials.api_key, API_KEY),
        agent_id=agent_id,
        conversations=((agent_id, fingerprint(conversation_id)),) if isinstance(conversation_id, str) else (),
        idempotency_key=None if case.idempotency_key is None else (agent_id, fingerprint(case.idempotency_key)),
        needs_usage=True,
    )


_SINGLE_PROCESS: tuple[Attempt[Answer | StaleState | Problem], ...] = (_run_pipeline, _record_failure)
"""Attempts where no other process writes to the store, so there are no conflicts."""
_SHARED_STORE: tuple[Attempt[Answer | StaleState | Problem], ...] = (_run_with_retries, _record_failure)
