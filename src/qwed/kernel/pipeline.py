"""Pipeline of one request: load, admit, reserve, assess, conclude, record, commit (DESIGN 3).

`load` reads a snapshot, `admit` and `conclude` are pure functions of it, `commit` writes or returns a conflict. One
loop goes around them, because other requests may commit in between. A refusal is a value. An exception is unexpected:
it is caught once, here, and answered DENIED.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from qwed.domain.budget import NO_COST
from qwed.domain.change_parts import Conflict
from qwed.domain.snapshot import Snapshot
from qwed.domain.write_set import Committed, Reservation
from qwed.futures import Future
from qwed.kernel.admin.approvals import expire, expire_of
from qwed.kernel.admission import admit, parse, snapshot_keys_of
from qwed.kernel.analysis.assess import assess
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.decision import apply_policies, conclude
from qwed.kernel.idempotency import stored_answer
from qwed.kernel.policies.compiled_sets import PolicySetError, compiled_set
from qwed.kernel.policies.usage import usage_keys_of, usage_of_call
from qwed.kernel.record import RecordedDecision, answer_of, proof_of, record_decision
from qwed.kernel.services import Services
from qwed.model import Decision, ErrorCode
from qwed.store.protocol import StoreError

MAX_ATTEMPTS = 16
"""Attempts at one request before it is refused because of concurrent commits."""
_EMPTY_SNAPSHOT = Snapshot()
_CONFLICTED = f"the decision conflicted with concurrent requests {MAX_ATTEMPTS} times: retry"
_STORE_FAILED = "the decision could not be stored, so none is given"

T = TypeVar("T")


Step = Callable[["Run"], Coroutine[Any, None, T | Problem]]
Attempt = Callable[["Run"], Coroutine[Any, None, T | Conflict]]
"""One attempt at a decision. Its result is a conflict where it must be made again, on a new snapshot."""


class CommittedDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision that is durable."""

    recorded: RecordedDecision
    committed: Committed


