"""Read a data directory that nobody is using, and check that what it says is one story."""

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from qwed.store.sqlite import FILE_NAME

COMMITTED = ("APPROVED", "CORRECTED", "PENDING")


class Activity(NamedTuple):
    """One row of the log with the parts of its leaf that the promises are about."""

    activity_id: str
    agent_id: str
    log_index: int
    decision: str
    conversation_id: str | None
    step_number: int | None
    cost: int
    error: str | None
    risk: str | None


class Books:
    """Everything that is kept, as it lies on disk."""

    def __init__(self, directory: Path) -> None:
        with sqlite3.connect(directory / FILE_NAME) as connection:
            connection.row_factory = sqlite3.Row
            kept = connection.execute("SELECT * FROM activities ORDER BY sequence").fetchall()
            self.log = [(row["organisation_id"], row["log_index"], row["event"]) for row in kept]
            self.activities = [_activity(row) for row in kept if not row["event"]]
            self.usage = {row["agent_id"]: dict(row) for row in connection.execute("SELECT * FROM usage")}
            self.tallies = [tuple(row) for row in connection.execute("SELECT * FROM tallies")]
            self.conversations = {
                (row["agent_id"], row["conversation_id"]): dict(row)
                for row in connection.execute("SELECT * FROM conversations")
            }
            self.approvals = [dict(row) for row in connection.execute("SELECT * FROM approvals")]
            self.memories = [dict(row) for row in connection.execute("SELECT * FROM memories")]
        connection.close()

    def committed(self) -> list[Activity]:
        return [activity for activity in self.activities if activity.decision in COMMITTED]

    def require_one_story(self) -> None:
        """P2, P3 and the log: counters, conversations and tallies say what the activities say."""
        self._require_an_unbroken_log()
        self._require_each_step_once()
        self._require_counters()
        self._require_tallies()
        self._require_nothing_stray()

    def _require_an_unbroken_log(self) -> None:
        for organisation in {name for name, _index, _event in self.log}:
            indexes = [index for name, index, _event in self.log if name == organisation]
            assert indexes == list(range(len(indexes)))

    def _require_each_step_once(self) -> None:
        places: dict[tuple[str, str | None], list[int | None]] = {}
        for activity in self.committed():
            places.setdefault((activity.agent_id, activity.conversation_id), []).append(activity.step_number)
        for place, steps in places.items():
            assert steps == sorted(set(steps), key=lambda step: step or 0), f"steps of {place}: {steps}"
            kept = self.conversations[place]
            assert (kept["last_step"], kept["steps"]) == (steps[-1], len(steps))
        assert set(places) == set(self.conversations)

    def _require_counters(self) -> None:
        for agent_id, kept in self.usage.items():
            own = [activity for activity in self.activities if activity.agent_id == agent_id]
            assert kept["cost_day"] == sum(activity.cost for activity in own)
            assert kept["requests_day"] == sum(map(_counts_as_request, own))
            waiting = [row for row in self.approvals if row["agent_id"] == agent_id]
            assert kept["pending_cost"] == sum(row["cost"] for row in waiting)
            assert kept["pending_high_risk"] == sum(row["high_risk_calls"] for row in waiting)

    def _require_tallies(self) -> None:
        by_decision: Counter[tuple[str, str]] = Counter()
        for agent_id, _day, decision, actions, _cost in self.tallies:
            by_decision[agent_id, decision] += actions
        assert by_decision == Counter((activity.agent_id, activity.decision) for activity in self.activities)

    def _require_nothing_stray(self) -> None:
        """What waits for a person or is remembered for a retry is in the log."""
        decisions = {activity.activity_id: activity.decision for activity in self.activities}
        assert all(decisions[row["activity_id"]] == "PENDING" for row in self.approvals)
        assert {row["activity_id"] for row in self.memories} <= set(decisions)
        waiting = [activity.activity_id for activity in self.activities if activity.decision == "PENDING"]
        assert sorted(waiting) == sorted(row["activity_id"] for row in self.approvals)


_NOT_COUNTED = ("QWED-AGENT-LOOP-001", "QWED-AGENT-LOOP-002", "QWED-AGENT-BUDGET", "QWED-REQ")


def _counts_as_request(activity: Activity) -> bool:
    """Ruling 4.8: what got past admission, except what the budget refused."""
    return not (activity.error or "").startswith(_NOT_COUNTED)


def _activity(row: Any) -> Activity:
    leaf = msgspec.json.decode(row["leaf"])
    assert leaf["activity_id"] == row["activity_id"]
    assert leaf["decision"] == row["decision"]
    return Activity(
        row["activity_id"],
        row["agent_id"],
        row["log_index"],
        row["decision"],
        leaf.get("conversation_id"),
        leaf.get("step_number"),
        leaf.get("cost_micros", 0),
        leaf.get("error"),
        leaf.get("risk_level"),
    )
