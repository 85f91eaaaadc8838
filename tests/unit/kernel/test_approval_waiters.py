"""Waiters of long polls are woken once per notification and leave nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from qwed.kernel.admin.approval_waiters import Waiters


def test_a_notification_wakes_the_waiters_of_its_key_only() -> None:
    waiters = Waiters()
    mine, also, other = waiters.wait("a"), waiters.wait("a"), waiters.wait("b")
    waiters.notify("a")
    assert [future.done for future in (mine, also, other)] == [True, True, False]


def test_an_earlier_notification_does_not_wake_a_later_waiter() -> None:
    waiters = Waiters()
    waiters.notify("a")
    assert not waiters.wait("a").done


def test_a_waiter_that_left_is_removed_and_leaving_twice_is_harmless() -> None:
    waiters = Waiters()
    gone, stays = waiters.wait("a"), waiters.wait("a")
    waiters.leave("a", gone)
    waiters.leave("a", gone)
    waiters.notify("a")
    assert (gone.done, stays.done) == (False, True)
    waiters.leave("a", stays)
    waiters.leave("never", stays)
    assert len(waiters) == 0


def test_nothing_is_kept_after_a_waiter_gave_up() -> None:
    waiters = Waiters()
    for number in range(100):
        name = str(number)
        waiters.leave(name, waiters.wait(name))
    assert len(waiters) == 0


def test_threads_that_wait_are_all_woken() -> None:
    waiters, begun = Waiters(), threading.Barrier(9)

    def wait() -> None:
        future = waiters.wait("a")
        begun.wait(30)
        future.wait_result(30)

    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(wait) for _ in range(8)]
        begun.wait(30)
        waiters.notify("a")
        for one in waiting:
            one.result(30)


def test_a_wait_without_notification_times_out() -> None:
    with pytest.raises(TimeoutError):
        Waiters().wait("a").wait_result(0.01)
