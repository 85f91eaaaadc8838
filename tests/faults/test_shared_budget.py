"""P3 over several servers: a budget of so much is so much for all of them together, to the last request and cent."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.books import COMMITTED, Books
from tests.support.figures import Figure, campaign
from tests.support.fleet import Fleet
from tests.support.racing import before_the_hour_turns
from tests.support.truth import require_one_truth
from tests.support.wire import Heard, asked_at_once, clients, message

CLIENTS, LINES = 2, 16
"""Processes, and connections of each: thirty-two in all."""
CENT = 10_000
EXCEEDED = {"cost": "QWED-AGENT-BUDGET-001", "requests": "QWED-AGENT-BUDGET-002", "tokens": "QWED-AGENT-BUDGET-003"}


class Purse(NamedTuple):
    """What may be used up, and what refuses once it is."""

    limits: dict[str, Any]
    kind: str
    trust_level: int = 3
    """High enough that no refusal by a budget makes anything else of what is within it."""


def purses(most: int) -> dict[str, Purse]:
    """Budgets that so many requests use up, by whatever is counted."""
    return {
        "requests of an hour": Purse({"max_requests_per_hour": most}, "requests"),
        "requests of a day": Purse({"max_requests_per_day": most}, "requests"),
        "dollars": Purse({"max_daily_cost_usd": most / 100}, "cost"),
        "dollars that wait for a person": Purse({"max_daily_cost_usd": most / 100}, "cost", trust_level=0),
        "tokens": Purse({"max_tokens_per_day": most * 7}, "tokens"),
    }


class Rush:
    """An agent for each purse, and more requests than any of them is good for."""

    def __init__(self, fleet: Fleet, most: int) -> None:
        self.fleet = fleet
        self.most = most
        self.purses = purses(most)
        self.agents = {
            name: fleet.register(budget=purse.limits, trust_level=purse.trust_level)["agent_id"]
            for name, purse in self.purses.items()
        }
        self.heard: dict[str, list[Heard]] = {}

    def messages(self, each: int) -> tuple[list[str], list[bytes]]:
        """So many for each purse in no order, and whose they are."""
        asked = [(name, number) for name in self.purses for number in range(each)]
        random.Random(11).shuffle(asked)
        return [name for name, _number in asked], [self._message(*one) for one in asked]

    def _message(self, name: str, number: int) -> bytes:
        action = {"type": "calculate", "query": f"{number}+1", "cost": {"usd": 0.01, "tokens": 7}}
        body = {"action": action, "context": {"conversation_id": f"conversation {number}", "step_number": 1}}
        return message(f"/agents/{self.agents[name]}/verify", body, {"X-API-Key": self.fleet.owner_key})

    def hear(self, names: list[str], heard: list[Heard | None]) -> None:
        """Keep in mind who was told what."""
        for name, answer in zip(names, heard, strict=True):
            assert answer is not None
            self.heard.setdefault(name, []).append(answer)

    @property
    def told(self) -> dict[str, str]:
        answers = [answer.json for heard in self.heard.values() for answer in heard]
        return {answer["action_id"]: answer["decision"] for answer in answers if answer["decision"] in COMMITTED}

    def require_exact(self) -> None:
        """Every purse is used up and not one request more: to whoever asked, in the counters, the list and the log."""
        books = require_one_truth(self.fleet, self.told)
        for name, purse in self.purses.items():
            self._require_heard(name, purse)
            self._require_shown(name, purse)
            self._require_kept(name, books)

    def _require_heard(self, name: str, purse: Purse) -> None:
        decision = "PENDING" if purse.trust_level == 0 else "APPROVED"
        outcomes = Counter((each.status, each.json["decision"]) for each in self.heard[name])
        refused = len(self.heard[name]) - self.most
        assert outcomes == {(200, decision): self.most, (429, "BUDGET_EXCEEDED"): refused}, name
        codes = {each.json["error"]["code"] for each in self.heard[name] if each.status == 429}
        assert codes == {EXCEEDED[purse.kind]}, name

    def _require_shown(self, name: str, purse: Purse) -> None:
        """The same counters and the same list, whichever server is asked."""
        refused, spent = len(self.heard[name]) - self.most, self.most / 100
        waits = purse.trust_level == 0
        for number in range(len(self.fleet.servers)):
            client, path = self.fleet.client(number), f"/agents/{self.agents[name]}"
            budget = client.get(f"{path}/budget").json()
            held = (budget["cost"]["current_daily_usd"], budget["cost"]["held_usd"])
            assert held == ((0, spent) if waits else (spent, 0)), name
            assert budget["requests"]["current_day"] == self.most, name
            summary = client.get(f"{path}/activity", params={"limit": 1}).json()["summary"]
            committed = summary["pending" if waits else "approved"]
            assert (committed, summary["budget_exceeded"]) == (self.most, refused), name
            assert len(list(self._listed(number, name))) == len(self.heard[name]), name

    def _listed(self, number: int, name: str) -> Iterator[str]:
        """Every decision that the list has, page by page."""
        asked: dict[str, Any] = {"limit": 1000, "kind": "decision"}
        while True:
            page = self.fleet.client(number).get(f"/agents/{self.agents[name]}/activity", params=asked).json()
            yield from (entry["activity_id"] for entry in page["activities"])
            if page["next_cursor"] is None:
                return
            asked["cursor"] = page["next_cursor"]

    def _require_kept(self, name: str, books: Books) -> None:
        usage = books.usage[self.agents[name]]
        assert (usage["requests_day"], usage["requests_hour"]) == (self.most, self.most), name
        assert usage["cost_day"] + usage["pending_cost"] == self.most * CENT, name
        assert usage["tokens_day"] + usage["pending_tokens"] == self.most * 7, name
        own = [one for one in books.committed() if one.agent_id == self.agents[name]]
        assert len(own) == self.most, name


def test_a_budget_is_one_budget_for_two_servers(pair: Fleet) -> None:
    before_the_hour_turns()
    pair.keep_head()
    rush = Rush(pair, 20)
    names, messages = rush.messages(48)
    rush.hear(names, asked_at_once(pair.urls, messages, CLIENTS * LINES))
    rush.require_exact()


@pytest.mark.drill
@campaign("P3", "a race for budgets of 1,000, over PostgreSQL")
def test_a_budget_of_a_thousand_is_exactly_a_thousand_for_two(fleet: Fleet, figure: Figure) -> None:
    before_the_hour_turns(120)
    fleet.keep_head()
    rush = Rush(fleet, 1_000)
    names, messages = rush.messages(1_500)
    with clients(CLIENTS, LINES) as callers:
        rush.hear(names, callers.ask(fleet.urls, messages))
    rush.require_exact()
    figure("requests", len(messages))
    figure("budgets", len(rush.purses))
    figure("committed", len(rush.told))
    figure("above or below a limit", 0)
