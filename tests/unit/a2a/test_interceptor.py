"""Interceptor without storage and signature, and from many threads and event loops at once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from qwed.futures import Future, notify, run_in_thread
from qwed.model import sha256_of
from qwed_a2a import A2AVerificationInterceptor, InterceptorConfig, PayloadType, TrustBoundary, verify_attestation
from qwed_a2a.attestation import ephemeral_keyring, seal
from qwed_a2a.judge import ContentJudge
from qwed_a2a.trust_boundary import BoundaryResult
from tests.support.a2a_messages import AT, HONEST, WRONG, message, outcome_of, verdict_on
from tests.support.manual_clock import ManualClock
from tests.support.shared_engine_workers import shared_verdicts

KEYS = ephemeral_keyring()
OPEN = TrustBoundary(None)


def interceptor(boundary: Any = OPEN, **config: Any) -> A2AVerificationInterceptor:
    return A2AVerificationInterceptor(InterceptorConfig(**config), boundary, KEYS, engines=shared_verdicts())


class AsyncBoundary:
    """Boundary that answers later, as a store does."""

    def __init__(self, answer: BoundaryResult) -> None:
        self.answer, self.calls = answer, list[tuple[str, str, PayloadType]]()

    def evaluate(self, sender: str, receiver: str, payload_type: PayloadType) -> Future[BoundaryResult]:
        self.calls.append((sender, receiver, payload_type))
        future: Future[BoundaryResult] = Future()
        future.set_result(self.answer)
        threading.Thread(target=notify, args=([future],)).start()
        return future


@pytest.mark.parametrize("answer", [(True, "fine"), (False, "not today")])
def test_a_boundary_may_answer_later(answer: BoundaryResult) -> None:
    boundary = AsyncBoundary(answer)
    verdict = verdict_on(interceptor(boundary))
    assert verdict.forwarded is answer[0]
    assert boundary.calls == [("buyer", "seller", PayloadType.GENERAL)]
    assert verdict.forwarded or (outcome_of(verdict), verdict.reason) == (("blocked", "trust_boundary"), "not today")


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("payloads", [HONEST, WRONG])
def test_what_is_judged_in_a_thread_is_what_is_judged_on_a_loop(kind: str, payloads: dict[str, Any]) -> None:
    sent = message(payloads[kind], kind)
    judged = run_in_thread(ContentJudge(InterceptorConfig(), shared_verdicts()).judge(sent), 10)
    verdict = verdict_on(interceptor(), sent)
    assert (judged.forwarded, judged.engine, judged.reason) == (verdict.forwarded, verdict.engine_used, verdict.reason)
    sealed = seal(KEYS, sent, judged, trace_id=verdict.audit_trace_id, at=AT, digest=sha256_of(sent.payload))
    assert sealed == verdict


def test_what_was_too_large_to_be_read_is_sealed_unread() -> None:
    subject, sent = interceptor(max_payload_size_bytes=1024), message({"text": "x" * 2000})
    verdict = verdict_on(subject, sent)
    assert verify_attestation(verdict.attestation_jwt or "", subject.jwks(), now=AT.timestamp())[1]["sub"] == "unread"


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_the_time_of_a_message_may_be_any(year: int) -> None:
    verdict = verdict_on(interceptor(), message(timestamp=datetime(year, 6, 1, tzinfo=UTC)))
    assert verdict.forwarded
    assert verdict.to_dict()["verified_at"] == f"{year:04}-06-01T00:00:00Z"


def test_many_threads_each_with_a_loop_of_its_own_get_the_same_verdicts() -> None:
    subject = interceptor()
    sent = [message(payloads[kind], kind) for kind in WRONG for payloads in (HONEST, WRONG)]
    expected = [verdict_on(subject, item) for item in sent]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(subject.intercept(item, "trace-1") for item in sent))

    with ThreadPoolExecutor(8) as threads:
        results = [done.result() for done in [threads.submit(asyncio.run, all_at_once()) for _ in range(16)]]
    assert results == [expected] * 16
    assert subject.metrics.snapshot()["total_intercepts"] == 17 * len(sent)


def test_a_flood_from_many_threads_gets_exactly_as_many_through_as_there_are_tokens() -> None:
    subject = A2AVerificationInterceptor(trust_boundary=TrustBoundary(5, clock=ManualClock().clock()))
    with ThreadPoolExecutor(8) as threads:
        passed = sum(verdict.forwarded for verdict in threads.map(lambda _: verdict_on(subject), range(40)))
    assert passed == 5
