"""A decision that conflicts with another commit is made again on a new snapshot, a limited number of times."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from qwed.domain.budget import NO_COST
from qwed.domain.change_parts import Conflict
from qwed.domain.snapshot import SnapshotKeys
from qwed.futures import Future, completed
from qwed.gate import Gate, GateError
from qwed.kernel.a2a.message import MessageVerdict
from qwed.kernel.bootstrap import close_services, open_services
from qwed.kernel.pipeline import MAX_ATTEMPTS
from qwed.model import ErrorCode
from qwed.settings import Settings
from tests.spec.requests import claims_of
from tests.support.kernel_messages import FINE, MessageSender

SUM = {"type": "calculate", "query": "2+2"}
MAIL = {"type": "send_email", "parameters": {"subject": "hello"}}
DOWN, REPLAY = "QWED-SYS-002", "QWED-AGENT-LOOP-002"


class ConflictingStore:
    """A real store whose first commits return the given conflicts, or come after something else has happened."""

    def __init__(self, real: Any, *outcomes: Conflict | Callable[[], Any]) -> None:
        self._real = real
        self._outcomes = list(outcomes)
        self.loaded: list[SnapshotKeys] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def load(self, keys: SnapshotKeys) -> Any:
        """Load at once or later, as a shared store does."""
        self.loaded.append(keys)
        snapshot = self._real.load(keys)
        return completed(snapshot) if len(self.loaded) % 2 else snapshot

    def commit(self, write_set: Any) -> Future[Any]:
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, Conflict):
            return completed(outcome)
        if outcome is not None:
            outcome()
        return self._real.commit(write_set)  # type: ignore[no-any-return]


class ConflictSetup:
    """A gate whose store can be made to conflict."""

    def __init__(self, directory: Path, **more: Any) -> None:
        opened = open_services(Settings(data_dir=directory, **more), in_memory=True)
        self.services = opened.services
        self.gate, self.other = Gate(opened), Gate(opened)
        self.agent_id = str(self.gate.register_agent(name="a", principal_id="p", trust_level=3)["agent_id"])

    def with_outcomes(self, *outcomes: Conflict | Callable[[], Any]) -> ConflictingStore:
        """Let the next commits return these outcomes, or come after these calls."""
        store: Any = ConflictingStore(self.services.store, *outcomes)
        self.gate.services = replace(self.services, store=store)
        return store  # type: ignore[no-any-return]

    def ask(self, step: int = 1, *, action: Any = SUM, gate: Gate | None = None, **more: Any) -> Any:
        return (gate or self.gate).verify_action(
            self.agent_id, action, {"conversation_id": "c", "step_number": step}, **more
        )

    def require_nothing_reserved(self, key: str = "k") -> None:
        name = self.services.vault.fingerprint
        keys = SnapshotKeys(self.agent_id, conversation_id=name("c"), idempotency_key=name(key))
        snapshot = self.services.store.load(keys)
        assert not isinstance(snapshot, Future)
        assert (snapshot.reserved, snapshot.reserved_steps, snapshot.key_in_flight) == (NO_COST, frozenset(), False)


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[ConflictSetup]:
    created = ConflictSetup(tmp_path, max_open_approvals=1)
    yield created
    close_services(created.services)


@pytest.mark.parametrize("times", [1, 4, MAX_ATTEMPTS - 1])
def test_a_request_is_decided_after_the_conflicts_end(setup: ConflictSetup, times: int) -> None:
    store = setup.with_outcomes(*[Conflict.STALE] * times)
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED"
    assert len(store.loaded) == times + 1
    assert len(setup.gate.get_agent_activity(setup.agent_id, decision="APPROVED")) == 1
    setup.require_nothing_reserved()
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED", "the stored answer"


def test_a_request_that_always_conflicts_is_refused_with_retry_after(setup: ConflictSetup) -> None:
    store = setup.with_outcomes(*[Conflict.STALE] * MAX_ATTEMPTS)
    answer = setup.ask(idempotency_key="k")
    assert (answer["decision"], answer["error"]["code"], answer["error"]["retry_after"]) == ("DENIED", DOWN, 1)
    assert len(store.loaded) == MAX_ATTEMPTS
    setup.require_nothing_reserved()
    assert setup.ask(idempotency_key="k")["decision"] == "APPROVED"


# What happens while a decision is made


def test_a_step_that_is_taken_meanwhile_is_a_replay(setup: ConflictSetup) -> None:
    setup.with_outcomes(lambda: setup.ask(2, gate=setup.other))
    answer = setup.ask(1)
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", REPLAY)
    assert setup.gate.get_agent_activity(setup.agent_id)[0]["activity_id"] == answer["action_id"]
    setup.require_nothing_reserved()


def test_an_agent_that_is_changed_meanwhile_is_decided_on_as_it_is_now(setup: ConflictSetup) -> None:
    setup.with_outcomes(lambda: setup.other.reduce_trust(setup.agent_id, 0))
    assert setup.ask()["decision"] == "PENDING"
    setup.require_nothing_reserved()


def test_an_agent_that_is_suspended_meanwhile_is_refused(setup: ConflictSetup) -> None:
    setup.with_outcomes(lambda: setup.other.suspend_agent(setup.agent_id, "now"))
    answer = setup.ask()
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", ErrorCode.AGENT_SUSPENDED.code)
    setup.require_nothing_reserved()


def test_the_last_approval_that_is_requested_meanwhile_leaves_none(setup: ConflictSetup) -> None:
    setup.gate.reduce_trust(setup.agent_id, 1)
    context = {"conversation_id": "other", "step_number": 1}
    setup.with_outcomes(lambda: setup.other.verify_action(setup.agent_id, MAIL, context))
    answer = setup.ask(action=MAIL)
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", ErrorCode.APPROVALS_FULL.code)
    setup.require_nothing_reserved()


def test_a_lease_that_is_over_is_the_answer_and_is_kept(setup: ConflictSetup) -> None:
    setup.with_outcomes(Conflict.LEASE_EXPIRED)
    answer = setup.ask()
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", ErrorCode.LEASE_EXPIRED.code)
    [activity] = setup.gate.get_agent_activity(setup.agent_id)
    assert activity["activity_id"] == answer["action_id"]
    setup.require_nothing_reserved()


def test_a_chain_that_has_grown_meanwhile_is_continued_from_its_new_end(setup: ConflictSetup) -> None:
    first: list[Any] = []
    setup.with_outcomes(
        lambda: first.append(setup.ask(1, gate=setup.other, options={"chain_id": "ch"})),
        *[Conflict.STALE] * (MAX_ATTEMPTS - 2),
    )
    answer = setup.ask(2, options={"chain_id": "ch"})
    assert answer["decision"] == "APPROVED"
    before, after = (claims_of(one["attestation"]) for one in (*first, answer))
    assert [claims["qwed"]["chain_index"] for claims in (before, after)] == [0, 1]
    assert after["qwed"]["previous_attestation"] == before["jti"]


def test_a_chain_that_grows_all_the_time_is_retried_and_refused(setup: ConflictSetup) -> None:
    store = setup.with_outcomes(*[Conflict.STALE] * MAX_ATTEMPTS)
    answer = setup.ask(options={"chain_id": "ch"})
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", DOWN)
    assert len(store.loaded) == MAX_ATTEMPTS
    setup.require_nothing_reserved()


def test_a_change_that_is_refused_late_is_refused(setup: ConflictSetup) -> None:
    setup.with_outcomes(Conflict.STALE)
    with pytest.raises(GateError, match="changed by another request"):
        setup.gate.rotate_token(setup.agent_id)


def test_a_decision_loads_everything_it_reads_at_once(setup: ConflictSetup) -> None:
    store = setup.with_outcomes()
    setup.ask(idempotency_key="k", options={"chain_id": "ch"})
    name = setup.services.vault.fingerprint
    [keys] = store.loaded
    assert with_fields(keys, now=0.0) == SnapshotKeys(
        setup.agent_id, conversation_id=name("c"), idempotency_key=name("k"), chain_id=name("ch")
    )


@pytest.mark.parametrize("context", [None, [], {}, {"conversation_id": 7}, {"conversation_id": None}, "c"], ids=str)
def test_an_invalid_context_is_refused(setup: ConflictSetup, context: Any) -> None:
    setup.with_outcomes()
    answer = setup.gate.verify_action(setup.agent_id, SUM, context)
    assert answer["decision"] == "DENIED"


def test_a_message_is_judged_once_however_often_it_is_retried(setup: ConflictSetup) -> None:
    setup.with_outcomes(Conflict.STALE, Conflict.STALE)
    judged: list[MessageVerdict] = []

    def judge() -> MessageVerdict:
        judged.append(FINE)
        return FINE

    post = MessageSender(setup.gate, setup.gate.services)
    result = post.send(setup.agent_id, "bob", judge=judge, conversation_id="c")
    assert (result.verdict, judged) == (FINE, [FINE])
    setup.require_nothing_reserved()
