"""The walk of one message without keeping and signing, and from many threads and loops at once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from qwed.waiting import Ticket, announce, in_thread
from qwed_a2a import A2AVerificationInterceptor, InterceptorConfig, PayloadType, TrustBoundary, verify_attestation
from qwed_a2a.attestation import own_keyring
from qwed_a2a.boundary import Said
from qwed_a2a.finding import Ruling
from tests.support.clock import HandClock
from tests.support.messages import AT, HONEST, WRONG, ask, message, said
from tests.support.workers import shared_verdicts

KEYS = own_keyring()
OPEN = TrustBoundary(None)


def interceptor(boundary: Any = OPEN, **config: Any) -> A2AVerificationInterceptor:
    return A2AVerificationInterceptor(InterceptorConfig(**config), boundary, KEYS, engines=shared_verdicts())


class Later:
    """A boundary that answers when its store has."""

    def __init__(self, answer: Said) -> None:
        self.answer, self.asked = answer, list[tuple[str, str, PayloadType]]()

    def evaluate(self, sender: str, receiver: str, payload_type: PayloadType) -> Ticket[Said]:
        self.asked.append((sender, receiver, payload_type))
        ticket: Ticket[Said] = Ticket()
        ticket.complete(self.answer)
        threading.Thread(target=announce, args=([ticket],)).start()
        return ticket


@pytest.mark.parametrize("answer", [(True, "fine"), (False, "not today")])
def test_a_boundary_may_answer_later(answer: Said) -> None:
    boundary = Later(answer)
    verdict = ask(interceptor(boundary))
    assert verdict.forwarded is answer[0]
    assert boundary.asked == [("buyer", "seller", PayloadType.GENERAL)]
    assert verdict.forwarded or (said(verdict), verdict.reason) == (("blocked", "trust_boundary"), "not today")


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("payloads", [HONEST, WRONG])
def test_what_is_judged_in_a_thread_is_what_is_judged_on_a_loop(kind: str, payloads: dict[str, Any]) -> None:
    asked, sent = interceptor(), message(payloads[kind], kind)
    ruling = in_thread(asked.judge(sent, OPEN, proven=True), 10)
    verdict = ask(asked, sent)
    assert (ruling.status, ruling.engine, ruling.reason) == (verdict.status, verdict.engine_used, verdict.reason)
    assert asked.seal(sent, ruling, verdict.audit_trace_id, AT) == verdict


def test_a_judge_counts_and_signs_nothing() -> None:
    asked = interceptor()
    assert isinstance(in_thread(asked.judge(message(), OPEN, proven=True), 1), Ruling)
    assert asked.metrics.snapshot()["total_intercepts"] == 0


def test_whom_a_judge_is_told_to_trust_stands_in_place_of_the_configured() -> None:
    asked, sent = interceptor(trusted_agents=["buyer"]), message(WRONG["code_execution"], "code_execution")

    def engine(**more: Any) -> str:
        return str(in_thread(asked.judge(sent, OPEN, **more), 10).engine)

    assert engine(proven=True) == "bypass"
    assert engine(proven=True, trusted=()) == "code_guard"
    assert engine(proven=True, trusted={"buyer"}) == "bypass"
    assert engine(proven=False, trusted={"buyer"}) == "code_guard"


def test_what_was_too_large_to_be_read_is_sealed_unread() -> None:
    asked, sent = interceptor(max_payload_size_bytes=1024), message({"text": "x" * 2000})
    verdict = ask(asked, sent)
    ruling = in_thread(asked.judge(sent, OPEN, proven=True), 1)
    assert asked.seal(sent, ruling, verdict.audit_trace_id, AT) == verdict
    assert verify_attestation(verdict.attestation_jwt or "", asked.jwks(), now=AT.timestamp())[1]["sub"] == "unread"


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_the_time_of_a_message_may_be_any(year: int) -> None:
    verdict = ask(interceptor(), message(timestamp=datetime(year, 6, 1, tzinfo=UTC)))
    assert verdict.forwarded
    assert verdict.to_dict()["verified_at"] == f"{year:04}-06-01T00:00:00Z"


def test_many_threads_each_with_a_loop_of_its_own_get_the_same_verdicts() -> None:
    asked = interceptor()
    sent = [message(payloads[kind], kind) for kind in WRONG for payloads in (HONEST, WRONG)]
    expected = [ask(asked, each) for each in sent]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(asked.intercept(each, "trace-1") for each in sent))

    with ThreadPoolExecutor(8) as threads:
        found = [done.result() for done in [threads.submit(asyncio.run, all_at_once()) for _ in range(16)]]
    assert found == [expected] * 16
    assert asked.metrics.snapshot()["total_intercepts"] == 17 * len(sent)


def test_a_flood_from_many_threads_gets_exactly_as_many_through_as_there_are_tokens() -> None:
    asked = A2AVerificationInterceptor(trust_boundary=TrustBoundary(5, clock=HandClock().clock()))
    with ThreadPoolExecutor(8) as threads:
        passed = sum(verdict.forwarded for verdict in threads.map(lambda _: ask(asked), range(40)))
    assert passed == 5
