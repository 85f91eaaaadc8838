"""P4: whatever fails, and however often, the answer is a refusal, the step is free again and nothing is charged.

The parts are real; one call of one of them raises.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.write_set import Committed
from qwed.futures import Future, completed, notify
from qwed.gate import Gate
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.kernel.services import Services
from qwed.model import Status, Verdict
from qwed.model.clock import Clock
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.fault_injection import FailingProxy, ReplacingProxy
from tests.support.manual_clock import ManualClock
from tests.support.pipeline_stages import DECISION

SUM = {"type": "calculate", "query": "2+2"}
EMAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}}
WORKED = {"type": "calculate", "query": "x+x = 2*x"}
PLACE = {"conversation_id": "conv", "step_number": 1}

FAILURES = [
    RuntimeError("surprise"),
    StoreError("could not write"),
    OSError(28, "no space left on device"),
    MemoryError(),
    KeyError("missing"),
    RecursionError("too deep"),
    TimeoutError("too late"),
    sqlite3.OperationalError("disk I/O error"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    AttributeError("nothing there"),
    ZeroDivisionError("division by zero"),
    AssertionError("never"),
]
WAYS = [pytest.param(failure, id=type(failure).__name__) for failure in FAILURES]


class FailureFixture:
    """Real services on one store, an agent, and a way to break a part for one request."""

    def __init__(self, opened: OpenedServices, manual_clock: ManualClock) -> None:
        self.opened = opened
        self.services: Services = opened.services
        self.store: Any = opened.services.store
        self.manual_clock = manual_clock
        self.gate = Gate(opened)
        self.agent_id: str = self.gate.register_agent(
            name="failure_fixture", principal_id="p", type="trusted", budget={"max_daily_cost_usd": 10}
        )["agent_id"]

    def ask(self, services: Services | None = None, action: Any = SUM, place: Any = PLACE, **more: Any) -> Any:
        gate = self.gate if services is None else Gate(self.opened._replace(services=services))
        return gate.verify_action(self.agent_id, action, place, **more)

    def broken(self, **parts: Any) -> Services:
        return replace(self.services, **parts)

    def require_untouched(self, requests: int = 1) -> None:
        """Require no cost, no tokens, and nothing pending or reserved; the request itself may be counted once."""
        spent = self.store.usage_counters(self.agent_id, self.manual_clock.now)
        assert (spent.cost_day, spent.tokens_day, spent.high_risk_day) == (0, 0, 0)
        assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk) == (0, 0, 0)
        assert spent.requests_hour <= requests
        self.require_nothing_held()

    def require_nothing_held(self) -> None:
        assert len(self.store.reservations) == 0
        full = {"usd": 10 - self.gate.get_agent_budget(self.agent_id)["cost"]["current_daily_usd"]}
        whole = self.gate.verify_action(
            self.agent_id, {**SUM, "cost": full}, {"conversation_id": "all of it", "step_number": 99}
        )
        # A step past the limit commits nothing, and is refused before any budget check.
        assert whole.error["code"] == "QWED-AGENT-LOOP-001"

    def require_free(self, action: Any = SUM, cost: int = 10_000) -> None:
        """Require that the refused step is decided as if nothing had happened."""
        assert self.ask(action=action).decision == "APPROVED"
        assert self.store.usage_counters(self.agent_id, self.manual_clock.now).cost_day == cost
        self.require_nothing_held()

    def require_refused(self, answer: Any) -> None:
        assert answer.decision == "DENIED"
        assert answer.error["code"] in ("QWED-AGENT-005", "QWED-SYS-002")
        assert answer.attestation is None
        assert answer.verified_query is None


both = pytest.mark.parametrize("failure_fixture", ["memory", "file"], indirect=True)
"""For what threads and disks can affect; the other tests use the store in memory."""


@pytest.fixture
def failure_fixture(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[FailureFixture]:
    manual_clock = ManualClock()
    settings = Settings(data_dir=memory_path / "data")
    opened = open_services(
        settings, in_memory=getattr(request, "param", "memory") == "memory", clock=manual_clock.clock()
    )
    yield FailureFixture(opened, manual_clock)
    close_services(opened.services)


def _raises_at(stage: str, failure: BaseException) -> Callable[[str], None]:
    def hook(name: str) -> None:
        if name == stage:
            raise failure

    return hook


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("stage", DECISION)
def test_a_surprise_at_a_stage_is_a_refusal_that_frees_the_step(
    failure_fixture: FailureFixture, stage: str, failure: BaseException
) -> None:
    answer = failure_fixture.ask(failure_fixture.broken(at_stage=_raises_at(stage, failure)))
    failure_fixture.require_refused(answer)
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_a_surprise_after_the_commit_is_a_refusal_charged_once_that_a_retry_turns_into_the_answer(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    answer = failure_fixture.ask(failure_fixture.broken(at_stage=_raises_at("answer", failure)), idempotency_key="k")
    failure_fixture.require_refused(answer)
    again = failure_fixture.ask(idempotency_key="k")
    assert again.decision == "APPROVED"
    assert failure_fixture.gate.get_action(failure_fixture.agent_id, again.action_id).decision == "APPROVED"
    spent = failure_fixture.store.usage_counters(failure_fixture.agent_id, failure_fixture.manual_clock.now)
    assert (spent.cost_day, spent.requests_hour) == (10_000, 1)
    failure_fixture.require_nothing_held()


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("stage", ["reserve", "decide", "commit"])
def test_a_surprise_on_the_way_of_a_call_of_high_risk_is_a_refusal_too(
    failure_fixture: FailureFixture, stage: str, failure: BaseException
) -> None:
    delete = {"type": "file_delete", "target": "notes.txt"}
    failure_fixture.require_refused(
        failure_fixture.ask(failure_fixture.broken(at_stage=_raises_at(stage, failure)), action=delete)
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free(delete)


STORE_CALLS = ["load", "reserve", "commit"]


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("method", STORE_CALLS)
def test_a_store_that_fails_in_one_call_refuses_and_frees_the_step(
    failure_fixture: FailureFixture, method: str, failure: BaseException
) -> None:
    store = FailingProxy(failure_fixture.store, method, failure)
    answer = failure_fixture.ask(failure_fixture.broken(store=store), idempotency_key="k")
    assert store.calls >= 1
    failure_fixture.require_refused(answer)
    failure_fixture.require_untouched()
    failure_fixture.require_free()
    assert failure_fixture.ask(place={**PLACE, "step_number": 2}, idempotency_key="k").decision == "APPROVED"


@both
@pytest.mark.parametrize("method", ["load", "reserve", "commit"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("once", [True, False])
def test_a_store_that_fails_at_the_nth_call_never_approves_what_it_did_not_keep(
    failure_fixture: FailureFixture, method: str, nth: int, once: bool
) -> None:
    services = failure_fixture.broken(
        store=FailingProxy(failure_fixture.store, method, OSError(5, "i/o error"), nth, once=once)
    )
    answers = [
        failure_fixture.ask(services, {"type": "calculate", "query": f"{step}+1"}, {**PLACE, "step_number": step})
        for step in range(1, 6)
    ]
    logged = {
        entry.action_id: entry.decision for entry in failure_fixture.gate.get_agent_activity(failure_fixture.agent_id)
    }
    for answer in answers:
        if answer.decision == "APPROVED":
            assert logged[answer.action_id] == "APPROVED"
        else:
            failure_fixture.require_refused(answer)
    approved = [answer for answer in answers if answer.decision == "APPROVED"]
    assert failure_fixture.store.usage_counters(
        failure_fixture.agent_id, failure_fixture.manual_clock.now
    ).cost_day == 10_000 * len(approved)
    failure_fixture.require_nothing_held()


@pytest.mark.parametrize("failure", WAYS)
def test_a_failure_while_freeing_is_a_refusal_and_not_an_exception(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    store = FailingProxy(failure_fixture.store, "release", failure)
    answer = failure_fixture.ask(
        failure_fixture.broken(store=store, at_stage=_raises_at("commit", RuntimeError("first")))
    )
    failure_fixture.require_refused(answer)
    # A reservation that could not be released ends with its lease.
    failure_fixture.manual_clock.advance(31)
    assert failure_fixture.ask(place={**PLACE, "conversation_id": "another"}).decision == "APPROVED"
    failure_fixture.require_free(cost=20_000)


@pytest.mark.parametrize("failure", WAYS)
def test_a_key_that_cannot_be_released_is_a_refusal_and_the_retry_gets_the_kept_answer(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    store = FailingProxy(failure_fixture.store, "release", failure)
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(store=store), idempotency_key="k"))
    for seconds in (0, 31):
        failure_fixture.manual_clock.advance(seconds)
        assert failure_fixture.ask(idempotency_key="k").decision == "APPROVED"
    assert (
        failure_fixture.store.usage_counters(failure_fixture.agent_id, failure_fixture.manual_clock.now).cost_day
        == 10_000
    )


@pytest.mark.parametrize("failure", WAYS)
def test_an_answer_that_cannot_be_recalled_is_a_refusal(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    first = failure_fixture.ask(idempotency_key="k")
    store = FailingProxy(failure_fixture.store, "find_activity", failure)
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(store=store), idempotency_key="k"))
    assert failure_fixture.ask(idempotency_key="k").action_id == first.action_id


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("method", ["ask", "known"])
def test_an_engine_that_raises_is_a_refusal_that_frees_the_step(
    failure_fixture: FailureFixture, method: str, failure: BaseException
) -> None:
    failure_fixture.require_refused(
        failure_fixture.ask(
            failure_fixture.broken(engines=FailingProxy(failure_fixture.services.engines, method, failure))
        )
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_an_engine_whose_ticket_fails_is_a_refusal_that_frees_the_step(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    failure_fixture.require_refused(
        failure_fixture.ask(
            failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=_failed(failure)))
        )
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("nonsense", [None, "VERIFIED", True, {"status": "VERIFIED"}, 7, Status.VERIFIED], ids=repr)
def test_an_engine_that_answers_with_no_verdict_is_a_refusal(failure_fixture: FailureFixture, nonsense: Any) -> None:
    ticket: Future[Any] = completed(nonsense)
    failure_fixture.require_refused(
        failure_fixture.ask(
            failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=ticket))
        )
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("status", [status for status in Status if status not in (Status.VERIFIED, Status.SIMPLIFIED)])
def test_an_engine_that_did_not_verify_never_approves(failure_fixture: FailureFixture, status: Status) -> None:
    verdict = Verdict(status=status, engine="math")
    answer = failure_fixture.ask(
        failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=verdict))
    )
    assert answer.decision in ("DENIED", "PENDING", "CORRECTED")
    if status in (Status.FAILED, Status.BLOCKED, Status.ERROR):
        assert answer.decision == "DENIED"


@pytest.mark.parametrize("failure", WAYS)
def test_what_cannot_be_remembered_of_a_verdict_is_a_refusal(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    verdict: Future[Verdict] = completed(Verdict(status=Status.VERIFIED, engine="math"))
    engines = FailingProxy(ReplacingProxy(failure_fixture.services.engines, ask=verdict), "learn", failure)
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(engines=engines)))
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_without_a_signature_there_is_no_approval_and_the_retry_gets_one_charged_once(
    failure_fixture: FailureFixture, failure: BaseException
) -> None:
    signer = FailingProxy(failure_fixture.services.signer, "attest", failure)
    options: dict[str, Any] = {"options": {"require_attestation": True}, "idempotency_key": "k"}
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(signer=signer), **options))
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(signer=signer), **options))
    again = failure_fixture.ask(**options)
    assert (again.decision, again.attestation is None) == ("APPROVED", False)
    spent = failure_fixture.store.usage_counters(failure_fixture.agent_id, failure_fixture.manual_clock.now)
    assert (spent.cost_day, spent.requests_hour) == (10_000, 1)


@pytest.mark.parametrize("failure", WAYS)
def test_a_clock_that_stops_in_the_middle_is_a_refusal(failure_fixture: FailureFixture, failure: BaseException) -> None:
    broken = FailingProxy(Clock(now=lambda: failure_fixture.manual_clock.now), "now", failure, nth=2)
    failure_fixture.require_refused(failure_fixture.ask(failure_fixture.broken(clock=broken)))
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -float("inf")], ids=repr)
def test_a_clock_that_tells_no_time_is_a_refusal(failure_fixture: FailureFixture, moment: float) -> None:
    answer = failure_fixture.ask(failure_fixture.broken(clock=Clock(now=lambda: moment)), action=EMAIL)
    assert answer.decision == "DENIED"
    failure_fixture.require_untouched()
    failure_fixture.require_free(EMAIL)


@both
@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("action", [SUM, EMAIL], ids=["approved", "tool"])
def test_a_settlement_that_was_accepted_and_then_failed_is_a_refusal(
    failure_fixture: FailureFixture, action: Any, failure: BaseException
) -> None:
    """No caller gets an approval if the store accepted the commit and then could not write it."""
    failure_fixture.require_refused(
        failure_fixture.ask(
            failure_fixture.broken(store=ReplacingProxy(failure_fixture.store, commit=_failed(failure))), action=action
        )
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free(action)


@both
def test_a_settlement_whose_ticket_never_comes_is_a_refusal(failure_fixture: FailureFixture) -> None:
    never = _NeverFuture()
    failure_fixture.require_refused(
        failure_fixture.ask(failure_fixture.broken(store=ReplacingProxy(failure_fixture.store, commit=never)))
    )
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@both
def test_a_request_that_outlives_its_lease_cannot_commit_and_another_may_take_the_step(
    failure_fixture: FailureFixture,
) -> None:
    heard: list[Any] = []

    def slow(_question: Any) -> Verdict:
        failure_fixture.manual_clock.advance(31)
        heard.append(failure_fixture.ask())
        return Verdict(status=Status.VERIFIED, engine="math")

    late = failure_fixture.ask(
        failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=slow)), action=WORKED
    )
    assert heard[0].decision == "APPROVED"
    failure_fixture.require_refused(late)
    assert late.error["check"] == "step_still_held"
    assert failure_fixture.ask().error["code"] == "QWED-AGENT-LOOP-002"
    assert (
        failure_fixture.store.usage_counters(failure_fixture.agent_id, failure_fixture.manual_clock.now).cost_day
        == 10_000
    )
    failure_fixture.require_nothing_held()


@both
def test_a_request_that_outlives_its_lease_unrivalled_cannot_commit_either(failure_fixture: FailureFixture) -> None:
    def slow(_question: Any) -> Verdict:
        failure_fixture.manual_clock.advance(30)
        return Verdict(status=Status.VERIFIED, engine="math")

    late = failure_fixture.ask(
        failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=slow)), action=WORKED
    )
    failure_fixture.require_refused(late)
    failure_fixture.require_untouched()
    failure_fixture.require_free()


@both
def test_a_request_within_its_lease_keeps_its_step_from_everyone(failure_fixture: FailureFixture) -> None:
    heard: list[Any] = []

    def slow(_question: Any) -> Verdict:
        failure_fixture.manual_clock.advance(29)
        heard.append(failure_fixture.ask())
        return Verdict(status=Status.VERIFIED, engine="math")

    late = failure_fixture.ask(
        failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=slow)), action=WORKED
    )
    assert heard[0].error["code"] == "QWED-AGENT-LOOP-002"
    assert late.decision == "APPROVED"


@both
def test_a_budget_held_by_a_slow_request_is_not_spent_twice(failure_fixture: FailureFixture) -> None:
    heard: list[Any] = []
    dear = {**WORKED, "cost": {"usd": 9.99}}

    def slow(_question: Any) -> Verdict:
        heard.append(
            failure_fixture.ask(action={**SUM, "cost": {"usd": 0.02}}, place={**PLACE, "conversation_id": "other"})
        )
        heard.append(failure_fixture.ask(action=SUM, place={**PLACE, "conversation_id": "other"}))
        return Verdict(status=Status.VERIFIED, engine="math")

    assert (
        failure_fixture.ask(
            failure_fixture.broken(engines=ReplacingProxy(failure_fixture.services.engines, ask=slow)), action=dear
        ).decision
        == "APPROVED"
    )
    assert [answer.decision for answer in heard] == ["BUDGET_EXCEEDED", "APPROVED"]
    assert (
        failure_fixture.store.usage_counters(failure_fixture.agent_id, failure_fixture.manual_clock.now).cost_day
        == 10_000_000
    )


def test_after_the_store_is_closed_nothing_is_approved(memory_path: Path) -> None:
    opened = open_services(Settings(data_dir=memory_path / "data"))
    gate = Gate(opened)
    agent_id = gate.register_agent(name="late", principal_id="p")["agent_id"]
    assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"
    gate.close()
    for step in (2, 3):
        assert gate.verify_action(agent_id, SUM, {**PLACE, "step_number": step}).decision == "DENIED"


def _failed(failure: BaseException) -> Future[Any]:
    ticket: Future[Any] = Future()
    ticket.set_exception(failure)
    notify([ticket])
    return ticket


class _NeverFuture(Future[Committed]):
    """Future that never completes."""

    def wait(self, seconds: float) -> None:
        raise TimeoutError(f"the result did not arrive within {seconds} seconds")
