"""Spec 7.2 for changes: kinds, periods and pages; the summary counts decisions only."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders
from tests.spec.requests import EMAIL, FALSE, SUM, Json, another, changes_of, refusal_of, settle
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock

DAY = 86_400


@pytest.fixture
def eventful(keyholders: Keyholders) -> AgentConversation:
    """An agent with three decisions (approved, pending, denied) and four changes (registration included)."""
    ask = keyholders.create_agent(trust_level=1)
    first = ask(SUM, 1)
    waiting = ask({**EMAIL, "cost": {"usd": 0.5}}, 2)
    ask(FALSE, 3)
    keyholders.member.post(f"/agents/{ask.agent_id}/actions/{first['action_id']}/execution", json={"success": True})
    settle(keyholders.approver, waiting["approval_id"])
    keyholders.owner.post(f"/agents/{ask.agent_id}/trust", json={"request": "trust_reduction", "to_level": 0})
    return ask


DECISIONS = ["DENIED", "PENDING", "APPROVED"]
EVENTS = ["trust_lowered", "approved", "executed", "registered"]


def _named(page: Json) -> list[str]:
    return [each["event"] or each["decision"] for each in page["activities"]]


@spec("7.2")
def test_decisions_are_listed_unless_changes_are_asked_for(eventful: AgentConversation) -> None:
    assert _named(eventful.activity()) == DECISIONS
    assert _named(eventful.activity(kind="decision")) == DECISIONS
    assert _named(eventful.activity(kind="change")) == EVENTS
    assert _named(eventful.activity(kind="all")) == [*EVENTS[:3], *DECISIONS, "registered"]


@spec("7.2")
def test_a_change_names_who_made_it_and_has_no_decision(eventful: AgentConversation) -> None:
    for change in changes_of(eventful):
        assert (change["agent_id"], change["action"], change["verification"]) == (eventful.agent_id, None, None)
        assert change["by"].startswith("key_")
    assert eventful.activity(kind="change", decision="APPROVED")["activities"] == []


@spec("7.2")
@pytest.mark.parametrize("kind", ["decision", "change", "all"])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8])
def test_pages_of_every_kind_follow_each_other_without_gap_or_repeat(
    eventful: AgentConversation, kind: str, limit: int
) -> None:
    whole = _named(eventful.activity(kind=kind))
    seen: list[str] = []
    query: Json = {"kind": kind, "limit": limit}
    while query:
        page = eventful.activity(**query)
        assert len(page["activities"]) <= limit
        seen += _named(page)
        query = {**query, "cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert seen == whole


@spec("7.2")
def test_the_summary_is_of_the_whole_period_whatever_is_listed(eventful: AgentConversation) -> None:
    summary = {
        "total_actions": 3,
        "approved": 1,
        "denied": 1,
        "corrected": 0,
        "pending": 1,
        "budget_exceeded": 0,
        # Including the cost of the approved action.
        "total_cost_usd": 0.51,
    }
    cursor = eventful.activity(kind="all", limit=3)["next_cursor"]
    queries: list[dict[str, Any]] = [
        {},
        {"kind": "change"},
        {"kind": "all", "limit": 1},
        {"kind": "all", "cursor": cursor},
        {"decision": "DENIED"},
    ]
    for query in queries:
        assert eventful.activity(**query)["summary"] == summary
    # Daily totals and single activities give the same sums.
    now = datetime.now(UTC)
    for since, until in ((now - timedelta(days=1), now + timedelta(days=1)), (now - timedelta(hours=1), None)):
        period = {"from": since.isoformat()} | ({"to": until.isoformat()} if until else {})
        assert eventful.activity(**period)["summary"] == summary


@spec("7.2")
def test_a_period_holds_changes_as_it_holds_decisions(eventful: AgentConversation) -> None:
    listed = eventful.activity(kind="all")["activities"]
    oldest, newest = listed[-1]["timestamp"], listed[0]["timestamp"]
    assert len(eventful.activity(**{"kind": "all", "from": oldest})["activities"]) == len(listed)
    assert _named(eventful.activity(kind="change", to=oldest)) == []
    assert "trust_lowered" not in _named(eventful.activity(kind="all", to=newest))


@spec("7.2")
@pytest.mark.parametrize("kind", ["", "changes", "Decision", "decision,change"])
def test_an_unknown_kind_is_refused(keyholders: Keyholders, kind: str) -> None:
    ask = keyholders.create_agent()
    response = ask.api.get(f"/agents/{ask.agent_id}/activity", params={"kind": kind})
    assert refusal_of(response) == (400, "QWED-REQ-005")


@spec("7.2")
def test_a_period_of_days_is_summed_by_the_days_it_holds() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), approval_ttl_seconds=7 * DAY) as gate:
        agent = gate.register_agent(name="daily", principal_id="u")["agent_id"]
        first_day = datetime.fromtimestamp(manual_clock.now, UTC).date()
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        for step in (2, 3, 4):
            manual_clock.advance(DAY)
            gate.verify_action(agent, another(step), {"conversation_id": "c", "step_number": step})
        gate.approve(waiting["approval_id"], "on the fourth day")

        def decisions(first: int, end: int) -> list[str]:
            since, until = (first_day + timedelta(days=days) for days in (first, end))
            found = gate.get_agent_activity(agent, since=since, until=until)
            return [each["decision"] for each in found]

        assert decisions(0, 1) == ["PENDING"]
        assert decisions(0, 4) == ["APPROVED"] * 3 + ["PENDING"]
        assert decisions(1, 3) == ["APPROVED"] * 2
        assert decisions(4, 5) == []


@spec("7.2")
def test_the_organisations_changes_are_listed_newest_first_in_pages(new_keyholders: Keyholders) -> None:
    ask = new_keyholders.create_agent()
    new_keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"})
    new_keyholders.owner.put("/tools/post_invoice", json={"risk_level": "medium"})
    events = ["tool_changed", "suspended", "registered", *["key_added"] * 3]
    seen: list[str] = []
    query: Json = {"limit": 2}
    while query:
        page = new_keyholders.member.get("/changes", params=query).json()
        seen += [each["event"] for each in page["changes"]]
        query = {"limit": 2, "cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert seen == events
