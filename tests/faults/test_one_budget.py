"""P3 at length: ten thousand requests race for budgets, and none is ever exceeded, whatever it counts.

Small versions run with every test run: see `test_races.py`.
"""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from tests.faults.clocked_server import ClockedServer
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck, LoggedChange, LoggedDecision
from tests.support.manual_clock import NOON
from tests.support.raw_http import RawResponse, clients, message

CLIENTS, LINES = 4, 48
EACH = 1_450
EVERYTHING = {
    "max_daily_cost_usd": 9.999999,
    "max_requests_per_hour": 600,
    "max_tokens_per_day": 70_001,
    "max_tool_calls_per_hour": 500,
    "max_high_risk_calls_per_day": 90,
}


class LimitCase(NamedTuple):
    """Limit, and the counter that must not exceed it."""

    budget: dict[str, Any]
    counted: tuple[str, ...]
    """Columns whose sum is what was used and what is reserved."""
    unit: int = 1
    trust_level: int = 3


COST = ("cost_day", "pending_cost")
PURSES = {
    "dollars": LimitCase({"max_daily_cost_usd": 7.654321}, COST, 1_000_000),
    "dollars that wait for a person": LimitCase({"max_daily_cost_usd": 5.000001}, COST, 1_000_000, trust_level=0),
    "requests of an hour": LimitCase({"max_requests_per_hour": 311}, ("requests_hour",)),
    "requests of a day": LimitCase({"max_requests_per_day": 307}, ("requests_day",)),
    "tokens": LimitCase({"max_tokens_per_day": 54_321}, ("tokens_day", "pending_tokens")),
    "tool calls": LimitCase({"max_tool_calls_per_hour": 211}, ("tool_calls_hour",)),
    "everything": LimitCase(EVERYTHING, COST, 1_000_000),
}


def _action(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a calculation, a tool call or a high-risk action, at a price with six decimals."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "calculate", "query": f"{number}+1"},
        {"type": "tool_call", "tool": "get_weather", "parameters": {"n": number}},
        {"type": "file_delete", "target": f"notes-{number}.txt"},
    )
    cost = {"usd": chance.randrange(10_000, 90_000) / 1_000_000, "tokens": chance.randrange(1, 400)}
    return {**kinds[number % 3], "cost": cost}


class BudgetRace:
    """Server with an agent for each limit."""

    def __init__(self, directory: Path) -> None:
        self.server = ClockedServer(directory, NOON)
        self.shown = {"X-API-Key": self.server.owner_key}
        self.api = httpx.Client(base_url=self.server.base_url, headers=self.shown, timeout=60)
        allowed = {"allowed_tools": ["get_weather", "file_delete"]}
        self.agents: dict[str, str] = {}
        for name, limit_case in PURSES.items():
            said = {"budget": limit_case.budget, "trust_level": limit_case.trust_level, "permissions": allowed}
            response = self.api.post("/agents/register", json={"name": name, "principal_id": "p", **said})
            assert response.status_code == 201, response.text
            self.agents[name] = response.json()["agent_id"]
        self.over = Event()

    def messages(self) -> list[bytes]:
        chance = random.Random(8)
        asked = [(agent, number) for agent in self.agents.values() for number in range(EACH)]
        chance.shuffle(asked)
        return [self._message(agent, number, chance) for agent, number in asked]

    def _message(self, agent_id: str, number: int, chance: random.Random) -> bytes:
        place = {"conversation_id": f"conversation {number}", "step_number": 1}
        return message(f"/agents/{agent_id}/verify", {"action": _action(number, chance), "context": place}, self.shown)

    def resolve_pending(self) -> Counter[str]:
        """Approve and reject during the race, so that reservations come and go."""
        done: Counter[str] = Counter()
        with httpx.Client(base_url=self.server.base_url, headers=self.shown, timeout=60) as api:
            while not self.over.is_set():
                waiting = api.get("/approvals", params={"state": "pending", "limit": 20}).json()["approvals"]
                for number, approval in enumerate(waiting):
                    verb = ("approve", "reject")[number % 2]
                    answer = api.post(f"/approvals/{approval['approval_id']}/{verb}", json={"reason": "because"})
                    done[verb if answer.status_code == 200 else "refused"] += 1
        return done


@pytest.fixture
def budget_race(tmp_path: Path) -> Iterator[BudgetRace]:
    running = BudgetRace(tmp_path / "data")
    yield running
    running.api.close()
    running.server.kill()


@pytest.mark.drill
@campaign("P3", "a race for budgets")
def test_ten_thousand_requests_that_race_for_budgets_never_pass_one(budget_race: BudgetRace, figure: Figure) -> None:
    messages = budget_race.messages()
    assert len(messages) >= 10_000
    with clients(CLIENTS, LINES) as callers, ThreadPoolExecutor(1) as person:
        settling = person.submit(budget_race.resolve_pending)
        try:
            heard = callers.ask(budget_race.server.base_url, messages)
        finally:
            budget_race.over.set()
        settled = settling.result()
    reported = _told(heard)
    budget_race.server.kill()
    books = DataDirectoryCheck(budget_race.server.data_dir)
    books.require_consistent()
    assert {one.activity_id: one.decision for one in books.committed()} == reported
    for name, limit_case in PURSES.items():
        _require_within(books, budget_race.agents[name], limit_case)
    figure("requests", len(messages))
    figure("committed", len(reported))
    figure("refused by a budget", sum(one.decision == "BUDGET_EXCEEDED" for one in books.activities))
    figure("settled by a person meanwhile", settled["approve"] + settled["reject"])
    figure("micro-dollars charged", sum(usage["cost_day"] for usage in books.usage.values()))
    figure("micro-dollars above a limit", 0)


def _told(heard: list[RawResponse | None]) -> dict[str, str]:
    answers = [answer.json for answer in heard if answer is not None]
    assert len(answers) == len(heard)
    return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}


def _require_within(books: DataDirectoryCheck, agent_id: str, limit_case: LimitCase) -> None:
    """Require that the counters, and the log at every position, stay within the limit, and that it is used up."""
    usage = books.usage[agent_id]
    name, limit = next(iter(limit_case.budget.items()))
    used = sum(usage[column] for column in limit_case.counted)
    assert used <= round(limit * limit_case.unit), name
    assert any(one.decision == "BUDGET_EXCEEDED" for one in books.activities if one.agent_id == agent_id), name
    if "max_daily_cost_usd" in limit_case.budget:
        assert max(_sums(books, agent_id)) <= round(limit_case.budget["max_daily_cost_usd"] * 1_000_000)
    assert usage["tokens_day"] == _tokens(books, agent_id)


def _sums(books: DataDirectoryCheck, agent_id: str) -> Iterator[int]:
    """Yield what was used and reserved after each entry of the log."""
    costs = {row["activity_id"]: row["cost"] for row in books.approvals}
    entries: list[LoggedDecision | LoggedChange] = [*books.activities, *books.changes]
    total = 0
    for one in sorted(entries, key=lambda entry: entry.log_index):
        if one.agent_id != agent_id:
            continue
        if isinstance(one, LoggedDecision):
            total += costs.get(one.activity_id, one.cost)
        elif one.event in ("rejected", "expired"):
            total -= costs[one.about or ""]
        yield total


def _tokens(books: DataDirectoryCheck, agent_id: str) -> int:
    leaves = [msgspec.json.decode(leaf) for _organisation, leaf, _nodes in books.leaves]
    return sum(leaf.get("tokens", 0) for leaf in leaves if leaf.get("agent_id") == agent_id)
