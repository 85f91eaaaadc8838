"""Races for the same steps: waves of tries from every client at once, and what each of them heard."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.support.books import COMMITTED
from tests.support.wire import Heard, Places, asked_at_once, message

REPLAY, KEY_IN_USE = "QWED-AGENT-LOOP-002", "QWED-REQ-006"

Ask = Callable[[Places, Sequence[bytes]], list[Heard | None]]
"""Every answer in the order of the messages: `Clients.ask`, or as many lines of this process as one likes."""


class Place(NamedTuple):
    """What is raced for."""

    agent_id: str
    conversation: str
    step: int


class Try(NamedTuple):
    """One of many for the same step."""

    place: Place
    number: int
    keyed: bool

    @property
    def key(self) -> str | None:
        """Every fourth try may say that it is one and the same request."""
        return f"{self.place.conversation} {self.place.step}" if self.keyed and self.number % 4 == 1 else None

    def message(self, shown: dict[str, str]) -> bytes:
        """Half of the tries are for the same action, half each for another one."""
        agent_id, conversation, step = self.place
        action = {"type": "calculate", "query": f"{step}+{step}" if self.number % 2 else f"{self.number}+{step}"}
        body = {"action": action, "context": {"conversation_id": conversation, "step_number": step}}
        headers = shown if self.key is None else {**shown, "Idempotency-Key": self.key}
        return message(f"/agents/{agent_id}/verify", body, headers)


class Race:
    """A wave of tries for one step of each conversation after the other, from every client at once."""

    def __init__(self, places: Places, owner_key: str, conversations: int) -> None:
        self.places = places
        self._shown = {"X-API-Key": owner_key}
        self.agents = [self._registered() for _ in range(conversations)]
        self.won: dict[Place, list[tuple[str | None, str]]] = {}
        """Of each step what was committed, as often as it was told, and with which key."""
        self.told: dict[str, str] = {}
        self.refused: Counter[str] = Counter()

    def _registered(self) -> str:
        body = {"name": "a", "principal_id": "p"}
        [answer] = asked_at_once(self.places, [message("/agents/register", body, self._shown)], 1)
        assert answer is not None
        agent_id: str = answer.json["agent_id"]
        return agent_id

    @property
    def tries(self) -> int:
        return self.refused.total() + sum(map(len, self.won.values()))

    def wave(self, ask: Ask, step: int, tries: int, *, keyed: bool = False) -> None:
        """So many tries for this step of every conversation, in no order."""
        places = [Place(agent_id, f"conversation of {agent_id}", step) for agent_id in self.agents]
        asked = [Try(place, number, keyed) for place in places for number in range(tries)]
        random.Random(step).shuffle(asked)
        heard = ask(self.places, [one.message(self._shown) for one in asked])
        for one, answer in zip(asked, heard, strict=True):
            assert answer is not None
            self._hear(one, answer.json)

    def _hear(self, one: Try, answer: dict[str, Any]) -> None:
        if answer["decision"] in COMMITTED:
            self.won.setdefault(one.place, []).append((one.key, answer["action_id"]))
            self.told[answer["action_id"]] = answer["decision"]
            return
        code = answer["error"]["code"]
        assert code == REPLAY or (one.key is not None and code == KEY_IN_USE), answer
        self.refused[code] += 1

    def require_one_winner(self, steps: int) -> None:
        """Each step was told to one try alone, or to those alone that were the same request."""
        assert len(self.won) == len(self.agents) * steps
        for place, wins in self.won.items():
            assert len({action_id for _key, action_id in wins}) == 1, place
            assert len(wins) == 1 or None not in {key for key, _action_id in wins}, place


def before_the_hour_turns(seconds: float = 60) -> None:
    """Wait for the next hour where this one is about to end: what may be asked in an hour begins anew with it."""
    left = 3600 - time.time() % 3600
    if left < seconds:
        time.sleep(left)
