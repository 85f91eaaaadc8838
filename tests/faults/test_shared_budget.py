"""P3 over several servers: a budget is shared by all of them, to the last request and cent."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.cluster_invariants import require_consistent_log
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.raw_http import RawResponse, clients, message, send_concurrently
from tests.support.server_cluster import ServerCluster
from tests.support.step_races import avoid_end_of_hour

CLIENTS, LINES = 2, 16
"""Number of processes, and of connections of each: thirty-two in all."""
CENT = 10_000
EXCEEDED = {"cost": "QWED-AGENT-BUDGET-001", "requests": "QWED-AGENT-BUDGET-002", "tokens": "QWED-AGENT-BUDGET-003"}


class BudgetCase(NamedTuple):
    """Budget, and the error code once it is used up."""

    limits: dict[str, Any]
    kind: str
    trust_level: int = 3
    """Level high enough that budget refusals do not affect other decisions."""


def budget_cases(most: int) -> dict[str, BudgetCase]:
    """Return budgets that this many requests use up, one for each counter."""
    return {
        "requests of an hour": BudgetCase({"max_requests_per_hour": most}, "requests"),
        "requests of a day": BudgetCase({"max_requests_per_day": most}, "requests"),
        "dollars": BudgetCase({"max_daily_cost_usd": most / 100}, "cost"),
        "dollars that wait for a person": BudgetCase({"max_daily_cost_usd": most / 100}, "cost", trust_level=0),
        "tokens": BudgetCase({"max_tokens_per_day": most * 7}, "tokens"),
    }


class BudgetRace:
    """Agent for each budget, and more requests than any of them allows."""

    def __init__(self, cluster: ServerCluster, most: int) -> None:
        self.cluster = cluster
        self.most = most
        self.purses = budget_cases(most)
        self.agents = {
            name: cluster.register(budget=budget_case.limits, trust_level=budget_case.trust_level)["agent_id"]
            for name, budget_case in self.purses.items()
        }
        self.heard: dict[str, list[RawResponse]] = {}

    def messages(self, each: int) -> tuple[list[str], list[bytes]]:
        """Return requests for each budget in random order, and their budgets."""
        asked = [(name, number) for name in self.purses for number in range(each)]
        random.Random(11).shuffle(asked)
        return [name for name, _number in asked], [self._message(*one) for one in asked]

    def _message(self, name: str, number: int) -> bytes:
        action = {"type": "calculate", "query": f"{number}+1", "cost": {"usd": 0.01, "tokens": 7}}
        body = {"action": action, "context": {"conversation_id": f"conversation {number}", "step_number": 1}}
        return message(f"/agents/{self.agents[name]}/verify", body, {"X-API-Key": self.cluster.owner_key})

    def hear(self, names: list[str], heard: list[RawResponse | None]) -> None:
        """Record the answers by budget."""
        for name, answer in zip(names, heard, strict=True):
            assert answer is not None
            self.heard.setdefault(name, []).append(answer)

    @property
    def told(self) -> dict[str, str]:
        answers = [answer.json for heard in self.heard.values() for answer in heard]
        return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}

    def require_exact(self) -> None:
        """Require that every budget is used up exactly: in the answers, the counters, the list and the log."""
        books = require_consistent_log(self.cluster, self.told)
        for name, budget_case in self.purses.items():
            self._require_heard(name, budget_case)
            self._require_shown(name, budget_case)
            self._require_kept(name, books)

    def _require_heard(self, name: str, budget_case: BudgetCase) -> None:
        decision = "PENDING" if budget_case.trust_level == 0 else "APPROVED"
        outcomes = Counter((answer.status, answer.json["decision"]) for answer in self.heard[name])
        refused = len(self.heard[name]) - self.most
        assert outcomes == {(200, decision): self.most, (429, "BUDGET_EXCEEDED"): refused}, name
        codes = {answer.json["error"]["code"] for answer in self.heard[name] if answer.status == 429}
        assert codes == {EXCEEDED[budget_case.kind]}, name

    def _require_shown(self, name: str, budget_case: BudgetCase) -> None:
        """Require the same counters and the same list on every server."""
        refused, spent = len(self.heard[name]) - self.most, self.most / 100
        waits = budget_case.trust_level == 0
        for number in range(len(self.cluster.servers)):
            client, path = self.cluster.client(number), f"/agents/{self.agents[name]}"
            budget = client.get(f"{path}/budget").json()
            totals = (budget["cost"]["current_daily_usd"], budget["cost"]["held_usd"])
            assert totals == ((0, spent) if waits else (spent, 0)), name
            assert budget["requests"]["current_day"] == self.most, name
            summary = client.get(f"{path}/activity", params={"limit": 1}).json()["summary"]
            committed = summary["pending" if waits else "approved"]
            assert (committed, summary["budget_exceeded"]) == (self.most, refused), name
            assert len(list(self._listed(number, name))) == len(self.heard[name]), name

    def _listed(self, number: int, name: str) -> Iterator[str]:
        """Yield every decision of the list, page by page."""
        asked: dict[str, Any] = {"limit": 1000, "kind": "decision"}
        while True:
            page = self.cluster.client(number).get(f"/agents/{self.agents[name]}/activity", params=asked).json()
            yield from (entry["activity_id"] for entry in page["activities"])
            if page["next_cursor"] is None:
                return
            asked["cursor"] = page["next_cursor"]

    def _require_kept(self, name: str, books: DataDirectoryCheck) -> None:
        usage = books.usage[self.agents[name]]
        assert (usage["requests_day"], usage["requests_hour"]) == (self.most, self.most), name
        assert usage["cost_day"] + usage["pending_cost"] == self.most * CENT, name
        assert usage["tokens_day"] + usage["pending_tokens"] == self.most * 7, name
        own = [one for one in books.committed() if one.agent_id == self.agents[name]]
        assert len(own) == self.most, name


def test_a_budget_is_one_budget_for_two_servers(pair: ServerCluster) -> None:
    avoid_end_of_hour()
    pair.keep_head()
    budget_race = BudgetRace(pair, 20)
    names, messages = budget_race.messages(48)
    budget_race.hear(names, send_concurrently(pair.urls, messages, CLIENTS * LINES))
    budget_race.require_exact()


@pytest.mark.drill
@campaign("P3", "a race for budgets of 1,000, over PostgreSQL")
def test_a_budget_of_a_thousand_is_exactly_a_thousand_for_two(cluster: ServerCluster, figure: Figure) -> None:
    avoid_end_of_hour(120)
    cluster.keep_head()
    budget_race = BudgetRace(cluster, 1_000)
    names, messages = budget_race.messages(1_500)
    with clients(CLIENTS, LINES) as callers:
        budget_race.hear(names, callers.ask(cluster.urls, messages))
    budget_race.require_exact()
    figure("requests", len(messages))
    figure("budgets", len(budget_race.purses))
    figure("committed", len(budget_race.told))
    figure("above or below a limit", 0)
