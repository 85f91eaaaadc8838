"""Spec 7.2, Audit Query API."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, WRONG_SUM, Json, another
from tests.spec.sections import spec


@pytest.fixture
def busy(asking: Callable[..., AgentConversation]) -> AgentConversation:
    """An agent with two approvals, one of each other decision, and cost on three of them."""
    ask = asking(budget={"max_daily_cost_usd": 1})
    ask(SUM, 1)
    ask({**another(2), "cost": {"usd": 0.5}}, 2)
    ask(WRONG_SUM, 3)
    ask(EMAIL, 4)
    ask(FALSE, 5)
    ask({**SUM, "cost": {"usd": 5}}, 5)
    return ask


def _day(offset: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(days=offset)).strftime("%Y-%m-%d")


@spec("7.2", "guide/Activity logging")
def test_the_response_of_the_document(busy: AgentConversation) -> None:
    page = busy.activity(**{"from": _day(), "to": _day(1)})
    assert set(page) == {"agent_id", "period", "summary", "activities", "next_cursor"}
    assert page["agent_id"] == busy.agent_id
    assert page["period"] == {"from": f"{_day()}T00:00:00Z", "to": f"{_day(1)}T00:00:00Z"}
    assert page["summary"] == {
        "total_actions": 6,
        "approved": 2,
        "denied": 1,
        "corrected": 1,
        "pending": 1,
        "budget_exceeded": 1,
        "total_cost_usd": 0.52,
    }
    assert len(page["activities"]) == 6
    assert page["next_cursor"] is None


@spec("7.2")
def test_activities_come_newest_first(busy: AgentConversation) -> None:
    decisions = [each["decision"] for each in busy.activity()["activities"]]
    assert decisions == ["BUDGET_EXCEEDED", "DENIED", "PENDING", "CORRECTED", "APPROVED", "APPROVED"]


@spec("7.2", "guide/Activity logging")
@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, 7])
def test_pages_follow_each_other_without_gap_or_repeat(busy: AgentConversation, limit: int) -> None:
    whole = [each["activity_id"] for each in busy.activity()["activities"]]
    seen: list[str] = []
    query: Json = {"limit": limit}
    while True:
        page = busy.activity(**query)
        assert len(page["activities"]) <= limit
        seen += [each["activity_id"] for each in page["activities"]]
        if page["next_cursor"] is None:
            break
        query = {"limit": limit, "cursor": page["next_cursor"]}
    assert seen == whole


@spec("7.2")
@pytest.mark.parametrize(
    ("decision", "count"), [("APPROVED", 2), ("CORRECTED", 1), ("PENDING", 1), ("DENIED", 1), ("BUDGET_EXCEEDED", 1)]
)
def test_the_decision_narrows_the_list(busy: AgentConversation, decision: str, count: int) -> None:
    found = busy.activity(decision=decision)["activities"]
    assert [each["decision"] for each in found] == [decision] * count


@spec("7.2")
def test_from_is_inclusive_and_to_is_exclusive(busy: AgentConversation) -> None:
    times = [each["timestamp"] for each in busy.activity()["activities"]]
    newest, oldest = times[0], times[-1]
    assert len(busy.activity(**{"from": oldest})["activities"]) == 6
    assert all(each["timestamp"] < newest for each in busy.activity(to=newest)["activities"])
    assert busy.activity(**{"from": oldest, "to": oldest})["activities"] == []


@spec("7.2")
def test_the_summary_is_of_the_period_asked_for(busy: AgentConversation) -> None:
    for query in ({"from": _day(1)}, {"to": _day()}, {"from": "2025-12-01", "to": "2025-12-20"}):
        page = busy.activity(**query)
        assert page["activities"] == []
        assert page["summary"]["total_actions"] == 0
        assert page["summary"]["total_cost_usd"] == 0


@spec("7.2")
def test_a_period_within_a_day_is_summed_as_exactly_as_it_is_listed(busy: AgentConversation) -> None:
    middle = busy.activity()["activities"][2]["timestamp"]
    for query in ({"from": middle}, {"to": middle}):
        page = busy.activity(**query)
        assert page["summary"]["total_actions"] == len(page["activities"])


@spec("7.2")
def test_the_decision_filter_and_the_page_leave_the_summary_alone(busy: AgentConversation) -> None:
    assert busy.activity(decision="DENIED", limit=1)["summary"] == busy.activity()["summary"]


@spec("7.2")
@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "-1"},
        {"limit": "ten"},
        {"limit": "\u0661"},
        {"cursor": "abc"},
        {"cursor": "-5"},
        {"decision": "approved"},
        {"decision": "MAYBE"},
        {"from": "yesterday"},
        {"to": "2025-13-01"},
        {"from": ""},
        {"since": "2025-12-01"},
    ],
    ids=str,
)
def test_a_question_that_cannot_be_answered_is_refused(ask: AgentConversation, query: Json) -> None:
    response = ask.api.get(f"/agents/{ask.agent_id}/activity", params=query)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "QWED-REQ-005")


@spec("7.2")
@pytest.mark.parametrize("moment", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z", "2025-12-01T00:00:00+14:00"])
def test_every_time_there_is_can_be_asked_for(ask: AgentConversation, moment: str) -> None:
    for name in ("from", "to"):
        assert ask.api.get(f"/agents/{ask.agent_id}/activity", params={name: moment}).status_code == 200


@spec("7.2")
def test_a_bare_date_is_a_utc_day_and_offsets_are_honoured(ask: AgentConversation) -> None:
    period = ask.activity(**{"from": "2025-12-01", "to": "2025-12-20T02:00:00+02:00"})["period"]
    assert period == {"from": "2025-12-01T00:00:00Z", "to": "2025-12-20T00:00:00Z"}


@spec("7.2")
def test_an_agents_activity_is_its_own(asking: Callable[..., AgentConversation]) -> None:
    one, other = asking(), asking()
    one(SUM, 1)
    assert other.activity()["activities"] == []
    assert other.activity()["summary"]["total_actions"] == 0