class Run:
    """One request on its way through the pipeline: what it has reserved, and what a failure must record."""

    __slots__ = ("assessed", "case", "enter", "is_committed", "reservation", "services")

    def __init__(self, case: Case, services: Services) -> None:
        self.case = case
        self.services = services
        self.enter = services.at_stage
        """Called with the name of each stage before it runs; None in production."""
        self.reservation: Reservation | None = None
        self.is_committed = False
        self.assessed: Case | None = None
        """The case of an earlier attempt with its assessment, which holds while agent and tools are the same."""

    async def load(self) -> Snapshot:
        """Return everything that the decision reads, as of now."""
        store, case = self.services.store, self.case
        if self.enter is not None:
            self.enter("load")
        if case.now >= store.next_expiry:
            expire(self.services, case.now)
        loaded = store.load(snapshot_keys_of(case, self.services.vault))
        return await loaded if isinstance(loaded, Future) else loaded

    def reserve(self, snapshot: Snapshot) -> Conflict | None:
        """Reserve the admitted step, its cost and its idempotency key."""
        case, key = self.case, self.case.idempotency_key
        if self.enter is not None:
            self.enter("reserve")
        reservation = Reservation(
            case.agent_id,
            case.conversation_id or "",
            case.step,
            case.charge,
            case.now,
            idempotency_key=None if key is None else self.services.vault.fingerprint(key),
        )
        conflict = self.services.store.reserve(reservation, snapshot)
        if conflict is None:
            self.reservation = reservation
        return conflict

    async def commit(self, refusal: Answer | None, snapshot: Snapshot) -> CommittedDecision | Conflict:
        """Conclude, record and commit, and return the decision once it is durable."""
        services, now = self.services, self.services.clock.now()
        snapshot = self._with_newest_chain(snapshot)
        if refusal is None:
            if not snapshot.policies.is_empty:
                snapshot = await self._with_usage(snapshot, now)
            self.case = apply_policies(self.case, snapshot, now)
        outcome = conclude(self.case, snapshot, refusal, services.settings, now)
        is_in_the_way = snapshot.usage.counters.open_approvals and outcome.may_pass_after_expiry
        if is_in_the_way and await expire_of(self.case.agent, services, now):
            return Conflict.STALE
        if self.is_committed:
            # The record of a failure after the commit: the request is charged already.
            outcome = replace(outcome, charge=NO_COST)
        recorded = record_decision(self.case, outcome, self.reservation, services, now)
        if self.enter is not None:
            self.enter("commit")
        committed = await services.store.commit(recorded.write_set)
        if isinstance(committed, Conflict):
            return await self._refuse_conflict(committed, snapshot)
        self.is_committed = True
        if self.case.idempotency_key is None:
            # Released with the commit; an idempotency key is in flight until here.
            self.reservation = None
        return CommittedDecision(recorded, committed)

    async def _with_usage(self, snapshot: Snapshot, now: float) -> Snapshot:
        """Return the snapshot with the rolling usage that policies read about the analyzed action."""
        basis = None if self.case.assessment is None else self.case.assessment.basis
        keys = None if basis is None else usage_of_call(compiled_set(snapshot.policies), basis)
        if basis is None or keys is None or not keys.all_read:
            return snapshot
        # By now, because which values are read depends on the tool that was found.
        loaded = self.services.store.load(usage_keys_of(basis, keys, now))
        loaded = await loaded if isinstance(loaded, Future) else loaded
        return replace(snapshot, usage_values=loaded.usage_values)

    def _with_newest_chain(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the end of the chain that the commits in flight give it."""
        chain_id = self.case.chain_id
        if chain_id is None:
            return snapshot
        newest = self.services.store.newest_chain_end(self.case.agent.organisation_id, chain_id)
        return snapshot if newest is None else replace(snapshot, chain=newest)

    async def _refuse_conflict(self, conflict: Conflict, snapshot: Snapshot) -> CommittedDecision | Conflict:
        """Record the refusal for a conflict that another attempt would meet as well, or return the conflict."""
        if conflict is not Conflict.LEASE_EXPIRED or self.reservation is None:
            return conflict
        self.release()
        return await self.commit(denied(ErrorCode.LEASE_EXPIRED), snapshot)

    def release(self) -> None:
        """Release what the request still reserves."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            self.services.store.release(reservation)


async def verify_action(case: Case, services: Services) -> Answer:
    """Decide about one request. A failure of any kind is never an approval."""
    run = Run(case, services)
    answer = await decide_durably(run, _parse, _attempt, _record_failure)
    return answer if isinstance(answer, Answer) else Answer(decision=Decision.DENIED, error=answer)


async def decide_durably(
    run: Run, prepare: Callable[[Run], None], attempt: Attempt[T], record_failure: Step[T]
) -> T | Problem:
    """Return the result of the first attempt that does not conflict with what other requests commit.

    A request that fails unexpectedly is recorded as refused; if that fails too, it is refused all the same.
    """
    is_failed = False
    while True:
        try:
            # Inside the outer `try`: an exception while releasing is a refusal too.
            try:
                if is_failed:
                    return await record_failure(run)
                prepare(run)
                prepared = run.case
                for _ in range(MAX_ATTEMPTS):
                    result = await attempt(run)
                    if not isinstance(result, Conflict):
                        return result
                    run.release()
                    run.case = replace(prepared, coalesced_refusals=run.case.coalesced_refusals)
                return problem(ErrorCode.DEPENDENCY_DOWN, _CONFLICTED, retry_after=1)
            finally:
                run.release()
        except (StoreError, TimeoutError, PolicySetError) as error:
            return _refuse_outage(error, run)
        except Exception:  # the kernel's one broad except: an unexpected failure is a refusal
            run.services.log.exception("pipeline failed; request denied", extra={"agent_id": run.case.agent_id})
            if is_failed:
                return problem(ErrorCode.INTERNAL)
            is_failed = True


def _refuse_outage(error: Exception, run: Run) -> Problem:
    """Log and return why no decision is given."""
    about = {"agent_id": run.case.agent_id}
    if isinstance(error, PolicySetError):
        run.services.log.error("policies unreadable; no decision given: %s", error, extra=about)
        return problem(ErrorCode.POLICIES_DAMAGED)
    run.services.log.error("store failed: %s", error, extra=about)
    return problem(ErrorCode.DEPENDENCY_DOWN, _STORE_FAILED, retry_after=1)


def _parse(run: Run) -> None:
    run.case = parse(run.case, run.services.settings, run.services.vault)


async def _attempt(run: Run) -> Answer | Conflict:
    services = run.services
    snapshot = await run.load()
    if run.enter is not None:
        run.enter("admit")
    admission = admit(run.case, snapshot, services.settings)
    run.case, refusal = admission.case, admission.refusal
    if run.case.agent is None:
        return refusal or denied(ErrorCode.INTERNAL)
    if refusal is None and run.case.remembered is not None:
        return stored_answer(run.case, run.case.remembered, services)
    if refusal is None:
        conflict = run.reserve(snapshot)
        if conflict is not None:
            return conflict
        assessment = run.services.assessments.find(run.case)
        if assessment is None:
            assessment = await _assess(run)
        run.case = run.assessed = replace(run.case, assessment=assessment)
    result = await run.commit(refusal, snapshot)
    if isinstance(result, Conflict):
        return result
    return _answer(run, result)


async def _assess(run: Run) -> Assessment:
    """Assess what the action does; an assessment of an earlier attempt holds while agent and tools are the same."""
    case, assessed = run.case, run.assessed
    if assessed is not None and assessed.agent is case.agent and assessed.tools is case.tools:
        assessment = assessed.assessment
        if assessment is not None:
            return assessment
    outcome = assess(case, run.services)
    assessment = outcome if isinstance(outcome, Assessment) else await outcome
    run.services.assessments.keep(case, assessment)
    return assessment


def _answer(run: Run, decision: CommittedDecision) -> Answer:
    record, committed = decision.recorded.record, decision.committed
    answer = answer_of(run.case, record, committed)
    if record.decision.permits:
        if run.enter is not None:
            run.enter("attest")
        answer = replace(answer, attestation=proof_of(run.case, decision.recorded, committed, run.services))
    if run.enter is not None:
        run.enter("answer")
    return answer


async def _record_failure(run: Run) -> Answer | Problem:
    if run.case.agent is None:
        return denied(ErrorCode.INTERNAL)
    result = await run.commit(denied(ErrorCode.INTERNAL), _EMPTY_SNAPSHOT)
    return problem(ErrorCode.INTERNAL) if isinstance(result, Conflict) else _answer(run, result)
