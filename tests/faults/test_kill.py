"""P1-P3 across a cut of power: the process ends between two instructions, at every stage of the walk.

Whatever the callers were told before is kept, nothing is charged that is not in the log, no step is used twice, and
what was in flight may be asked again at once. `make drill` does the same fifty times for each place.
"""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.gate import Gate
from qwed.kernel.pipeline import ADMISSION, JUDGEMENT
from tests.faults.crashing_server import AFTER_COMMIT, BEFORE_COMMIT
from tests.support.books import COMMITTED, Books
from tests.support.server import Server
from tests.support.wire import Heard, asked_at_once, message

LAUNCHER = Path(__file__).with_name("crashing_server.py")
PLACES = [*(stage.__name__ for stage in ADMISSION + JUDGEMENT), "settle", "answer", BEFORE_COMMIT, AFTER_COMMIT]
CALLERS, CALLS = 6, 72
CENT = 10_000


class Asked:
    """What one caller asked under one idempotency key, and what it heard."""

    def __init__(self, number: int, agent_id: str, round_: int) -> None:
        self.agent_id = agent_id
        caller, call = number % CALLERS, number // CALLERS
        self.key = f"{round_}-{number}"
        # Two callers share a conversation, so that steps race too; every third asks for what a person must approve.
        self.action: dict[str, Any] = {"type": "calculate", "query": f"{number}+{round_}"}
        if call % 3 == 2:
            self.action = {"type": "send_email", "target": "someone@example.com", "parameters": {"n": number}}
        self.context = {"conversation_id": f"{round_}-{caller // 2}", "step_number": call + 1}
        self.heard: dict[str, Any] | None = None

    def message(self, owner_key: str) -> bytes:
        headers = {"X-API-Key": owner_key, "Idempotency-Key": self.key}
        body = {"action": self.action, "context": self.context}
        return message(f"/agents/{self.agent_id}/verify", body, headers)

    def again(self, gate: Gate) -> Any:
        return gate.verify_action(self.agent_id, self.action, self.context, idempotency_key=self.key)


class Story:
    """One data directory that lives through many ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with qwed.open(directory) as gate:
            self.agent_id: str = gate.register_agent(name="survivor", principal_id="p")["agent_id"]
            assert gate.owner_key is not None
            self.owner_key: str = gate.owner_key
        self.told: dict[str, str] = {}

    def end(self, place: str, times: int, round_: int) -> list[Asked]:
        """Serve under load until the process ends itself at the place."""
        command = (sys.executable, str(LAUNCHER), "--place", place, "--times", str(times))
        server = Server(self.directory, command)
        asked = [Asked(number, self.agent_id, round_) for number in range(CALLS)]
        heard = asked_at_once(server.base_url, [one.message(self.owner_key) for one in asked], CALLERS)
        assert server.wait() == -signal.SIGKILL
        for one, answer in zip(asked, heard, strict=True):
            self._hear(one, answer)
        return asked

    def _hear(self, one: Asked, answer: Heard | None) -> None:
        if answer is None:
            return
        one.heard = answer.json
        if answer.json["decision"] in COMMITTED:
            self.told[answer.json["action_id"]] = answer.json["decision"]

    def require_kept(self) -> Books:
        """Everything told is in the log under the same id, and the books are one story."""
        books = Books(self.directory)
        books.require_one_story()
        kept = {activity.activity_id: activity.decision for activity in books.activities}
        assert self.told == {action_id: kept.get(action_id) for action_id in self.told}
        return books


def _retry_everything(story: Story, asked: list[Asked], before: Books) -> None:
    """A client that got no answer sends the same request again: decided once, charged once."""
    done = {(activity.conversation_id, activity.step_number) for activity in before.committed()}
    with qwed.open(story.directory) as gate:
        for one in asked:
            answer = one.again(gate)
            if one.heard is not None and one.heard["decision"] in COMMITTED:
                assert (answer.decision, answer.action_id) == (one.heard["decision"], one.heard["action_id"])
            if answer.decision in COMMITTED:
                story.told[answer.action_id] = answer.decision
            place = (one.context["conversation_id"], one.context["step_number"])
            if place not in done and one.heard is None:
                _require_free(answer)


def _require_free(answer: Any) -> None:
    """The step was in flight or never asked: nothing may hold it now, though a later one may have passed it."""
    if answer.decision not in COMMITTED:
        assert answer.error["code"] == "QWED-AGENT-LOOP-002"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "data")


def _live_through(story: Story, place: str, ends: int) -> None:
    for round_ in range(ends):
        asked = story.end(place, times=1 + (round_ * 5 + 3) % 12, round_=round_)
        books = story.require_kept()
        _retry_everything(story, asked, books)
        after = story.require_kept()
        assert len(after.activities) >= len(books.activities)


@pytest.mark.parametrize("place", PLACES)
def test_nothing_told_is_lost_and_nothing_is_charged_twice_when_the_process_ends_at(story: Story, place: str) -> None:
    _live_through(story, place, ends=2)


@pytest.mark.drill
@pytest.mark.parametrize("place", PLACES)
def test_fifty_ends_in_a_row_leave_one_story_when_the_process_ends_at(story: Story, place: str) -> None:
    _live_through(story, place, ends=50)


@pytest.mark.parametrize("place", ["detect_loops", "decide", "settle", BEFORE_COMMIT])
def test_a_step_in_flight_when_the_process_ended_is_free_at_the_next_start(story: Story, place: str) -> None:
    asked = story.end(place, times=1, round_=0)
    assert [one.heard for one in asked] == [None] * CALLS
    with qwed.open(story.directory) as gate:
        first = asked[0]
        assert gate.verify_action(story.agent_id, first.action, first.context).decision == "APPROVED"
        cost = gate.get_agent_budget(story.agent_id)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (0.01, 0)


def test_what_became_durable_but_was_never_told_is_told_to_the_retry_and_charged_once(story: Story) -> None:
    asked = story.end(AFTER_COMMIT, times=1, round_=0)
    assert [one.heard for one in asked] == [None] * CALLS
    committed = Books(story.directory).committed()
    assert committed
    with qwed.open(story.directory) as gate:
        answers = [one.again(gate) for one in asked[:CALLERS]]
        told = {answer.action_id for answer in answers if answer.decision in COMMITTED}
        assert {activity.activity_id for activity in committed} <= told
    books = story.require_kept()
    assert books.usage[story.agent_id]["cost_day"] == CENT * sum(a.decision == "APPROVED" for a in books.committed())
