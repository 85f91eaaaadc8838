"""Rules of a commit: each conflict, what wins where several apply, and the state after what does not conflict."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import pytest

from qwed.domain.access_lists import AccessLists, ListEntry, ListName
from qwed.domain.agent import AgentStatus
from qwed.domain.behaviour import BehaviourFlag, BehaviourWindow, DegradationRule, TrustEvidence
from qwed.domain.budget import NO_COST, NO_USAGE, RequestCost, Usage
from qwed.domain.change_parts import ApprovalRequest, ApprovalResolved, Conflict
from qwed.domain.conversation import MAX_REPEATS, ConversationHistory, ConversationStep
from qwed.domain.snapshot import ChainEnd, Snapshot
from qwed.domain.transition import (
    CommitLimits,
    CurrentState,
    Transition,
    degraded_levels,
    transition_of,
    usage_after_change,
)
from qwed.domain.write_set import Activity, ChainLink, DecisionEffects, Reservation, WriteSet
from qwed.model import Decision, Trust
from tests.support.manual_clock import NOON
from tests.support.stores import agent_of

AGENT = agent_of(daily_cost=100)
CHARGE = RequestCost(cost=60, requests=1)
STEP = ConversationStep(3, "f", "s")
RESERVATION = Reservation(AGENT.agent_id, "c", STEP, CHARGE, NOON)
LIMITS = CommitLimits(max_steps=50, max_open_approvals=2)
HISTORY = ConversationHistory(2, 2, "e", 1, "r")
SNAPSHOT = Snapshot(agent=AGENT, usage=Usage(NO_USAGE.at(NOON)), history=HISTORY)
APPROVAL = ApprovalRequest("apr_1", 60, 0, 0, NOON, NOON + 60)
LINK = ChainLink("ch", 1, "att_1", "att_2")
EFFECTS = DecisionEffects(agent=AGENT, decision=Decision.APPROVED, charge=CHARGE, reservation=RESERVATION)
VIOLATION = BehaviourFlag.VIOLATION
with_fields: Callable[..., Any] = msgspec.structs.replace


def _transition(
    effects: DecisionEffects = EFFECTS, snapshot: Snapshot = SNAPSHOT, *, attested: bool = False, **current: Any
) -> Transition | Conflict:
    return transition_of(effects, CurrentState(snapshot, LIMITS, **current), NOON, attested=attested)


def test_what_still_holds_is_charged_and_moves_the_conversation_on() -> None:
    after = _transition()
    assert after == Transition(
        Usage(NO_USAGE.at(NOON).plus(CHARGE, Decision.APPROVED, AGENT.limits)),
        ConversationHistory(3, 3, "f", 1, "r s"),
    )


class Case(NamedTuple):
    """What was committed since the snapshot of a decision, and the conflict that it is."""

    conflict: Conflict
    snapshot: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot
    effects: Callable[[DecisionEffects], DecisionEffects] = lambda effects: effects
    current: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _with_agent(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    return lambda snapshot: with_fields(snapshot, agent=replace(AGENT, **fields))


def _with_history(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    return lambda snapshot: with_fields(snapshot, history=with_fields(snapshot.history, **fields))


def _with_counters(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    def change(snapshot: Snapshot) -> Snapshot:
        usage = snapshot.usage
        return with_fields(snapshot, usage=with_fields(usage, counters=with_fields(usage.counters, **fields)))

    return change


def _blocking(*entries: ListEntry) -> Callable[[Snapshot], Snapshot]:
    return lambda snapshot: with_fields(snapshot, access_lists=AccessLists(entries))


def _with_pair(effects: DecisionEffects) -> DecisionEffects:
    return with_fields(effects, pair=(AGENT.agent_id, "bob"))


CASES: dict[str, Case] = {
    "the agent is gone": Case(Conflict.STALE, lambda snapshot: with_fields(snapshot, agent=None)),
    "the trust is another": Case(Conflict.STALE, _with_agent(trust=Trust.TRUSTED)),
    "the token is another": Case(Conflict.STALE, _with_agent(token_digest=b"\x02" * 32)),
    "the agent is suspended": Case(Conflict.STALE, _with_agent(status=AgentStatus.SUSPENDED)),
    "the organisation is halted": Case(Conflict.STALE, lambda snapshot: with_fields(snapshot, halted=True)),
    "the lease is over": Case(Conflict.LEASE_EXPIRED, current={"is_held": False}),
    "the step is committed": Case(Conflict.STALE, _with_history(last_step=3)),
    "a later step is committed": Case(Conflict.STALE, _with_history(last_step=9)),
    "the conversation is full": Case(Conflict.STALE, _with_history(steps=50)),
    "the action was repeated": Case(Conflict.STALE, _with_history(fingerprint="f", repeats=MAX_REPEATS)),
    "the state was seen twice": Case(Conflict.STALE, _with_history(recent_states="s s")),
    "the budget is spent": Case(Conflict.STALE, _with_counters(cost_day=41)),
    "the budget is pending": Case(Conflict.STALE, _with_counters(pending_cost=41)),
    "the budget is reserved by others": Case(
        Conflict.STALE, lambda snapshot: with_fields(snapshot, reserved=RequestCost(cost=41))
    ),
    "too many approvals are open": Case(
        Conflict.STALE,
        _with_counters(open_approvals=2),
        lambda effects: with_fields(effects, decision=Decision.PENDING, approval=APPROVAL),
    ),
    "the sender is blocked": Case(Conflict.BLOCKED, _blocking(ListEntry(ListName.BLOCKS, AGENT.agent_id)), _with_pair),
    "the receiver is blocked": Case(Conflict.BLOCKED, _blocking(ListEntry(ListName.BLOCKS, "BOB")), _with_pair),
    "the pair is blocked": Case(
        Conflict.BLOCKED, _blocking(ListEntry(ListName.PAIRS, AGENT.agent_id, "bob")), _with_pair
    ),
    "the chain has grown": Case(
        Conflict.STALE,
        lambda snapshot: with_fields(snapshot, chain=ChainEnd(2, "att_other")),
        lambda effects: with_fields(effects, link=LINK),
    ),
    "the chain is another": Case(
        Conflict.STALE,
        lambda snapshot: with_fields(snapshot, chain=ChainEnd(1, "att_other")),
        lambda effects: with_fields(effects, link=LINK),
    ),
    "it breaks a rule by now": Case(
        Conflict.STALE,
        lambda snapshot: with_fields(
            snapshot, usage=with_fields(snapshot.usage, behaviour=BehaviourWindow("d" * 3 + "." * 16))
        ),
        lambda effects: with_fields(effects, behaviour_flag=BehaviourFlag.CLEAN),
    ),
    "it breaks no rule any more": Case(
        Conflict.STALE, effects=lambda effects: with_fields(effects, broken_rules=(DegradationRule.DENIALS,))
    ),
}


def _apply(*cases: Case) -> Transition | Conflict:
    effects, snapshot, current = EFFECTS, SNAPSHOT, {}
    for case in cases:
        effects, snapshot, current = case.effects(effects), case.snapshot(snapshot), current | case.current
    return _transition(effects, snapshot, **current)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_has_changed_meanwhile_is_a_conflict(case: Case) -> None:
    assert _apply(case) is case.conflict


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_without_the_change_there_is_none(case: Case) -> None:
    effects = case.effects(EFFECTS)
    snapshot = SNAPSHOT if effects.link is None else with_fields(SNAPSHOT, chain=ChainEnd(1, "att_1"))
    if not effects.broken_rules:
        assert isinstance(_transition(effects, snapshot), Transition)


# A rule that is broken by now is no conflict for a decision that was made to break it.
PAIRS = [pair for pair in combinations(CASES, 2) if not all("rule" in name for name in pair)]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_two_changes_are_a_conflict_of_one_of_them(pair: tuple[str, str]) -> None:
    one, other = (CASES[name] for name in pair)
    assert _apply(one, other) in (one.conflict, other.conflict)


FREE = ("the budget is spent", "the budget is pending", "the budget is reserved by others")


@pytest.mark.parametrize("name", FREE)
def test_a_charge_that_was_reserved_on_this_state_is_not_counted_again(name: str) -> None:
    assert isinstance(_transition(EFFECTS, CASES[name].snapshot(SNAPSHOT), is_reserved=True), Transition)


HARMLESS = [name for name in CASES if "rule" not in name and "chain" not in name]


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("decision", [Decision.DENIED, Decision.BUDGET_EXCEEDED])
def test_a_refusal_takes_no_step_and_conflicts_with_none_of_it(name: str, decision: Decision) -> None:
    case = CASES[name]
    refused = DecisionEffects(agent=AGENT, decision=decision, charge=RequestCost(requests=1))
    after = _transition(refused, case.snapshot(SNAPSHOT), **case.current)
    assert isinstance(after, Transition)
    assert after.history is None
    assert after.usage.counters.requests_day == 1


def test_an_equal_agent_is_the_same_agent() -> None:
    assert isinstance(_transition(snapshot=with_fields(SNAPSHOT, agent=replace(AGENT))), Transition)


def test_a_standalone_step_has_no_history() -> None:
    alone = Reservation(AGENT.agent_id, "", with_fields(STEP, standalone=True), CHARGE, NOON)
    full = with_fields(SNAPSHOT, history=ConversationHistory(50, 50, "f", 9, "s s"))
    after = _transition(with_fields(EFFECTS, reservation=alone), full)
    assert isinstance(after, Transition)
    assert after.history is None


def test_what_commits_needs_a_reserved_step() -> None:
    with pytest.raises(ValueError, match="needs a reserved step"):
        _transition(with_fields(EFFECTS, reservation=None))


# Loss of trust


def test_a_decision_that_costs_trust_starts_new_evidence() -> None:
    usage = with_fields(SNAPSHOT.usage, evidence=TrustEvidence(1.0, 9, 2, 3))
    lost = DecisionEffects(
        agent=AGENT,
        decision=Decision.DENIED,
        behaviour_flag=VIOLATION,
        broken_rules=(DegradationRule.SECURITY,),
        degradations=(_change(),),
    )
    after = _transition(lost, with_fields(SNAPSHOT, usage=usage))
    assert isinstance(after, Transition)
    assert (after.usage.behaviour.recent_flags, after.usage.evidence) == ("v", TrustEvidence(level_since=NOON))
    changed = with_fields(SNAPSHOT, agent=replace(AGENT, trust=Trust.TRUSTED))
    assert _transition(lost, changed) is Conflict.STALE


def test_at_the_lowest_level_there_is_nothing_to_lose_and_the_evidence_goes_on() -> None:
    lost = DecisionEffects(
        agent=AGENT, decision=Decision.DENIED, behaviour_flag=VIOLATION, broken_rules=(DegradationRule.SECURITY,)
    )
    after = _transition(lost)
    assert isinstance(after, Transition)
    assert after.usage.evidence == TrustEvidence(0.0, 1, 1, 0)


@pytest.mark.parametrize("attested", [True, False])
def test_an_attested_action_is_evidence(attested: bool) -> None:
    after = _transition(with_fields(EFFECTS, behaviour_flag=BehaviourFlag.CLEAN), attested=attested)
    assert isinstance(after, Transition)
    assert after.usage.evidence == TrustEvidence(0.0, 1, 0, attested)


RULES = DegradationRule
LEVELS = [
    (3, (RULES.SECURITY,), [1]),
    (2, (RULES.SECURITY,), [0]),
    (1, (RULES.SECURITY,), [0]),
    (0, (RULES.SECURITY,), []),
    (3, (RULES.DENIALS,), [2]),
    (1, (RULES.BUDGET,), [0]),
    (3, (RULES.SECURITY, RULES.DENIALS), [1, 0]),
    (2, (RULES.SECURITY, RULES.DENIALS), [0]),
    (3, (RULES.DENIALS, RULES.BUDGET), [2, 1]),
    (3, (), []),
]


@pytest.mark.parametrize(("level", "rules", "levels"), LEVELS)
def test_each_rule_costs_its_levels_until_none_is_left(
    level: int, rules: tuple[DegradationRule, ...], levels: list[int]
) -> None:
    assert degraded_levels(Trust(level), rules) == tuple(zip(rules, map(Trust, levels), strict=False))


# Changes


def _change(*parts: Any) -> WriteSet:
    return WriteSet(
        organisation_id="org_1", activity=Activity("act_1", None, NOON, 0, "{}", "{}", "tested"), parts=parts
    )


@pytest.mark.parametrize("state", ["approved", "rejected", "expired"])
def test_a_resolved_action_changes_the_counters(state: str) -> None:
    waiting = Usage(NO_USAGE.at(NOON).plus(CHARGE, Decision.PENDING, AGENT.limits), evidence=TrustEvidence(actions=1))
    part = ApprovalResolved("apr_1", AGENT.agent_id, "action", state, "{}", "act_2", 60, 0, 0, NOON)
    after = usage_after_change(_change(part), lambda _agent_id: waiting)
    assert after is not None
    assert (after.counters.pending_cost, after.counters.open_approvals) == (0, 0)
    assert after.counters.cost_day == (60 if state == "approved" else 0)
    assert after.evidence == TrustEvidence(0.0, 1, state == "rejected", state == "approved")
    elevation = part._replace(kind="trust_elevation")
    assert usage_after_change(_change(elevation), lambda _agent_id: waiting) is None


def test_no_cost_is_no_charge() -> None:
    after = _transition(DecisionEffects(agent=AGENT, decision=Decision.DENIED, charge=NO_COST))
    assert after == Transition(SNAPSHOT.usage, None)


def test_at_the_lowest_level_a_broken_rule_is_no_conflict() -> None:
    lowest = replace(AGENT, trust=Trust.UNTRUSTED)
    denial = DecisionEffects(agent=lowest, decision=Decision.DENIED, behaviour_flag=VIOLATION)
    assert isinstance(_transition(denial, with_fields(SNAPSHOT, agent=lowest)), Transition)
    assert _transition(denial, SNAPSHOT) is Conflict.STALE


def test_a_denial_is_a_conflict_once_its_budget_is_gone() -> None:
    spent = with_fields(SNAPSHOT, usage=Usage(with_fields(NO_USAGE.at(NOON), cost_day=50)))
    denial = with_fields(EFFECTS, decision=Decision.DENIED)
    assert _transition(denial, spent) is Conflict.STALE
    for effects in (with_fields(denial, reservation=None), with_fields(denial, charge=NO_COST)):
        assert isinstance(_transition(effects, spent), Transition)
    assert isinstance(_transition(denial, spent, is_reserved=True), Transition)
