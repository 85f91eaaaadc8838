"""A decision that conflicts with another commit is retried from the start, a limited number of times."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.futures import completed
from qwed.gate import Gate, GateError
from qwed.kernel.a2a.message import InterceptedMessage, MessageVerdict, Sender
from qwed.kernel.bootstrap import close_services, open_services
from qwed.model import ErrorCode
from qwed.settings import Settings
from qwed.store.change_parts import Conflict
from qwed.store.protocol import STALE_STATE, PrefetchKeys
from tests.support.kernel_messages import FINE, MessageSender

SUM = {"type": "calculate", "query": "2+2"}
DOWN, REPLAY = "QWED-SYS-002", "QWED-AGENT-LOOP-002"


class ConflictingStore:
    """A real store whose first commits and changes return the given conflicts."""

    def __init__(self, real: Any, *outcomes: Any) -> None:
        self._real = real
        self._outcomes = list(outcomes)
        self.prefetched: list[PrefetchKeys] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def prefetch(self, keys: PrefetchKeys) -> Any:
        self.prefetched.append(keys)
        return completed(None) if len(self.prefetched) % 2 else None

    def commit(self, settlement: Any) -> Any:
        return completed(self._outcomes.pop(0)) if self._outcomes else self._real.commit(settlement)

    def change(self, change: Any) -> Any:
        return completed(self._outcomes.pop(0)) if self._outcomes else self._real.change(change)


class ConflictSetup:
    """A gate whose store can be made to conflict."""

    def __init__(self, directory: Path) -> None:
        opened = open_services(Settings(data_dir=directory), in_memory=True)
        self.services = opened.services
        self.gate = Gate(opened)
        self.agent_id = str(self.gate.register_agent(name="a", principal_id="p", trust_level=3)["agent_id"])

    def with_outcomes(self, *outcomes: Any) -> ConflictingStore:
        """Let the next commits and changes return these outcomes."""
        store: Any = ConflictingStore(self.services.store, *outcomes)
        self.gate.services = replace(self.services, store=store)
        return store  # type: ignore[no-any-return]

    def ask(self, step: int = 1, **more: Any) -> Any:
        return self.gate.verify_action(self.agent_id, SUM, {"conversation_id": "c", "step_number": step}, **more)

    def require_nothing_reserved(self) -> None:
        store: Any = self.services.store
        assert (store._state._reservations, store._keys_in_flight) == ({}, {})
        assert store._state.usage(self.agent_id).reserved == (0, 0, 0, 0, 0)


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[ConflictSetup]:
    created = ConflictSetup(tmp_path)
    yield created
    close_services(created.services)


@pytest.mark.parametrize("times", [1, 4])
def test_a_request_is_decided_after_the_conflicts_end(setup: ConflictSetup, times: int) -> None:
    store = setup.with_outcomes(*[STALE_STATE] * times)
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED"
    assert len(store.prefetched) == times + 1
    assert len(setup.gate.get_agent_activity(setup.agent_id, decision="APPROVED")) == 1
    setup.require_nothing_reserved()
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED", "the stored answer"


def test_a_request_that_always_conflicts_is_refused_with_retry_after(setup: ConflictSetup) -> None:
    setup.with_outcomes(*[STALE_STATE] * 5)
    answer = setup.ask(idempotency_key="k")
    assert (answer["decision"], answer["error"]["code"], answer["error"]["retry_after"]) == ("DENIED", DOWN, 1)
    setup.require_nothing_reserved()
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED"


LATE: dict[str, tuple[ErrorCode, str]] = {
    "the step is taken": (ErrorCode.REPLAY, REPLAY),
    "the agent is another one": (ErrorCode.AGENT_CHANGED, ErrorCode.AGENT_CHANGED.code),
    "the lease is over": (ErrorCode.LEASE_EXPIRED, ErrorCode.LEASE_EXPIRED.code),
    "too many wait": (ErrorCode.APPROVALS_FULL, ErrorCode.APPROVALS_FULL.code),
}


@pytest.mark.parametrize("late", LATE)
def test_a_refusal_that_comes_late_is_the_answer_and_is_kept(setup: ConflictSetup, late: str) -> None:
    outcome, code = LATE[late]
    setup.with_outcomes(outcome)
    answer = setup.ask()
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", code)
    [activity] = setup.gate.get_agent_activity(setup.agent_id)
    assert activity["activity_id"] == answer["action_id"]
    setup.require_nothing_reserved()


def test_a_chain_that_has_grown_meanwhile_is_continued_from_its_new_end(setup: ConflictSetup) -> None:
    setup.with_outcomes(*[ErrorCode.CONFLICT] * 15)
    answer = setup.ask(options={"chain_id": "ch"})
    assert answer["decision"] == "APPROVED"


def test_a_chain_that_grows_all_the_time_is_retried_and_refused(setup: ConflictSetup) -> None:
    store = setup.with_outcomes(*[ErrorCode.CONFLICT] * 16 * 5)
    answer = setup.ask(options={"chain_id": "ch"})
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", DOWN)
    assert len(store.prefetched) == 5
    setup.require_nothing_reserved()


def test_a_change_that_is_refused_late_is_refused(setup: ConflictSetup) -> None:
    setup.with_outcomes(Conflict.STALE)
    with pytest.raises(GateError, match="changed by another request"):
        setup.gate.rotate_token(setup.agent_id)


def test_a_decision_prefetches_everything_it_reads(setup: ConflictSetup) -> None:
    store = setup.with_outcomes()
    setup.ask(idempotency_key="k")
    name = setup.services.vault.fingerprint
    assert store.prefetched == [
        PrefetchKeys(
            agent_id=setup.agent_id,
            conversations=((setup.agent_id, name("c")),),
            idempotency_key=(setup.agent_id, name("k")),
            needs_usage=True,
        )
    ]


@pytest.mark.parametrize("context", [None, [], {}, {"conversation_id": 7}, {"conversation_id": None}, "c"], ids=str)
def test_an_invalid_context_is_refused(setup: ConflictSetup, context: Any) -> None:
    setup.with_outcomes()
    answer = setup.gate.verify_action(setup.agent_id, SUM, context)
    assert answer["decision"] == "DENIED"


def test_a_message_is_judged_once_however_often_it_is_retried(setup: ConflictSetup) -> None:
    setup.with_outcomes(STALE_STATE, STALE_STATE)
    receivers: list[str] = []

    async def judge(message: InterceptedMessage, _sender: Sender) -> MessageVerdict:
        receivers.append(message.receiver)
        return FINE

    post = MessageSender(setup.gate, setup.gate.services)
    result = post.send(setup.agent_id, "bob", judge=judge, conversation_id="c")
    assert (result.verdict, receivers) == (FINE, ["bob"])
    setup.require_nothing_reserved()
