"""P1, P2, P3 and P5 across a kill at any moment: from outside, between two instructions of whatever runs just then.

Agents ask and people settle, erase, stop and rotate at the same time. The moments are drawn by lot from a seed: so many
answers after the beginning, and a little later. `test_kill.py` ends the process at named places instead.
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
from tests.faults.story import CALLS, CRASHING, Asked, Story, retry_everything, survivor
from tests.support.books import Books
from tests.support.figures import Figure, campaign
from tests.support.server import SERVE, Server
from tests.support.wire import Heard, asked_at_once, message

NEVER = (*CRASHING, "--place", "never", "--times", "1")
"""The application on its store, without what else a server starts: the engines would take longer than the rest."""
WHOLE_EVERY = 8
"""Each so manieth kill is that of a server with everything."""
LINES = 12
LATEST = 0.004
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
SUM = {"type": "calculate", "query": "2+2"}
WAITING = 6
"""How many approvals of a round each of two people settles."""


class Wish(NamedTuple):
    """What a person asks for: the event that is in the log once it was told."""

    path: str
    body: Any
    event: str
    approval_id: str | None = None


class Office(Story):
    """A story in which people act while agents ask."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.settled: dict[str, str] = {}
        """Of every approval that somebody was told about: how it was settled."""
        self.happened: Counter[str] = Counter()

    def wishes(self, round_: int) -> list[Wish]:
        """What people ask for in a round, about agents and approvals of its own."""
        with qwed.open(self.directory) as gate:
            clerk = gate.register_agent(name="clerk", principal_id=f"principal {round_}")["agent_id"]
            waiting = [_asked(gate, clerk, MAIL, number).approval_id for number in range(2 * WAITING)]
            done = [_asked(gate, clerk, SUM, WAITING * 2 + number).action_id for number in range(WAITING)]
            bystander = survivor(gate)
        said = {"reason": "because"}
        lowered = {"request": "trust_reduction", "to_level": 1}
        executed = f"/agents/{clerk}/actions/{{}}/execution"
        return [
            *(Wish(f"/approvals/{each}/approve", said, "approved", each) for each in waiting[:WAITING]),
            *(Wish(f"/approvals/{each}/reject", said, "rejected", each) for each in waiting[WAITING:]),
            *(Wish(executed.format(each), {"success": True}, "executed") for each in done),
            Wish(f"/agents/{bystander}/rotate-token", {}, "token_rotated"),
            Wish(f"/agents/{bystander}/trust", lowered, "trust_lowered"),
            Wish(f"/agents/{bystander}/suspend", said, "suspended"),
            Wish("/audit/erase", {"subject": f"principal {round_}"}, "erased"),
            Wish("/agents/register", {"name": "new", "principal_id": "p"}, "registered"),
        ]

    def end_at(self, chance: random.Random, round_: int) -> list[Asked]:
        """Serve agents and people at once until the process is killed at a moment drawn by lot."""
        asked, wishes = self.asked(round_), self.wishes(round_)
        chance.shuffle(wishes)
        shown = {"X-API-Key": self.owner_key}
        messages = [one.message(self.owner_key) for one in asked]
        # Every few requests of agents one of a person, in no order that repeats.
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

    def _ask(self, server: Server, messages: list[bytes], chance: random.Random) -> list[Heard | None]:
        after, later = chance.randrange(len(messages)), chance.random() * LATEST

        def on_answer(answers: int) -> None:
            if answers == after:
                asyncio.get_running_loop().call_later(later, server.process.kill)

        return asked_at_once(server.base_url, messages, LINES, on_answer)

    def _hear_of(self, wish: Wish, answer: Heard | None) -> None:
        if answer is None or answer.status == 409:
            # What is to be approved may be erased by then; a refusal promises nothing.
            return
        assert answer.status in (200, 201), (wish, answer)
        self.happened[wish.event] += 1
        if wish.approval_id is not None:
            self.settled[wish.approval_id] = wish.event

    def require_kept(self) -> Books:
        """As of decisions, so of what people were told."""
        books = super().require_kept()
        states = {row["approval_id"]: row["state"] for row in books.approvals}
        assert self.settled == {approval_id: states[approval_id] for approval_id in self.settled}
        kept = Counter(change.event for change in books.changes)
        assert {event: kept[event] for event in self.happened if kept[event] < self.happened[event]} == {}
        return books


def _asked(gate: Gate, agent_id: str, action: Any, number: int) -> Any:
    place = {"conversation_id": f"conversation {number}", "step_number": 1}
    return gate.verify_action(agent_id, action, place)


def _live_through(office: Office, seed: int, rounds: range) -> None:
    chance = random.Random(seed)
    for round_ in rounds:
        asked = office.end_at(chance, round_)
        retry_everything(office, asked, office.require_kept())
        office.require_kept()


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "data")


def test_nothing_told_is_lost_and_nothing_is_charged_twice_when_the_process_is_killed_at_any_moment(
    office: Office,
) -> None:
    _live_through(office, 1, range(2))


IN_A_ROW = 26


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "kills at a moment drawn by lot")
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_kills_in_a_row_at_any_moment_leave_one_story(office: Office, seed: int, figure: Figure) -> None:
    _live_through(office, seed, range(IN_A_ROW))
    figure("kills", IN_A_ROW)
    figure("requests", IN_A_ROW * CALLS)
    figure("answers told before a kill", len(office.told))
    figure("changes told before a kill", office.happened.total())
