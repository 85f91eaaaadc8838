"""P3 at length: ten thousand requests race for budgets, and none is ever passed, by whatever it is counted.

Small versions of it run with every test run: see `test_races.py`.
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
from tests.support.books import COMMITTED, Activity, Books, Change
from tests.support.clock import NOON
from tests.support.figures import Figure, campaign
from tests.support.wire import Heard, clients, message

CLIENTS, LINES = 4, 48
EACH = 1_450
EVERYTHING = {
    "max_daily_cost_usd": 9.999999,
    "max_requests_per_hour": 600,
    "max_tokens_per_day": 70_001,
    "max_tool_calls_per_hour": 500,
    "max_high_risk_calls_per_day": 90,
}


class Purse(NamedTuple):
    """A limit, and the counter that must not pass it."""

    budget: dict[str, Any]
    counted: tuple[str, ...]
    """Columns of what is kept; together they are what was used and what is held."""
    unit: int = 1
    trust_level: int = 3


COST = ("cost_day", "pending_cost")
PURSES = {
    "dollars": Purse({"max_daily_cost_usd": 7.654321}, COST, 1_000_000),
    "dollars that wait for a person": Purse({"max_daily_cost_usd": 5.000001}, COST, 1_000_000, trust_level=0),
    "requests of an hour": Purse({"max_requests_per_hour": 311}, ("requests_hour",)),
    "requests of a day": Purse({"max_requests_per_day": 307}, ("requests_day",)),
    "tokens": Purse({"max_tokens_per_day": 54_321}, ("tokens_day", "pending_tokens")),
    "tool calls": Purse({"max_tool_calls_per_hour": 211}, ("tool_calls_hour",)),
    "everything": Purse(EVERYTHING, COST, 1_000_000),
}


def _action(number: int, chance: random.Random) -> dict[str, Any]:
    """Sums, tool calls and what is of high risk, at prices with six decimals."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "calculate", "query": f"{number}+1"},
        {"type": "tool_call", "tool": "get_weather", "parameters": {"n": number}},
        {"type": "file_delete", "target": f"notes-{number}.txt"},
    )
    cost = {"usd": chance.randrange(10_000, 90_000) / 1_000_000, "tokens": chance.randrange(1, 400)}
    return {**kinds[number % 3], "cost": cost}


class Rush:
    """One server and an agent for each purse."""

    def __init__(self, directory: Path) -> None:
        self.server = ClockedServer(directory, NOON)
        self.shown = {"X-API-Key": self.server.owner_key}
        self.api = httpx.Client(base_url=self.server.base_url, headers=self.shown, timeout=60)
        allowed = {"allowed_tools": ["get_weather", "file_delete"]}
        self.agents: dict[str, str] = {}
        for name, purse in PURSES.items():
            said = {"budget": purse.budget, "trust_level": purse.trust_level, "permissions": allowed}
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

    def settle_what_waits(self) -> Counter[str]:
        """A person who approves and rejects as long as the race lasts, so that what is held comes and goes."""
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
def rush(tmp_path: Path) -> Iterator[Rush]:
    running = Rush(tmp_path / "data")
    yield running
    running.api.close()
    running.server.kill()


@pytest.mark.drill
@campaign("P3", "a race for budgets")
def test_ten_thousand_requests_that_race_for_budgets_never_pass_one(rush: Rush, figure: Figure) -> None:
    messages = rush.messages()
    assert len(messages) >= 10_000
    with clients(CLIENTS, LINES) as callers, ThreadPoolExecutor(1) as person:
        settling = person.submit(rush.settle_what_waits)
        try:
            heard = callers.ask(rush.server.base_url, messages)
        finally:
            rush.over.set()
        settled = settling.result()
    told = _told(heard)
    rush.server.kill()
    books = Books(rush.server.data_dir)
    books.require_one_story()
    assert {one.activity_id: one.decision for one in books.committed()} == told
    for name, purse in PURSES.items():
        _require_within(books, rush.agents[name], purse)
    figure("requests", len(messages))
    figure("committed", len(told))
    figure("refused by a budget", sum(one.decision == "BUDGET_EXCEEDED" for one in books.activities))
    figure("settled by a person meanwhile", settled["approve"] + settled["reject"])
    figure("micro-dollars charged", sum(usage["cost_day"] for usage in books.usage.values()))
    figure("micro-dollars above a limit", 0)


def _told(heard: list[Heard | None]) -> dict[str, str]:
    answers = [answer.json for answer in heard if answer is not None]
    assert len(answers) == len(heard)
    return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}


def _require_within(books: Books, agent_id: str, purse: Purse) -> None:
    """The counters are within every limit, and so is the log at every place of it; what was full is full."""
    kept = books.usage[agent_id]
    name, limit = next(iter(purse.budget.items()))
    used = sum(kept[column] for column in purse.counted)
    assert used <= round(limit * purse.unit), name
    assert any(one.decision == "BUDGET_EXCEEDED" for one in books.activities if one.agent_id == agent_id), name
    if "max_daily_cost_usd" in purse.budget:
        assert max(_sums(books, agent_id)) <= round(purse.budget["max_daily_cost_usd"] * 1_000_000)
    assert kept["tokens_day"] == _tokens(books, agent_id)


def _sums(books: Books, agent_id: str) -> Iterator[int]:
    """What was used and held after each entry of the log."""
    costs = {row["activity_id"]: row["cost"] for row in books.approvals}
    entries: list[Activity | Change] = [*books.activities, *books.changes]
    total = 0
    for one in sorted(entries, key=lambda entry: entry.log_index):
        if one.agent_id != agent_id:
            continue
        if isinstance(one, Activity):
            total += costs.get(one.activity_id, one.cost)
        elif one.event in ("rejected", "expired"):
            total -= costs[one.about or ""]
        yield total


def _tokens(books: Books, agent_id: str) -> int:
    leaves = [msgspec.json.decode(leaf) for _organisation, leaf, _nodes in books.leaves]
    return sum(leaf.get("tokens", 0) for leaf in leaves if leaf.get("agent_id") == agent_id)
