"""Rules of a commit: is a decision still valid, and what do its agent and its conversation look like afterwards?

Pure functions, applied under the store's lock on SQLite and on locked rows on PostgreSQL. They repeat what the decision
was based on, because other decisions may have committed since its snapshot was loaded.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from qwed.domain.agent import Agent, AgentStatus
from qwed.domain.behaviour import LEVELS_LOST, BehaviourFlag, DegradationRule, TrustEvidence
from qwed.domain.budget import NO_COST, Usage, exceeded_limit
from qwed.domain.change_parts import AgentChanged, ApprovalResolved, Conflict
from qwed.domain.conversation import ConversationHistory
from qwed.domain.snapshot import Snapshot
from qwed.domain.usage_window import (
    EMPTY_SERIES,
    Series,
    SeriesChange,
    SeriesKey,
    Use,
    changes_of_decision,
    changes_of_resolution,
)
from qwed.domain.write_set import DecisionEffects, WriteSet
from qwed.model import Trust

NO_SERIES: Mapping[SeriesKey, Series] = {}


class CommitLimits(NamedTuple):
    """Limits that a commit is checked against."""

    max_steps: int
    max_open_approvals: int


class CurrentState(msgspec.Struct, frozen=True, gc=False):
    """State that a decision is checked against: its snapshot, taken again where nothing else can change it."""

    snapshot: Snapshot
    """`reserved` is what other requests have reserved."""
    limits: CommitLimits
    is_held: bool = True
    """True if the lease of the step is still valid."""
    is_reserved: bool = False
    """True if the charge was reserved on this state, so that it still fits."""
    series: Mapping[SeriesKey, Series] = NO_SERIES
    """Series that the decision adds to, as far as they have begun."""


class Transition(msgspec.Struct, frozen=True, gc=False):
    """Counters of the agent and history of the conversation after a decision; None for a history that stays."""

    usage: Usage
    history: ConversationHistory | None
    series: tuple[SeriesChange, ...] = ()
    """Series of rolling usage that the decision adds to."""


def transition_of(
    effects: DecisionEffects, current: CurrentState, at: float, *, attested: bool
) -> Transition | Conflict:
    """Return the state after the decision, or the conflict with what was committed since its snapshot."""
    snapshot, history, link, policies = current.snapshot, None, effects.link, effects.policies
    if policies is not None and policies is not snapshot.policies and not policies.is_same_version(snapshot.policies):
        return Conflict.STALE
    conflict = (_conflict_of if effects.decision.commits else _conflict_of_denial)(effects, current, at)
    if conflict is not None:
        return conflict
    step = None if effects.reservation is None else effects.reservation.step
    if step is not None and effects.decision.commits and not step.standalone:
        history = snapshot.history.after(step, effects.decision)
    if link is not None and snapshot.chain != (link.links, link.previous):
        return Conflict.STALE
    after, rules = usage_after(snapshot.usage, effects, at, attested=attested)
    if rules or effects.broken_rules:
        if _degrades_otherwise(effects, snapshot.agent, rules):
            return Conflict.STALE
        if effects.degradations:
            # A new level starts new evidence.
            after = replace(after, evidence=TrustEvidence(level_since=at))
    return Transition(after, history, () if effects.usage is None else _series_after(effects, current, at))


def _series_after(effects: DecisionEffects, current: CurrentState, at: float) -> tuple[SeriesChange, ...]:
    uses = () if effects.usage is None else effects.usage.uses
    return changes_of_decision(uses, effects.decision, lambda key: current.series.get(key, EMPTY_SERIES), at)


def _conflict_of(effects: DecisionEffects, current: CurrentState, at: float) -> Conflict | None:
    """Return the conflict of a decision that commits its step, or None."""
    snapshot, agent, reservation = current.snapshot, effects.agent, effects.reservation
    if reservation is None:
        raise ValueError("a decision that commits needs a reserved step")
    if (snapshot.agent is not agent and snapshot.agent != agent) or snapshot.halted:
        return Conflict.STALE
    if not current.is_held:
        return Conflict.LEASE_EXPIRED
    step, history = reservation.step, snapshot.history
    max_steps = agent.steps_limit(current.limits.max_steps)
    if not step.standalone:
        code = history.refuses_step(step.number, max_steps, auto_numbered=step.auto_numbered)
        if code is not None or history.refuses_loop(step) is not None:
            return Conflict.STALE
    if effects.usage is not None and not effects.usage.holds_on(snapshot.usage_values):
        return Conflict.STALE
    is_plain = current.is_reserved and effects.pair is None and effects.approval is None
    return None if is_plain and agent.status is AgentStatus.ACTIVE else _conflict_with_limits(effects, current, at)


def _conflict_with_limits(effects: DecisionEffects, current: CurrentState, at: float) -> Conflict | None:
    """Return the conflict with an access list, the open approvals or the budget."""
    snapshot, agent = current.snapshot, effects.agent
    if agent.status is not AgentStatus.ACTIVE:
        return Conflict.STALE
    if effects.pair is not None and snapshot.access_lists.refuses(*effects.pair):
        return Conflict.BLOCKED
    counters = snapshot.usage.counters.at(at)
    if effects.approval is not None and counters.open_approvals >= current.limits.max_open_approvals:
        return Conflict.STALE
    return Conflict.STALE if _is_over_budget(effects, current, at) else None


def _conflict_of_denial(effects: DecisionEffects, current: CurrentState, at: float) -> Conflict | None:
    """Return the conflict of a denial whose budget is gone: its answer has to name the limit instead."""
    return Conflict.STALE if effects.reservation is not None and _is_over_budget(effects, current, at) else None


def _is_over_budget(effects: DecisionEffects, current: CurrentState, at: float) -> bool:
    """Return True if the charge does not fit any more."""
    if current.is_reserved or effects.charge is NO_COST:
        return False
    counters, reserved = current.snapshot.usage.counters.at(at), current.snapshot.reserved
    return exceeded_limit(counters, reserved, effects.charge, effects.agent.limits) is not None


def _degrades_otherwise(effects: DecisionEffects, agent: Agent | None, rules: tuple[DegradationRule, ...]) -> bool:
    """Return True if the decision costs other levels of trust than it says; at the lowest level it costs none."""
    if agent is not None and agent.trust is effects.agent.trust is Trust.UNTRUSTED:
        return False
    return rules != effects.broken_rules or agent != effects.agent


def usage_after(
    usage: Usage, effects: DecisionEffects, at: float, *, attested: bool
) -> tuple[Usage, tuple[DegradationRule, ...]]:
    """Return counters, behaviour and evidence after a decision, and the rules of spec 8.3 that it breaks."""
    counters = usage.counters.at(at)
    if effects.charge is not NO_COST:
        counters = counters.plus(effects.charge, effects.decision, effects.agent.limits)
    flag = effects.behaviour_flag
    if flag is BehaviourFlag.NONE:
        return Usage(counters, usage.behaviour, usage.evidence), ()
    behaviour, rules = usage.behaviour.after(flag, at)
    return Usage(counters, behaviour, usage.evidence.after(flag, attested)), rules


def degraded_levels(trust: Trust, rules: tuple[DegradationRule, ...]) -> tuple[tuple[DegradationRule, Trust], ...]:
    """Return the trust level after each of these rules, for those that lower it."""
    levels: list[tuple[DegradationRule, Trust]] = []
    for rule in rules:
        if trust is Trust.UNTRUSTED:
            break
        trust = Trust(max(trust - LEVELS_LOST[rule], 0))
        levels.append((rule, trust))
    return tuple(levels)


def usage_after_change(write_set: WriteSet, usage_of: Callable[[str], Usage]) -> Usage | None:
    """Return the counters after a change, or None: a resolved action uses or frees its cost, a new level starts new
    evidence."""
    after = None
    for part in write_set.parts:
        if isinstance(part, ApprovalResolved) and part.kind == "action":
            usage = after or usage_of(part.agent_id)
            amounts = (part.cost, part.tokens, part.high_risk_calls)
            counters = usage.counters.at(part.at).resolved(*amounts, used=part.state == "approved")
            after = Usage(counters, usage.behaviour, usage.evidence.after_resolution(part.state))
        elif isinstance(part, AgentChanged) and part.before.trust is not part.after.trust:
            usage = after or usage_of(part.after.agent_id)
            after = replace(usage, evidence=TrustEvidence(level_since=write_set.activity.at))
    return after


def series_after_change(
    write_set: WriteSet, held_uses: Callable[[str], Iterable[Use]], series_of: Callable[[SeriesKey], Series]
) -> tuple[SeriesChange, ...]:
    """Return the series after a change: the uses that a resolved action held are used from now on, or free."""
    changes: tuple[SeriesChange, ...] = ()
    for part in write_set.parts:
        if isinstance(part, ApprovalResolved) and part.kind == "action":
            changes += changes_of_resolution(held_uses(part.approval_id), part.state, series_of, part.at)
    return changes
