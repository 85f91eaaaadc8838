"""Concurrency limits of compliance reports."""

import threading

import pytest

from qwed.kernel.answer import Problem
from qwed.kernel.reports.concurrency import MAX_PER_ORGANISATION, MAX_REPORTS, ReportLimiter, ReportSlot


def _take(limiter: ReportLimiter, organisation_id: str = "org_1") -> ReportSlot:
    slot = limiter.take(organisation_id)
    assert isinstance(slot, ReportSlot)
    return slot


def test_an_organisation_has_a_limit() -> None:
    limiter = ReportLimiter()
    first, *_ = [_take(limiter) for _ in range(MAX_PER_ORGANISATION)]
    refused = limiter.take("org_1")
    assert isinstance(refused, Problem)
    assert (refused.code, refused.retry_after is not None, refused.final) == ("QWED-SYS-001", True, False)
    _take(limiter, "org_2")
    first.leave()
    _take(limiter)


def test_leaving_twice_frees_one_place() -> None:
    limiter = ReportLimiter()
    slots = [_take(limiter) for _ in range(MAX_PER_ORGANISATION)]
    slots[0].leave()
    slots[0].leave()
    _take(limiter)
    assert isinstance(limiter.take("org_1"), Problem)


def test_the_server_has_a_total_limit() -> None:
    limiter = ReportLimiter()
    for number in range(MAX_REPORTS):
        _take(limiter, f"org_{number}")
    refused = limiter.take("org_new")
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-SYS-003"


def test_nothing_is_kept_after_the_slots_are_released() -> None:
    limiter = ReportLimiter()
    for number in range(1_000):
        _take(limiter, f"org_{number}").leave()
    assert len(limiter) == 0


def test_a_refusal_leaves_nothing_behind() -> None:
    limiter = ReportLimiter()
    slots = [_take(limiter) for _ in range(MAX_PER_ORGANISATION)]
    assert isinstance(limiter.take("org_1"), Problem)
    for slot in slots:
        slot.leave()
    assert len(limiter) == 0


def test_many_threads_never_hold_more_than_there_are_places() -> None:
    limiter, active, peak = ReportLimiter(), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        for _ in range(500):
            slot = limiter.take("org_1")
            if isinstance(slot, Problem):
                continue
            with lock:
                active[0] += 1
                peak[0] = max(peak[0], active[0])
            with lock:
                active[0] -= 1
            slot.leave()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert peak[0] <= MAX_PER_ORGANISATION
    assert len(limiter) == 0


def test_a_closed_limiter_starts_nothing() -> None:
    limiter = ReportLimiter()
    threads = limiter.threads
    limiter.close()
    with pytest.raises(RuntimeError):
        threads.submit(print)
