"""Counters of verdicts."""

import threading

from qwed_a2a import EngineName, VerdictStatus
from qwed_a2a.metrics import InterceptorMetrics

NONE = {
    "total_intercepts": 0,
    "total_forwarded": 0,
    "total_blocked": 0,
    "total_errors": 0,
    "average_latency_ms": 0.0,
    "block_rate": 0.0,
    "by_engine": {},
}


def test_before_the_first_message_every_number_is_nought() -> None:
    assert InterceptorMetrics().snapshot() == NONE


def test_every_verdict_is_counted_once_by_status_and_engine() -> None:
    metrics = InterceptorMetrics()
    metrics.count(VerdictStatus.FORWARDED, EngineName.PASSTHROUGH, 0.001)
    metrics.count(VerdictStatus.BLOCKED, EngineName.CODE_GUARD, 0.002)
    metrics.count(VerdictStatus.BLOCKED, EngineName.TRUST_BOUNDARY, 0.003)
    metrics.count(VerdictStatus.FORWARDED, EngineName.PASSTHROUGH, 0.004)
    assert metrics.snapshot() == {
        "total_intercepts": 4,
        "total_forwarded": 2,
        "total_blocked": 2,
        "total_errors": 0,
        "average_latency_ms": 2.5,
        "block_rate": 0.5,
        "by_engine": {"code_guard": 1, "passthrough": 2, "trust_boundary": 1},
    }


def test_a_failed_verification_is_an_error_whatever_became_of_the_message() -> None:
    metrics = InterceptorMetrics()
    metrics.count(VerdictStatus.BLOCKED, EngineName.ERROR_HANDLER, 0)
    metrics.count(VerdictStatus.FORWARDED, EngineName.ERROR_HANDLER, 0)
    metrics.count(VerdictStatus.ERROR, EngineName.TRUST_BOUNDARY, 0)
    snapshot = metrics.snapshot()
    names = ("total_intercepts", "total_forwarded", "total_blocked", "total_errors")
    assert [snapshot[name] for name in names] == [3, 1, 1, 3]


def test_what_was_told_does_not_change_afterwards() -> None:
    metrics = InterceptorMetrics()
    before = metrics.snapshot()
    metrics.count(VerdictStatus.BLOCKED, EngineName.CODE_GUARD, 1)
    assert before == NONE


def test_many_threads_are_all_counted() -> None:
    metrics, begin = InterceptorMetrics(), threading.Barrier(8)

    def work() -> None:
        begin.wait()
        for _ in range(500):
            metrics.count(VerdictStatus.BLOCKED, EngineName.CODE_GUARD, 0.001)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = metrics.snapshot()
    assert (snapshot["total_intercepts"], snapshot["average_latency_ms"], snapshot["block_rate"]) == (4000, 1.0, 1.0)
