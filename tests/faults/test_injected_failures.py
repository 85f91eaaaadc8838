"""P4: whatever fails, wherever, however often, the answer is a refusal, the step is free again and nothing is charged.

The parts are real; one call of one of them raises.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.gate import Gate
from qwed.kernel.pipeline import ADMISSION, JUDGEMENT
from qwed.kernel.services import Services
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import Settled, StoreError
from qwed.waiting import Ticket, announce, done
from qwed.words import Status, Verdict
from qwed.words.clock import Clock
from tests.support.clock import HandClock
from tests.support.failing import Failing, Instead

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

STAGES = [*(stage.__name__ for stage in ADMISSION + JUDGEMENT), "settle", "answer"]
"""The stages of every request; `check_high_risk` is only reached by what is risky."""


class Bench:
    """Real services on one store, an agent on them, and the means to break a part for one request."""

    def __init__(self, opened: Opened, hands: HandClock) -> None:
        self.opened = opened
        self.services: Services = opened.services
        self.store: Any = opened.services.store
        self.hands = hands
        self.gate = Gate(opened)
        self.agent_id: str = self.gate.register_agent(
            name="bench", principal_id="p", type="trusted", budget={"max_daily_cost_usd": 10}
        )["agent_id"]

    def ask(self, services: Services | None = None, action: Any = SUM, place: Any = PLACE, **more: Any) -> Any:
        gate = self.gate if services is None else Gate(self.opened._replace(services=services))
        return gate.verify_action(self.agent_id, action, place, **more)

    def broken(self, **parts: Any) -> Services:
        return replace(self.services, **parts)

    def require_untouched(self, requests: int = 1) -> None:
        """No money, no tokens, nothing pending, nothing held; the request itself may have been counted once."""
        spent = self.store.spent(self.agent_id, self.hands.now)
        assert (spent.cost_day, spent.tokens_day, spent.high_risk_day) == (0, 0, 0)
        assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk) == (0, 0, 0)
        assert spent.requests_hour <= requests
        self.require_nothing_held()

    def require_nothing_held(self) -> None:
        assert self.store._live._reservations == {}
        full = {"usd": 10 - self.gate.get_agent_budget(self.agent_id)["cost"]["current_daily_usd"]}
        whole = self.gate.verify_action(
            self.agent_id, {**SUM, "cost": full}, {"conversation_id": "all of it", "step_number": 99}
        )
        # A step past the limit commits nothing, and is refused for its step, before any budget is asked.
        assert whole.error["code"] == "QWED-AGENT-LOOP-001"

    def require_free(self, action: Any = SUM, cost: int = 10_000) -> None:
        """The very step that was refused is decided as if nothing had been."""
        assert self.ask(action=action).decision == "APPROVED"
        assert self.store.spent(self.agent_id, self.hands.now).cost_day == cost
        self.require_nothing_held()

    def require_refused(self, answer: Any) -> None:
        assert answer.decision == "DENIED"
        assert answer.error["code"] in ("QWED-AGENT-005", "QWED-SYS-002")
        assert answer.attestation is None
        assert answer.verified_query is None


both = pytest.mark.parametrize("bench", ["memory", "file"], indirect=True)
"""For what a thread and a disk could change; everything else is asked of the store in memory."""


@pytest.fixture
def bench(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[Bench]:
    hands = HandClock()
    settings = Settings(data_dir=memory_path / "data")
    opened = open_services(settings, in_memory=getattr(request, "param", "memory") == "memory", clock=hands.clock())
    yield Bench(opened, hands)
    close_services(opened.services)


def _raises_at(stage: str, failure: BaseException) -> Callable[[str], None]:
    def hook(name: str) -> None:
        if name == stage:
            raise failure

    return hook


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("stage", [name for name in STAGES if name != "answer"])
def test_a_surprise_at_a_stage_is_a_refusal_that_frees_the_step(
    bench: Bench, stage: str, failure: BaseException
) -> None:
    answer = bench.ask(bench.broken(at_stage=_raises_at(stage, failure)))
    bench.require_refused(answer)
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_a_surprise_after_the_commit_is_a_refusal_charged_once_that_a_retry_turns_into_the_answer(
    bench: Bench, failure: BaseException
) -> None:
    answer = bench.ask(bench.broken(at_stage=_raises_at("answer", failure)), idempotency_key="k")
    bench.require_refused(answer)
    again = bench.ask(idempotency_key="k")
    assert again.decision == "APPROVED"
    assert bench.gate.get_action(bench.agent_id, again.action_id).decision == "APPROVED"
    spent = bench.store.spent(bench.agent_id, bench.hands.now)
    assert (spent.cost_day, spent.requests_hour) == (10_000, 1)
    bench.require_nothing_held()


@pytest.mark.parametrize("failure", WAYS)
def test_a_surprise_at_the_stage_for_high_risk_is_a_refusal_too(bench: Bench, failure: BaseException) -> None:
    delete = {"type": "file_delete", "target": "notes.txt"}
    bench.require_refused(bench.ask(bench.broken(at_stage=_raises_at("check_high_risk", failure)), action=delete))
    bench.require_untouched()
    bench.require_free(delete)


STORE_CALLS = ["find_agent", "reserve_step", "hold", "tool_rows", "settle", "claim_key"]


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("method", STORE_CALLS)
def test_a_store_that_fails_in_one_call_refuses_and_frees_the_step(
    bench: Bench, method: str, failure: BaseException
) -> None:
    store = Failing(bench.store, method, failure)
    answer = bench.ask(bench.broken(store=store), idempotency_key="k")
    assert store.calls >= 1
    bench.require_refused(answer)
    bench.require_untouched()
    bench.require_free()
    assert bench.ask(place={**PLACE, "step_number": 2}, idempotency_key="k").decision == "APPROVED"


@both
@pytest.mark.parametrize("method", ["settle", "hold", "tool_rows", "find_agent"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("once", [True, False])
def test_a_store_that_fails_at_the_nth_call_never_approves_what_it_did_not_keep(
    bench: Bench, method: str, nth: int, once: bool
) -> None:
    services = bench.broken(store=Failing(bench.store, method, OSError(5, "i/o error"), nth, once=once))
    answers = [
        bench.ask(services, {"type": "calculate", "query": f"{step}+1"}, {**PLACE, "step_number": step})
        for step in range(1, 6)
    ]
    kept = {entry.action_id: entry.decision for entry in bench.gate.get_agent_activity(bench.agent_id)}
    for answer in answers:
        if answer.decision == "APPROVED":
            assert kept[answer.action_id] == "APPROVED"
        else:
            bench.require_refused(answer)
    approved = [answer for answer in answers if answer.decision == "APPROVED"]
    assert bench.store.spent(bench.agent_id, bench.hands.now).cost_day == 10_000 * len(approved)
    bench.require_nothing_held()


@pytest.mark.parametrize("failure", WAYS)
def test_a_failure_while_freeing_is_a_refusal_and_not_an_exception(bench: Bench, failure: BaseException) -> None:
    store = Failing(bench.store, "release", failure)
    answer = bench.ask(bench.broken(store=store, at_stage=_raises_at("settle", RuntimeError("first"))))
    bench.require_refused(answer)
    # What could not be freed frees itself with its lease.
    bench.hands.turn(31)
    assert bench.ask(place={**PLACE, "conversation_id": "another"}).decision == "APPROVED"
    bench.require_free(cost=20_000)


@pytest.mark.parametrize("failure", WAYS)
def test_a_key_that_cannot_be_released_is_a_refusal_and_the_kept_answer_comes_after_the_lease(
    bench: Bench, failure: BaseException
) -> None:
    store = Failing(bench.store, "release_key", failure)
    bench.require_refused(bench.ask(bench.broken(store=store), idempotency_key="k"))
    assert bench.ask(idempotency_key="k").error["code"] == "QWED-REQ-006"
    bench.hands.turn(31)
    assert bench.ask(idempotency_key="k").decision == "APPROVED"
    assert bench.store.spent(bench.agent_id, bench.hands.now).cost_day == 10_000


@pytest.mark.parametrize("failure", WAYS)
def test_an_answer_that_cannot_be_recalled_is_a_refusal(bench: Bench, failure: BaseException) -> None:
    first = bench.ask(idempotency_key="k")
    store = Failing(bench.store, "find_activity", failure)
    bench.require_refused(bench.ask(bench.broken(store=store), idempotency_key="k"))
    assert bench.ask(idempotency_key="k").action_id == first.action_id


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("method", ["ask", "known"])
def test_an_engine_that_raises_is_a_refusal_that_frees_the_step(
    bench: Bench, method: str, failure: BaseException
) -> None:
    bench.require_refused(bench.ask(bench.broken(engines=Failing(bench.services.engines, method, failure))))
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_an_engine_whose_ticket_fails_is_a_refusal_that_frees_the_step(bench: Bench, failure: BaseException) -> None:
    bench.require_refused(bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=_failed(failure)))))
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("nonsense", [None, "VERIFIED", True, {"status": "VERIFIED"}, 7, Status.VERIFIED], ids=repr)
def test_an_engine_that_answers_with_no_verdict_is_a_refusal(bench: Bench, nonsense: Any) -> None:
    ticket: Ticket[Any] = done(nonsense)
    bench.require_refused(bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=ticket))))
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("status", [status for status in Status if status not in (Status.VERIFIED, Status.SIMPLIFIED)])
def test_an_engine_that_did_not_verify_never_approves(bench: Bench, status: Status) -> None:
    verdict = Verdict(status=status, engine="math")
    answer = bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=verdict)))
    assert answer.decision in ("DENIED", "PENDING", "CORRECTED")
    if status in (Status.FAILED, Status.BLOCKED, Status.ERROR):
        assert answer.decision == "DENIED"


@pytest.mark.parametrize("failure", WAYS)
def test_what_cannot_be_remembered_of_a_verdict_is_a_refusal(bench: Bench, failure: BaseException) -> None:
    found: Ticket[Verdict] = done(Verdict(status=Status.VERIFIED, engine="math"))
    engines = Failing(Instead(bench.services.engines, ask=found), "learn", failure)
    bench.require_refused(bench.ask(bench.broken(engines=engines)))
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("failure", WAYS)
def test_without_a_signature_there_is_no_approval_and_the_retry_gets_one_charged_once(
    bench: Bench, failure: BaseException
) -> None:
    signer = Failing(bench.services.signer, "attest", failure)
    wanted: dict[str, Any] = {"options": {"require_attestation": True}, "idempotency_key": "k"}
    bench.require_refused(bench.ask(bench.broken(signer=signer), **wanted))
    bench.require_refused(bench.ask(bench.broken(signer=signer), **wanted))
    again = bench.ask(**wanted)
    assert (again.decision, again.attestation is None) == ("APPROVED", False)
    spent = bench.store.spent(bench.agent_id, bench.hands.now)
    assert (spent.cost_day, spent.requests_hour) == (10_000, 1)


@pytest.mark.parametrize("failure", WAYS)
def test_a_clock_that_stops_in_the_middle_is_a_refusal(bench: Bench, failure: BaseException) -> None:
    broken = Failing(Clock(now=lambda: bench.hands.now), "now", failure, nth=2)
    bench.require_refused(bench.ask(bench.broken(clock=broken)))
    bench.require_untouched()
    bench.require_free()


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -float("inf")], ids=repr)
def test_a_clock_that_tells_no_time_is_a_refusal(bench: Bench, moment: float) -> None:
    answer = bench.ask(bench.broken(clock=Clock(now=lambda: moment)), action=EMAIL)
    assert answer.decision == "DENIED"
    bench.require_untouched()
    bench.require_free(EMAIL)


@both
@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("action", [SUM, EMAIL], ids=["approved", "tool"])
def test_a_settlement_that_was_accepted_and_then_failed_is_a_refusal(
    bench: Bench, action: Any, failure: BaseException
) -> None:
    """The store said yes and then could not keep it: nobody is told yes."""
    bench.require_refused(bench.ask(bench.broken(store=Instead(bench.store, settle=_failed(failure))), action=action))
    bench.require_untouched()
    bench.require_free(action)


@both
def test_a_settlement_whose_ticket_never_comes_is_a_refusal(bench: Bench) -> None:
    never = _Never()
    bench.require_refused(bench.ask(bench.broken(store=Instead(bench.store, settle=never))))
    bench.require_untouched()
    bench.require_free()


@both
def test_a_request_that_outlives_its_lease_cannot_commit_and_another_may_take_the_step(bench: Bench) -> None:
    heard: list[Any] = []

    def slow(_question: Any) -> Verdict:
        bench.hands.turn(31)
        heard.append(bench.ask())
        return Verdict(status=Status.VERIFIED, engine="math")

    late = bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=slow)), action=WORKED)
    assert heard[0].decision == "APPROVED"
    bench.require_refused(late)
    assert late.error["check"] == "step_still_held"
    assert bench.ask().error["code"] == "QWED-AGENT-LOOP-002"
    assert bench.store.spent(bench.agent_id, bench.hands.now).cost_day == 10_000
    bench.require_nothing_held()


@both
def test_a_request_that_outlives_its_lease_unrivalled_cannot_commit_either(bench: Bench) -> None:
    def slow(_question: Any) -> Verdict:
        bench.hands.turn(30)
        return Verdict(status=Status.VERIFIED, engine="math")

    late = bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=slow)), action=WORKED)
    bench.require_refused(late)
    bench.require_untouched()
    bench.require_free()


@both
def test_a_request_within_its_lease_keeps_its_step_from_everyone(bench: Bench) -> None:
    heard: list[Any] = []

    def slow(_question: Any) -> Verdict:
        bench.hands.turn(29)
        heard.append(bench.ask())
        return Verdict(status=Status.VERIFIED, engine="math")

    late = bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=slow)), action=WORKED)
    assert heard[0].error["code"] == "QWED-AGENT-LOOP-002"
    assert late.decision == "APPROVED"


@both
def test_a_budget_held_by_a_slow_request_is_not_spent_twice(bench: Bench) -> None:
    heard: list[Any] = []
    dear = {**WORKED, "cost": {"usd": 9.99}}

    def slow(_question: Any) -> Verdict:
        heard.append(bench.ask(action={**SUM, "cost": {"usd": 0.02}}, place={**PLACE, "conversation_id": "other"}))
        heard.append(bench.ask(action=SUM, place={**PLACE, "conversation_id": "other"}))
        return Verdict(status=Status.VERIFIED, engine="math")

    assert (
        bench.ask(bench.broken(engines=Instead(bench.services.engines, ask=slow)), action=dear).decision == "APPROVED"
    )
    assert [answer.decision for answer in heard] == ["BUDGET_EXCEEDED", "APPROVED"]
    assert bench.store.spent(bench.agent_id, bench.hands.now).cost_day == 10_000_000


def test_after_the_store_is_closed_nothing_is_approved(memory_path: Path) -> None:
    opened = open_services(Settings(data_dir=memory_path / "data"))
    gate = Gate(opened)
    agent_id = gate.register_agent(name="late", principal_id="p")["agent_id"]
    assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"
    gate.close()
    for step in (2, 3):
        assert gate.verify_action(agent_id, SUM, {**PLACE, "step_number": step}).decision == "DENIED"


def _failed(failure: BaseException) -> Ticket[Any]:
    ticket: Ticket[Any] = Ticket()
    ticket.fail(failure)
    announce([ticket])
    return ticket


class _Never(Ticket[Settled]):
    """A result that does not come."""

    def wait(self, seconds: float) -> None:
        raise TimeoutError(f"the result did not arrive within {seconds} seconds")
