"""Races for the same steps: waves of attempts from every client at once, and their answers."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.support.agent_names import unique_name
from tests.support.data_directory_check import COMMITTED
from tests.support.raw_http import RawResponse, ServerUrls, message, send_concurrently

REPLAY, KEY_IN_USE = "QWED-AGENT-LOOP-002", "QWED-REQ-006"

Ask = Callable[[ServerUrls, Sequence[bytes]], list[RawResponse | None]]
"""Returns every answer in the order of the messages: `ClientProcesses.ask`, or connections of this process."""


class StepKey(NamedTuple):
    """Step that the attempts compete for."""

    agent_id: str
    conversation: str
    step: int


class StepAttempt(NamedTuple):
    """One of many attempts for the same step."""

    place: StepKey
    number: int
    keyed: bool

    @property
    def key(self) -> str | None:
        """Idempotency key of every fourth attempt, or None."""
        return f"{self.place.conversation} {self.place.step}" if self.keyed and self.number % 4 == 1 else None

    def message(self, shown: dict[str, str]) -> bytes:
        """Return the request; half of the attempts have the same action, the others each a different one."""
        agent_id, conversation, step = self.place
        action = {"type": "calculate", "query": f"{step}+{step}" if self.number % 2 else f"{self.number}+{step}"}
        body = {"action": action, "context": {"conversation_id": conversation, "step_number": step}}
        headers = shown if self.key is None else {**shown, "Idempotency-Key": self.key}
        return message(f"/agents/{agent_id}/verify", body, headers)


class StepRace:
    """Waves of attempts for one step of each conversation after another, from every client at once."""

    def __init__(self, places: ServerUrls, owner_key: str, conversations: int) -> None:
        self.places = places
        self._shown = {"X-API-Key": owner_key}
        self.agents = [self._registered() for _ in range(conversations)]
        self.won: dict[StepKey, list[tuple[str | None, str]]] = {}
        """Committed answers of each step, as often as they were received, with their key."""
        self.told: dict[str, str] = {}
        self.refused: Counter[str] = Counter()

    def _registered(self) -> str:
        body = {"name": unique_name(), "principal_id": "p"}
        [answer] = send_concurrently(self.places, [message("/agents/register", body, self._shown)], 1)
        assert answer is not None
        agent_id: str = answer.json["agent_id"]
        return agent_id

    @property
    def tries(self) -> int:
        return self.refused.total() + sum(map(len, self.won.values()))

    def wave(self, ask: Ask, step: int, tries: int, *, keyed: bool = False) -> None:
        """Send this many attempts for this step of every conversation, in random order."""
        places = [StepKey(agent_id, f"conversation of {agent_id}", step) for agent_id in self.agents]
        asked = [StepAttempt(place, number, keyed) for place in places for number in range(tries)]
        random.Random(step).shuffle(asked)
        heard = ask(self.places, [one.message(self._shown) for one in asked])
        for one, answer in zip(asked, heard, strict=True):
            assert answer is not None
            self._hear(one, answer.json)

    def _hear(self, one: StepAttempt, answer: dict[str, Any]) -> None:
        if answer["decision"] in COMMITTED:
            self.won.setdefault(one.place, []).append((one.key, answer["action_id"]))
            self.told[answer["action_id"]] = answer["decision"]
            return
        code = answer["error"]["code"]
        assert code == REPLAY or (one.key is not None and code == KEY_IN_USE), answer
        self.refused[code] += 1

    def require_one_winner(self, steps: int) -> None:
        """Require that each step was granted to one attempt, or only to those with the same key."""
        assert len(self.won) == len(self.agents) * steps
        for place, wins in self.won.items():
            assert len({action_id for _key, action_id in wins}) == 1, place
            assert len(wins) == 1 or None not in {key for key, _action_id in wins}, place


def avoid_end_of_hour(seconds: float = 60) -> None:
    """Wait for the next hour if this one ends soon: hourly limits start anew with it."""
    left = 3600 - time.time() % 3600
    if left < seconds:
        time.sleep(left)
