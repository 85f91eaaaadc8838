"""Plan of a commit: the rows that a write set writes, and the state after it; the same for every store."""

from typing import Any, Protocol

import msgspec
from msgspec.structs import astuple

from qwed.domain.budget import Usage
from qwed.domain.change_parts import ApprovalResolved, Conflict
from qwed.domain.transition import CurrentState, Transition, series_after_change, transition_of, usage_after_change
from qwed.domain.usage_window import SeriesChange, SeriesReader, Use, usage_values
from qwed.domain.write_set import Activity, Committed, DecisionEffects, WriteSet
from qwed.model import Decision
from qwed.model.clock import DAY
from qwed.store import sql
from qwed.store.change_handlers import ChangeContext, apply_parts, find_conflict, notice_statements, statements_of
from qwed.store.group_commit import PendingWrite
from qwed.store.usage_rows import free_statement, hold_statements, series_statements

Row = tuple[Any, ...]


class Plan(msgspec.Struct, frozen=True, gc=False):
    """Rows of a write set, and the state to apply with them."""

    write: PendingWrite
    log_ends: tuple[tuple[str, int], ...]
    """Index of the next leaf of each log that grows."""
    after: Transition | None = None
    """State after a decision."""
    usage: Usage | None = None
    """Counters after a change, if it changes them."""
    series: tuple[SeriesChange, ...] = ()
    """Series of rolling usage that it changes."""


class LockedState(SeriesReader, Protocol):
    """State of a store while nothing else can change it."""

    def current(self, effects: DecisionEffects) -> CurrentState:
        """Return what a decision is checked against."""

    def usage(self, agent_id: str) -> Usage: ...

    def held_uses(self, approval_id: str) -> tuple[Use, ...]:
        """Return what an open approval holds."""

    def next_index(self, organisation_id: str) -> int: ...


def plan_decision(write_set: WriteSet, effects: DecisionEffects, state: LockedState) -> Plan | Conflict:
    """Return the rows of a decision, or the conflict with the current state. Nothing is changed."""
    activity, organisation_id = write_set.activity, write_set.organisation_id
    attested = activity.attestation_id is not None
    current = state.current(effects)
    if effects.usage is not None and effects.decision.commits:
        current = _with_usage(current, effects, state, activity.at)
    after = transition_of(effects, current, activity.at, attested=attested)
    if isinstance(after, Conflict):
        return after
    index = state.next_index(organisation_id)
    write = _decision_rows(write_set, effects, after, index)
    return Plan(write, ((organisation_id, index + 1 + len(effects.degradations)),), after, series=after.series)


def _with_usage(current: CurrentState, effects: DecisionEffects, state: LockedState, at: float) -> CurrentState:
    """Return the state with the rolling usage that the decision reads and adds to."""
    usage, agent = effects.usage, effects.agent
    if usage is None:
        return current
    values = usage_values(usage.values, agent.agent_id, agent.organisation_id, state, at)
    return msgspec.structs.replace(
        current,
        snapshot=msgspec.structs.replace(current.snapshot, usage_values=values),
        series={use.series: state.series(use.series) for use in usage.uses},
    )


def plan_change(change: WriteSet, state: LockedState, context: ChangeContext) -> Plan | Conflict:
    """Return the rows of a change, or the conflict with the current state. Nothing is changed."""
    conflict = find_conflict(change.parts, context)
    if conflict is not None:
        return conflict
    usage, linked = usage_after_change(change, state.usage), change.linked
    index = state.next_index(change.organisation_id)
    write = PendingWrite(result=Committed(index), size=len(change.activity.leaf) + len(change.activity.payload))
    _add_change(write, change, index)
    log_ends: tuple[tuple[str, int], ...] = ((change.organisation_id, index + 1),)
    if linked is not None:
        linked_index = state.next_index(linked.organisation_id)
        _add_change(write, linked, linked_index)
        log_ends += ((linked.organisation_id, linked_index + 1),)
    if usage is not None:
        write.usage = usage_row(change.agent_id, usage)
        write.daily_total = _daily_total_row(change.agent_id, Decision.PENDING, change.activity, 0)
    series = series_after_change(change, state.held_uses, state.series)
    if series:
        write.statements += series_statements(series)
        resolved = (part for part in change.parts if isinstance(part, ApprovalResolved))
        write.statements += tuple(free_statement(part.approval_id) for part in resolved)
    return Plan(write, log_ends, usage=usage, series=series)


