"""Decides whether a commit or a change is valid now, and which rows it writes.

The same for every store. SQLite, which one process owns, has one instance for its lifetime; PostgreSQL makes one per
batch over the state it has locked and read. State changes only in `apply_commit` and `apply_change`: a write that was
planned may still fail.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from qwed.model import Decision, ErrorCode, Trust
from qwed.store.agent import Agent
from qwed.store.attestation_chains import ChainEnds
from qwed.store.budget import NO_COST, Usage
from qwed.store.change_handlers import ChangeContext, apply_parts, find_conflict
from qwed.store.change_parts import AgentChanged, ApprovalResolved, Conflict
from qwed.store.conversation import ConversationHistory
from qwed.store.entity_cache import EntityCache, ReadOne
from qwed.store.group_commit import PendingWrite
from qwed.store.protocol import Change, ChangeReceipt, CommitReceipt, CommitRequest, Reservation
from qwed.store.reservations import ReservationState
from qwed.store.trust_degradation import LEVELS_LOST, BehaviourFlag, DegradationRule
from qwed.store.trust_evidence import TrustEvidence
from qwed.store.write_set import add_change, commit_write, daily_total_row


class PlannedCommit(NamedTuple):
    """Rows of a commit, and the state to apply with them."""

    write: PendingWrite
    usage: Usage
    history: ConversationHistory | None
    followups: tuple[Change, ...]


class PlannedChange(NamedTuple):
    """Rows of a change, and the counters after it if it changes them."""

    write: PendingWrite
    usage: Usage | None


class CommitLogic:
    """Plans commits and changes. The caller guarantees that nothing else changes the caches meanwhile."""

    def __init__(
        self,
        *,
        entities: EntityCache,
        state: ReservationState,
        chains: ChainEnds,
        one: ReadOne,
        leaves: Callable[[str], int],
        max_open_approvals: int,
    ) -> None:
        self._entities = entities
        self._state = state
        self._chains = chains
        self._one = one
        self._leaves = leaves
        self._max_open_approvals = max_open_approvals
        self._next_index: dict[str, int] = {}

    def next_index(self, organisation_id: str) -> int:
        """Return the index of the next leaf of a log."""
        index = self._next_index.get(organisation_id)
        return self._leaves(organisation_id) if index is None else index

    def reset(self) -> None:
        """Forget planned indexes and chains after a failed write; the tables are read again."""
        self._next_index.clear()
        self._chains.clear()

    # Decisions

    def plan_commit(self, request: CommitRequest) -> PlannedCommit | ErrorCode:
        """Return the rows of one decision, or the reason to refuse it."""
        agent, history = request.agent, None
        if request.decision.commits:
            refusal = self._refuse_commit(request) or self._chains.refuses(request)
            if refusal is not None:
                return refusal
            history = self._history_after(request)
        after, followups = self._after(request)
        receipt = CommitReceipt(self.next_index(agent.organisation_id), after.counters)
        write = commit_write(request, receipt, history)
        write.usage = (agent.agent_id, *after.counters, *after.behaviour, *after.evidence)
        for index, change in enumerate(followups, receipt.log_index + 1):
            add_change(write, change, index)
        return PlannedCommit(write, after, history, followups)

    def apply_commit(self, request: CommitRequest, planned: PlannedCommit, submitted: int, durable: int) -> None:
        """Apply a commit that is written with this number."""
        self._grow(planned.write)
        if request.link is not None:
            self._chains.put(request.agent.organisation_id, request.link, submitted, durable)
        self._state.apply_commit(request, planned.usage, planned.history, submitted)
        for change in planned.followups:
            apply_parts(change.parts, ChangeContext(self._entities, self._one, submitted, durable))

    def _grow(self, write: PendingWrite) -> None:
        for organisation_id, index, *_ in write.activities:
            self._next_index[organisation_id] = index + 1

    def _history_after(self, request: CommitRequest) -> ConversationHistory | None:
        reservation = request.reservation
        if reservation is None or reservation.step.standalone:
            return None
        return self._state.history_of(reservation).after(reservation.step, request.decision)

    def _after(self, request: CommitRequest) -> tuple[Usage, tuple[Change, ...]]:
        """Return the counters after the decision, and the trust changes it causes."""
        agent, at = request.agent, request.activity.at
        usage = self._state.usage(agent.agent_id)
        counters = usage.counters.at(at)
        if request.charge is not NO_COST:
            counters = counters.plus(request.charge, request.decision, agent.limits)
        if request.behaviour_flag is BehaviourFlag.NONE:
            return Usage(counters, usage.behaviour, usage.evidence), ()
        behaviour, rules = usage.behaviour.after(request.behaviour_flag, at)
        followups = self._degrade(request, rules) if rules else ()
        # A new level starts new evidence.
        evidence = (
            TrustEvidence(level_since=at)
            if followups
            else usage.evidence.after(request.behaviour_flag, request.activity.attested)
        )
        return Usage(counters, behaviour, evidence), followups

    def _refuse_commit(self, request: CommitRequest) -> ErrorCode | None:
        """Return the reason to refuse the commit now, or None: state may have changed since the request began."""
        agent, reservation = request.agent, _reserved(request)
        current = self._entities.agent(agent.agent_id)
        if current is None or not self._entities.is_active(current):
            return ErrorCode.AGENT_SUSPENDED
        if current is not agent and current != agent:
            return ErrorCode.AGENT_CHANGED
        if request.pair is not None and self._entities.access_lists(agent.organisation_id).refuses(*request.pair):
            return ErrorCode.MESSAGE_BLOCKED
        if request.approval is not None and self._approvals_full(agent):
            return ErrorCode.APPROVALS_FULL
        return self._state.refuses_commit(reservation)

    def _approvals_full(self, agent: Agent) -> bool:
        return self._state.usage(agent.agent_id).counters.open_approvals >= self._max_open_approvals

    def _degrade(self, request: CommitRequest, rules: Sequence[DegradationRule]) -> tuple[Change, ...]:
        """Return the trust changes for these rules (spec 8.3), each based on the one before it."""
        current = self._entities.agent(request.agent.agent_id)
        changes: list[Change] = []
        for rule in rules:
            if current is None or request.degrade is None or current.trust is Trust.UNTRUSTED:
                break
            after = replace(current, trust=Trust(max(current.trust - LEVELS_LOST[rule], 0)))
            change = request.degrade(current, after, rule)
            changes.append(change)
            current = after
        return tuple(changes)

    # Changes

    def plan_change(self, change: Change, submitted: int, durable: int) -> PlannedChange | Conflict:
        """Return the rows of one change, or the conflict."""
        conflict = find_conflict(change.parts, ChangeContext(self._entities, self._one, submitted, durable))
        if conflict is not None:
            return conflict
        index = self.next_index(change.organisation_id)
        write = PendingWrite(result=ChangeReceipt(index))
        add_change(write, change, index)
        if change.linked_change is not None:
            add_change(write, change.linked_change, self.next_index(change.linked_change.organisation_id))
        after = self._usage_after(change)
        if after is not None:
            write.usage = (change.agent_id, *after.counters, *after.behaviour, *after.evidence)
            write.daily_total = daily_total_row(change.agent_id, Decision.PENDING, change.activity, actions=0)
        return PlannedChange(write, after)

    def apply_change(self, change: Change, planned: PlannedChange, submitted: int, durable: int) -> None:
        """Apply a change that is written with this number."""
        self._grow(planned.write)
        apply_parts(change.parts, ChangeContext(self._entities, self._one, submitted, durable))
        if planned.usage is not None:
            self._state.set_counters(change.agent_id, planned.usage)

    def _usage_after(self, change: Change) -> Usage | None:
        """Return the counters after the change, or None: a resolved action uses or frees its cost, a new level starts
        new evidence."""
        after = None
        for part in change.parts:
            if isinstance(part, ApprovalResolved) and part.kind == "action":
                usage = after or self._state.usage(part.agent_id)
                amounts = (part.cost, part.tokens, part.high_risk_calls)
                counters = usage.counters.at(part.at).resolved(*amounts, used=part.state == "approved")
                after = Usage(counters, usage.behaviour, usage.evidence.after_resolution(part.state))
            elif isinstance(part, AgentChanged) and part.before.trust is not part.after.trust:
                usage = after or self._state.usage(part.after.agent_id)
                after = Usage(usage.counters, usage.behaviour, TrustEvidence(level_since=change.activity.at))
        return after


def _reserved(request: CommitRequest) -> Reservation:
    if request.reservation is None:
        raise ValueError("a decision that commits needs a reserved step")
    return request.reservation
