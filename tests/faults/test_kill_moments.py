"""P1, P2, P3 and P5 across a kill at any moment, from outside.

Agents send requests while people resolve, erase, stop and rotate. The moments are drawn from a seed: some answers after
the start, and a little later. `test_kill.py` kills the process at named places instead.
"""

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import qwed
from qwed.gate import Gate
from tests.faults.scenario import CALLS, CRASHING, CrashScenario, ScenarioRequest, register_agent, retry_everything
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.raw_http import RawResponse, message, send_concurrently
from tests.support.server import SERVE, Server

NEVER = (*CRASHING, "--place", "never", "--times", "1")
"""Application on its store without engines, which would take longer than the rest."""
WHOLE_EVERY = 8
"""Every n-th kill is that of a complete server."""
LINES = 12
LATEST = 0.004
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
SUM = {"type": "calculate", "query": "2+2"}
WAITING = 6
"""Number of approvals per round that each of two people resolves."""


class PersonRequest(NamedTuple):
    """Request of a person, and the event that is in the log once it was answered."""

    path: str
    body: Any
    event: str
    approval_id: str | None = None


class MixedScenario(CrashScenario):
    """Crash scenario in which people act while agents send requests."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.settled: dict[str, str] = {}
        """Reported resolution of each approval."""
        self.happened: Counter[str] = Counter()

    def wishes(self, round_: int) -> list[PersonRequest]:
        """Return the requests of people in a round, about its own agents and approvals."""
        with qwed.open(self.directory) as gate:
            clerk = gate.register_agent(name=unique_name("clerk"), principal_id=f"principal {round_}")["agent_id"]
            waiting = [_asked(gate, clerk, MAIL, number).approval_id for number in range(2 * WAITING)]
            done = [_asked(gate, clerk, SUM, WAITING * 2 + number).action_id for number in range(WAITING)]
            bystander = register_agent(gate)
        said = {"reason": "because"}
        lowered = {"request": "trust_reduction", "to_level": 1}
        executed = f"/agents/{clerk}/actions/{{}}/execution"
        return [
            *(PersonRequest(f"/approvals/{each}/approve", said, "approved", each) for each in waiting[:WAITING]),
            *(PersonRequest(f"/approvals/{each}/reject", said, "rejected", each) for each in waiting[WAITING:]),
            *(PersonRequest(executed.format(each), {"success": True}, "executed") for each in done),
            PersonRequest(f"/agents/{bystander}/rotate-token", {}, "token_rotated"),
            PersonRequest(f"/agents/{bystander}/trust", lowered, "trust_lowered"),
            PersonRequest(f"/agents/{bystander}/suspend", said, "suspended"),
            PersonRequest("/audit/erase", {"subject": f"principal {round_}"}, "erased"),
            PersonRequest("/agents/register", {"name": unique_name("new"), "principal_id": "p"}, "registered"),
        ]

    def end_at(self, chance: random.Random, round_: int) -> list[ScenarioRequest]:
        """Serve agents and people at once until the process is killed at a random moment."""
        asked, wishes = self.asked(round_), self.wishes(round_)
        chance.shuffle(wishes)
        shown = {"X-API-Key": self.owner_key}
        messages = [one.message(self.owner_key) for one in asked]
        # Mix requests of people into those of agents, in random order.
        places = sorted(chance.sample(range(len(messages) + len(wishes)), len(wishes)))
        for place, wish in zip(places, wishes, strict=True):
            messages.insert(place, message(wish.path, wish.body, shown))
        server = Server(self.directory, SERVE if round_ % WHOLE_EVERY == WHOLE_EVERY - 1 else NEVER)
        heard = self._ask(server, messages, chance)
        assert server.kill() == -signal.SIGKILL
        told = [heard[place] for place in places]
        for one, answer in zip(asked, (each for n, each in enumerate(heard) if n not in set(places)), strict=True):
            self.hear(one, answer)
        for wish, answer in zip(wishes, told, strict=True):
            self._hear_of(wish, answer)
        return asked

    def _ask(self, server: Server, messages: list[bytes], chance: random.Random) -> list[RawResponse | None]:
        after, later = chance.randrange(len(messages)), chance.random() * LATEST

        def on_answer(answers: int) -> None:
            if answers == after:
                asyncio.get_running_loop().call_later(later, server.process.kill)

        return send_concurrently(server.base_url, messages, LINES, on_answer)

    def _hear_of(self, wish: PersonRequest, answer: RawResponse | None) -> None:
        if answer is None or answer.status == 409:
            # The action may be erased by then; a refusal promises nothing.
            return
        assert answer.status in (200, 201), (wish, answer)
        self.happened[wish.event] += 1
        if wish.approval_id is not None:
            self.settled[wish.approval_id] = wish.event

    def require_kept(self) -> DataDirectoryCheck:
        """Require that every reported decision and change is stored."""
        books = super().require_kept()
        states = {row["approval_id"]: row["state"] for row in books.approvals}
        assert self.settled == {approval_id: states[approval_id] for approval_id in self.settled}
        kept = Counter(change.event for change in books.changes)
        assert {event: kept[event] for event in self.happened if kept[event] < self.happened[event]} == {}
        return books


def _asked(gate: Gate, agent_id: str, action: Any, number: int) -> Any:
    place = {"conversation_id": f"conversation {number}", "step_number": 1}
    return gate.verify_action(agent_id, action, place)


def _live_through(scenario: MixedScenario, seed: int, rounds: range) -> None:
    chance = random.Random(seed)
    for round_ in rounds:
        asked = scenario.end_at(chance, round_)
        retry_everything(scenario, asked, scenario.require_kept())
        scenario.require_kept()


@pytest.fixture
def scenario(tmp_path: Path) -> MixedScenario:
    return MixedScenario(tmp_path / "data")


def test_nothing_told_is_lost_and_nothing_is_charged_twice_when_the_process_is_killed_at_any_moment(
    scenario: MixedScenario,
) -> None:
    _live_through(scenario, 1, range(2))


IN_A_ROW = 26


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "kills at a moment drawn by lot")
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_kills_in_a_row_at_any_moment_leave_one_story(scenario: MixedScenario, seed: int, figure: Figure) -> None:
    _live_through(scenario, seed, range(IN_A_ROW))
    figure("kills", IN_A_ROW)
    figure("requests", IN_A_ROW * CALLS)
    figure("answers told before a kill", len(scenario.told))
    figure("changes told before a kill", scenario.happened.total())