def apply_plan_parts(write_set: WriteSet, context: ChangeContext) -> None:
    """Apply the changed entities of a planned write set to the cache."""
    apply_parts(write_set.parts, context)
    if write_set.effects is not None:
        for change in write_set.effects.degradations:
            apply_parts(change.parts, context)


def _decision_rows(write_set: WriteSet, effects: DecisionEffects, after: Transition, index: int) -> PendingWrite:
    """Return the rows of a decision at this index of its log, followed by the loss of trust it causes."""
    agent_id, activity = effects.agent.agent_id, write_set.activity
    usage, history, series = after.usage, after.history, after.series
    reservation = effects.reservation
    write = PendingWrite(
        result=Committed(index, usage.counters),
        size=len(activity.leaf) + len(activity.payload),
        activities=(_activity_row(write_set.organisation_id, agent_id, activity, index),),
        conversation=None
        if history is None or reservation is None
        else (agent_id, reservation.conversation_id, *astuple(history)),
        usage=usage_row(agent_id, usage),
        daily_total=_daily_total_row(agent_id, effects.decision, activity, 1),
    )
    if effects.approval is not None or effects.answer_to_store is not None or effects.link is not None:
        write.statements = _decision_statements(write_set, effects, write.result)
    if series:
        write.statements += _usage_statements(effects, series)
    if write_set.notices:
        _add_notices(write, write_set)
    for index_after, change in enumerate(effects.degradations, index + 1):
        _add_change(write, change, index_after)
    return write


def _decision_statements(
    write_set: WriteSet, effects: DecisionEffects, committed: Committed
) -> tuple[tuple[str, Row], ...]:
    agent, activity = effects.agent, write_set.activity
    statements: tuple[tuple[str, Row], ...] = ()
    if effects.approval is not None:
        approval = sql.approval_row(agent.organisation_id, agent.agent_id, activity.activity_id, effects.approval)
        statements = ((sql.INSERT_APPROVAL, approval),)
    if effects.answer_to_store is not None:
        statements += (
            (sql.DELETE_SOME_EXPIRED_ANSWERS, (activity.at,)),
            (sql.PUT_ANSWER, sql.answer_row(agent.agent_id, activity, effects.answer_to_store, committed)),
        )
    if effects.link is not None:
        chain_id, links, _previous, attestation_id = effects.link
        statements += ((sql.PUT_CHAIN, (agent.organisation_id, chain_id, links + 1, attestation_id)),)
    return statements


def _usage_statements(effects: DecisionEffects, series: tuple[SeriesChange, ...]) -> tuple[tuple[str, Row], ...]:
    if effects.approval is None or effects.usage is None:
        return series_statements(series)
    return series_statements(series) + hold_statements(effects.approval.approval_id, effects.usage.uses)


def _add_change(write: PendingWrite, change: WriteSet, index: int) -> None:
    organisation_id = change.organisation_id
    write.activities += (_activity_row(organisation_id, change.agent_id or organisation_id, change.activity, index),)
    write.statements += statements_of(change.parts)
    if change.notices:
        _add_notices(write, change)


def _add_notices(write: PendingWrite, change: WriteSet) -> None:
    write.statements += notice_statements(change.organisation_id, change.notices, change.activity.at)
    write.has_notices = True


def usage_row(agent_id: str, usage: Usage) -> Row:
    """Return the row of an agent's counters."""
    return (agent_id, *astuple(usage.counters), *astuple(usage.behaviour), *astuple(usage.evidence))


def _daily_total_row(
    agent_id: str, decision: Decision, activity: Activity, actions: int
) -> tuple[str, int, str, int, int, int]:
    """Return what an activity adds to the totals of its day."""
    attested = 0 if activity.attestation_id is None else 1
    return (agent_id, int(activity.at // DAY), decision, actions, activity.cost, attested)


def _activity_row(organisation_id: str, agent_id: str, activity: Activity, index: int) -> Row:
    return (
        organisation_id,
        index,
        activity.activity_id,
        agent_id,
        activity.at,
        activity.decision or "",
        activity.leaf,
        activity.payload,
        activity.event,
        activity.subject_id,
        activity.attestation_id,
    )
