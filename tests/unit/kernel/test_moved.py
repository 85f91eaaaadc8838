"""A decision whose ground has moved is walked through again from the start: freshened, and not for ever."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.messages.message import Message, Ruled, Sender
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.store.parts import Conflict
from qwed.store.protocol import MOVED, Wanted
from qwed.waiting import done
from qwed.words import ErrorCode
from tests.support.post import FINE, Post

SUM = {"type": "calculate", "query": "2+2"}
DOWN, REPLAY = "QWED-SYS-002", "QWED-AGENT-LOOP-002"


class Moving:
    """A real store before which somebody else is first, as often as the test says; it may tell why, or not."""

    def __init__(self, real: Any, *outcomes: Any) -> None:
        self._real = real
        self._outcomes = list(outcomes)
        self.wanted: list[Wanted] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def freshen(self, wanted: Wanted) -> Any:
        self.wanted.append(wanted)
        return done(None) if len(self.wanted) % 2 else None

    def settle(self, settlement: Any) -> Any:
        return done(self._outcomes.pop(0)) if self._outcomes else self._real.settle(settlement)

    def change(self, change: Any) -> Any:
        return done(self._outcomes.pop(0)) if self._outcomes else self._real.change(change)


class Desk:
    """A gate whose store may be put behind somebody else."""

    def __init__(self, directory: Path) -> None:
        opened = open_services(Settings(data_dir=directory), in_memory=True)
        self.services = opened.services
        self.gate = Gate(opened)
        self.agent_id = str(self.gate.register_agent(name="a", principal_id="p", trust_level=3)["agent_id"])

    def moved(self, *outcomes: Any) -> Moving:
        """From now on the first settlements and changes come to these."""
        store: Any = Moving(self.services.store, *outcomes)
        self.gate.services = replace(self.services, store=store)
        return store  # type: ignore[no-any-return]

    def ask(self, step: int = 1, **more: Any) -> Any:
        return self.gate.verify_action(self.agent_id, SUM, {"conversation_id": "c", "step_number": step}, **more)

    def require_nothing_held(self) -> None:
        store: Any = self.services.store
        assert (store._live._reservations, store._keys_in_flight) == ({}, {})
        assert store._live.usage(self.agent_id).held == (0, 0, 0, 0, 0)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    close_services(found.services)


@pytest.mark.parametrize("times", [1, 4])
def test_it_is_decided_once_the_ground_holds(desk: Desk, times: int) -> None:
    store = desk.moved(*[MOVED] * times)
    assert desk.ask(idempotency_key="k")["decision"] == "APPROVED"
    assert len(store.wanted) == times + 1
    assert len(desk.gate.get_agent_activity(desk.agent_id, decision="APPROVED")) == 1
    desk.require_nothing_held()
    assert desk.ask(idempotency_key="k")["decision"] == "APPROVED", "the stored answer"


def test_whoever_is_always_late_is_asked_to_come_back(desk: Desk) -> None:
    desk.moved(*[MOVED] * 5)
    answer = desk.ask(idempotency_key="k")
    assert (answer["decision"], answer["error"]["code"], answer["error"]["retry_after"]) == ("DENIED", DOWN, 1)
    desk.require_nothing_held()
    assert desk.ask(idempotency_key="k")["decision"] == "APPROVED"


LATE: dict[str, tuple[ErrorCode, str]] = {
    "the step is taken": (ErrorCode.REPLAY, REPLAY),
    "the agent is another one": (ErrorCode.AGENT_CHANGED, ErrorCode.AGENT_CHANGED.code),
    "the lease is over": (ErrorCode.LEASE_EXPIRED, ErrorCode.LEASE_EXPIRED.code),
    "too many wait": (ErrorCode.APPROVALS_FULL, ErrorCode.APPROVALS_FULL.code),
}


@pytest.mark.parametrize("late", LATE)
def test_a_refusal_that_comes_late_is_the_answer_and_is_kept(desk: Desk, late: str) -> None:
    outcome, code = LATE[late]
    desk.moved(outcome)
    answer = desk.ask()
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", code)
    [kept] = desk.gate.get_agent_activity(desk.agent_id)
    assert kept["activity_id"] == answer["action_id"]
    desk.require_nothing_held()


def test_a_chain_that_has_grown_meanwhile_is_gone_on_from_its_new_end(desk: Desk) -> None:
    desk.moved(*[ErrorCode.CONFLICT] * 15)
    answer = desk.ask(options={"chain_id": "ch"})
    assert answer["decision"] == "APPROVED"


def test_a_chain_that_grows_all_the_time_is_looked_at_anew_and_given_up(desk: Desk) -> None:
    store = desk.moved(*[ErrorCode.CONFLICT] * 16 * 5)
    answer = desk.ask(options={"chain_id": "ch"})
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", DOWN)
    assert len(store.wanted) == 5
    desk.require_nothing_held()


def test_a_change_that_is_refused_late_is_refused(desk: Desk) -> None:
    desk.moved(Conflict.STALE)
    with pytest.raises(GateError, match="changed by someone else"):
        desk.gate.rotate_token(desk.agent_id)


def test_what_a_decision_looks_at_is_said_before_it_looks(desk: Desk) -> None:
    store = desk.moved()
    desk.ask(idempotency_key="k")
    name = desk.services.vault.fingerprint
    assert store.wanted == [
        Wanted(
            agent_id=desk.agent_id,
            conversations=((desk.agent_id, name("c")),),
            memory=(desk.agent_id, name("k")),
            spends=True,
        )
    ]


@pytest.mark.parametrize("context", [None, [], {}, {"conversation_id": 7}, {"conversation_id": None}, "c"], ids=str)
def test_a_context_that_is_none_is_refused_as_ever(desk: Desk, context: Any) -> None:
    desk.moved()
    answer = desk.gate.verify_action(desk.agent_id, SUM, context)
    assert answer["decision"] == "DENIED"


def test_a_message_is_judged_once_however_often_it_is_walked_through(desk: Desk) -> None:
    desk.moved(MOVED, MOVED)
    asked: list[str] = []

    async def judge(message: Message, _sender: Sender) -> Ruled:
        asked.append(message.receiver)
        return FINE

    post = Post(desk.gate, desk.gate.services)
    carried = post.send(desk.agent_id, "bob", judge=judge, conversation_id="c")
    assert (carried.ruled, asked) == (FINE, ["bob"])
    desk.require_nothing_held()
