"""Long polls: a bell wakes whoever waits for it, once, and leaves nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from qwed.kernel.people.doorbell import Doorbells


def test_a_bell_wakes_everyone_who_waits_for_it_and_nobody_else() -> None:
    bells = Doorbells()
    mine, also, other = bells.wait("a"), bells.wait("a"), bells.wait("b")
    bells.ring("a")
    assert [ticket.done for ticket in (mine, also, other)] == [True, True, False]


def test_a_bell_that_rang_before_is_not_heard_after() -> None:
    bells = Doorbells()
    bells.ring("a")
    assert not bells.wait("a").done


def test_whoever_left_is_forgotten_and_leaving_twice_is_harmless() -> None:
    bells = Doorbells()
    gone, stays = bells.wait("a"), bells.wait("a")
    bells.leave("a", gone)
    bells.leave("a", gone)
    bells.ring("a")
    assert (gone.done, stays.done) == (False, True)
    bells.leave("a", stays)
    bells.leave("never", stays)
    assert bells._waiting == {}


def test_nothing_is_kept_for_whoever_waited_in_vain() -> None:
    bells = Doorbells()
    for number in range(100):
        name = str(number)
        bells.leave(name, bells.wait(name))
    assert bells._waiting == {}


def test_threads_that_wait_are_all_woken() -> None:
    bells, begun = Doorbells(), threading.Barrier(9)

    def wait() -> None:
        ticket = bells.wait("a")
        begun.wait(30)
        ticket.block(30)

    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(wait) for _ in range(8)]
        begun.wait(30)
        bells.ring("a")
        for one in waiting:
            one.result(30)


def test_a_bell_that_never_rings_is_waited_for_no_longer_than_said() -> None:
    with pytest.raises(TimeoutError):
        Doorbells().wait("a").block(0.01)
