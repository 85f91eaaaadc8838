"""`qwed.waiting`: one ticket, awaited on an event loop or blocked on in a thread."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed import waiting
from qwed.waiting import LoopDriver, LoopThread, Ticket, announce, done, failure_of, in_thread

PATIENCE = 60.0
"""Longer than anything here takes; only a test that fails waits for it."""


def completed(ticket: Ticket[Any], value: Any) -> None:
    ticket.complete(value)
    announce([ticket])


def failed(ticket: Ticket[Any], failure: BaseException) -> None:
    ticket.fail(failure)
    announce([ticket])


async def double(ticket: Ticket[int]) -> int:
    return 2 * await ticket


async def forgive(ticket: Ticket[int]) -> str:
    try:
        return str(await ticket)
    except (KeyError, TimeoutError) as why:
        return f"forgave {type(why).__name__}"


def on_loop(walk: Callable[[], Any], *, seconds: float = PATIENCE, during: Callable[[], None] = lambda: None) -> Any:
    """Drive one walk on a loop of its own; `during` runs in another thread once the walk waits."""

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(LoopDriver(loop, seconds).drive(walk()))
        await asyncio.sleep(0)
        await loop.run_in_executor(None, during)
        return await task

    return asyncio.run(main())


def test_a_ticket_that_is_done_needs_no_wait() -> None:
    assert done(3).block(0) == 3
    assert in_thread(double(done(3)), 0) == 6
    assert on_loop(lambda: double(done(3))) == 6


def test_the_result_may_be_nothing() -> None:
    assert done(None).block(0) is None


def test_completing_wakes_nobody_before_it_is_announced() -> None:
    ticket: Ticket[int] = Ticket()
    ticket.complete(1)
    assert not ticket.done
    with pytest.raises(TimeoutError, match="the result did not arrive in time"):
        ticket.block(0)
    announce([ticket])
    assert ticket.done
    assert ticket.block(0) == 1


def test_a_thread_that_timed_out_may_wait_again() -> None:
    ticket: Ticket[int] = Ticket()
    with pytest.raises(TimeoutError):
        ticket.block(0)
    threading.Thread(target=completed, args=(ticket, 5)).start()
    assert ticket.block(PATIENCE) == 5


def test_every_thread_that_blocks_on_a_ticket_is_woken() -> None:
    ticket: Ticket[int] = Ticket()
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(ticket.block(PATIENCE))) for _ in range(20)]
    for thread in threads:
        thread.start()
    completed(ticket, 9)
    for thread in threads:
        thread.join()
    assert seen == [9] * 20


def test_a_second_waiter_does_not_take_the_first_ones_wake_up() -> None:
    ticket: Ticket[int] = Ticket()
    with pytest.raises(TimeoutError):
        ticket.wait(0)
    first = ticket._event
    with pytest.raises(TimeoutError):
        ticket.wait(0)
    assert ticket._event is first


def test_a_ticket_announced_at_any_moment_is_never_missed() -> None:
    for number in range(300):
        ticket: Ticket[int] = Ticket()
        thread = threading.Thread(target=completed, args=(ticket, number))
        thread.start()
        assert ticket.block(PATIENCE) == number
        thread.join()


def test_a_failure_is_raised_where_the_result_would_be() -> None:
    ticket: Ticket[int] = Ticket()
    failed(ticket, KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        ticket.block(0)
    ticket.wait(0)


def test_a_walk_in_a_thread_waits_for_each_ticket_in_turn() -> None:
    first: Ticket[int] = Ticket()
    second: Ticket[int] = Ticket()

    async def walk() -> int:
        got = await first
        threading.Thread(target=completed, args=(second, got + 1)).start()
        return got * await second

    threading.Thread(target=completed, args=(first, 6)).start()
    assert in_thread(walk(), PATIENCE) == 42


def test_a_failure_reaches_the_walk_in_a_thread_which_may_forgive_it() -> None:
    ticket: Ticket[int] = Ticket()
    threading.Thread(target=failed, args=(ticket, KeyError("gone"))).start()
    assert in_thread(forgive(ticket), PATIENCE) == "forgave KeyError"


def test_a_failure_reaches_the_walk_on_a_loop_which_may_forgive_it() -> None:
    ticket: Ticket[int] = Ticket()
    told = on_loop(lambda: forgive(ticket), during=lambda: failed(ticket, KeyError("gone")))
    assert told == "forgave KeyError"


def test_a_late_result_is_a_timeout_inside_the_walk_on_both_roads() -> None:
    assert in_thread(forgive(Ticket()), 0) == "forgave TimeoutError"
    assert on_loop(lambda: forgive(Ticket()), seconds=0) == "forgave TimeoutError"
    with pytest.raises(TimeoutError):
        in_thread(double(Ticket()), 0)
    with pytest.raises(TimeoutError):
        on_loop(lambda: double(Ticket()), seconds=0)


def test_what_a_walk_raises_comes_out_on_both_roads() -> None:
    async def walk() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_thread(walk(), 0)
    with pytest.raises(ZeroDivisionError):
        on_loop(walk)


def test_a_result_from_another_thread_wakes_the_loop() -> None:
    ticket: Ticket[int] = Ticket()
    assert on_loop(lambda: double(ticket), during=lambda: completed(ticket, 4)) == 8


def test_tickets_of_one_loop_are_woken_with_one_call() -> None:
    tickets: list[Ticket[int]] = [Ticket() for _ in range(10)]
    woken: list[int] = []

    class Counting(LoopDriver):
        def _wake(self, tickets: list[Ticket[Any]]) -> None:
            woken.append(len(tickets))
            super()._wake(tickets)

    async def main() -> list[int]:
        driver = Counting(asyncio.get_running_loop(), PATIENCE)
        tasks = [asyncio.create_task(driver.drive(double(ticket))) for ticket in tickets]
        await asyncio.sleep(0)
        for number, ticket in enumerate(tickets):
            ticket.complete(number)
        announce(tickets)
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [2 * number for number in range(10)]
    assert woken == [10]


def test_what_is_put_off_comes_after_every_walk_of_the_turn_and_at_once_off_the_loop() -> None:
    async def main() -> list[str]:
        driver, seen = LoopDriver(asyncio.get_running_loop(), PATIENCE), []

        async def walk(name: str) -> None:
            driver.soon(lambda: seen.append(f"after {name}"))
            seen.append(name)

        await asyncio.gather(*(driver.drive(walk(name)) for name in "ab"))
        await asyncio.to_thread(driver.soon, lambda: seen.append("elsewhere"))
        return seen

    assert asyncio.run(main()) == ["a", "b", "after a", "after b", "elsewhere"]


def test_a_cancelled_walk_lets_go_at_once() -> None:
    let_go: list[str] = []

    async def walk() -> None:
        try:
            await Ticket[int]()
        finally:
            let_go.append("now")

    async def main() -> None:
        task = asyncio.create_task(LoopDriver(asyncio.get_running_loop(), PATIENCE).drive(walk()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert let_go == ["now"]

    asyncio.run(main())


def test_announcing_to_a_loop_that_has_closed_still_wakes_the_others() -> None:
    ticket: Ticket[int] = Ticket()
    other: Ticket[int] = Ticket()

    async def main() -> None:
        task = asyncio.create_task(LoopDriver(asyncio.get_running_loop(), PATIENCE).drive(double(ticket)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    ticket.complete(1)
    other.complete(2)
    announce([ticket, other])
    assert (ticket.block(0), other.block(0)) == (1, 2)


def test_a_result_after_the_walk_gave_up_harms_nothing() -> None:
    ticket: Ticket[int] = Ticket()

    async def main() -> str:
        told: str = await LoopDriver(asyncio.get_running_loop(), 0).drive(forgive(ticket))
        completed(ticket, 1)
        await asyncio.sleep(0)
        return told

    assert asyncio.run(main()) == "forgave TimeoutError"
    assert ticket.block(0) == 1


# Errands: walks on a loop without a task


def run_errands(*walks: Any, seconds: float = PATIENCE, during: Callable[[], None] = lambda: None) -> list[str]:
    """Begin the walks in one turn, let something happen in another thread, and wait until each has said something."""
    said: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, what: said.append(f"surprised by {what['exception']!r}"))
        driver = LoopDriver(loop, seconds)
        for walk in walks:
            driver.begin(walk(said))
        assert said == [], "nothing begins before the turn is over"
        await asyncio.sleep(0)
        await loop.run_in_executor(None, during)
        async with asyncio.timeout(PATIENCE):
            while len(said) < len(walks):  # noqa: ASYNC110 - an errand tells nobody that it is over
                await asyncio.sleep(0)
        assert driver._patient == {}

    asyncio.run(main())
    return said


def saying(*tickets: Ticket[int]) -> Callable[[list[str]], Any]:
    async def walk(said: list[str]) -> None:
        try:
            said.append(str(sum([await ticket for ticket in tickets])))
        except TimeoutError:
            said.append("late")

    return walk


def test_errands_go_on_when_what_they_wait_for_is_there() -> None:
    first: Ticket[int] = Ticket()
    second: Ticket[int] = Ticket()

    def during() -> None:
        completed(second, 20)
        completed(first, 1)

    assert run_errands(saying(done(5)), saying(first, done(2), second), saying(second), during=during) == [
        "5",
        "20",
        "23",
    ]


def test_an_errand_that_waits_in_vain_is_told_so_and_a_late_result_harms_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "_TICK", 0.01)
    never: Ticket[int] = Ticket()

    async def walk(said: list[str]) -> None:
        try:
            await never
        except TimeoutError:
            completed(never, 1)
            await asyncio_free(Ticket())
        said.append("not reached")

    async def asyncio_free(other: Ticket[int]) -> None:
        try:
            await other
        except TimeoutError:
            said_late.append("both were late")

    said_late: list[str] = []
    assert run_errands(walk, saying(Ticket()), seconds=0) == ["late", "not reached"]
    assert said_late == ["both were late"]


def test_a_surprise_of_one_errand_is_told_and_the_others_go_on() -> None:
    ticket: Ticket[int] = Ticket()

    def surprised(*tickets: Ticket[int]) -> Callable[[list[str]], Any]:
        async def walk(_said: list[str]) -> None:
            for each in tickets:
                await each
            raise KeyError("x")

        return walk

    said = run_errands(
        surprised(), saying(done(1)), surprised(ticket), saying(ticket), during=lambda: completed(ticket, 3)
    )
    assert sorted(said) == ["1", "3", "surprised by KeyError('x')", "surprised by KeyError('x')"]


# A thread with a loop of its own


class Clerk:
    """Does what it is told until it is told to end."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun = threading.Event()
        self.thread = LoopThread("clerk", self._serve)

    async def _serve(self) -> None:
        self.begun.set()
        await self.thread.closing.wait()
        self.done.append("ended")


def test_a_thread_runs_its_coroutine_until_it_is_told_to_end() -> None:
    clerk = Clerk()
    assert not clerk.thread.started
    clerk.thread.start()
    assert clerk.begun.wait(PATIENCE)
    clerk.thread.tell(lambda: clerk.done.append("told"))
    clerk.thread.close(PATIENCE)
    assert (clerk.done, clerk.thread.is_alive(), clerk.thread.loop.is_closed()) == (["told", "ended"], False, True)


def test_nobody_is_told_before_the_start_and_after_the_end() -> None:
    clerk = Clerk()
    clerk.thread.tell(lambda: clerk.done.append("early"))
    clerk.thread.close(PATIENCE)
    assert (clerk.done, clerk.thread.started) == ([], False)
    clerk.thread.start()
    clerk.thread.close(PATIENCE)
    clerk.thread.tell(lambda: clerk.done.append("late"))
    assert clerk.done == ["ended"]


def test_a_pause_ends_with_its_time_with_the_end_or_with_what_is_waited_for() -> None:
    bell = asyncio.Event()
    woken: list[str] = []

    async def serve() -> None:
        await thread.pause(0.0)
        woken.append("time")
        thread.loop.call_soon(bell.set)
        await thread.pause(PATIENCE * 10, bell)
        woken.append("bell")
        begun.set()
        await thread.pause(PATIENCE * 10)
        woken.append("end")

    begun, thread = threading.Event(), LoopThread("pausing", serve)
    thread.start()
    assert begun.wait(PATIENCE)
    thread.close(PATIENCE)
    assert woken == ["time", "bell", "end"]


def test_a_failure_is_a_value() -> None:
    async def fails() -> None:
        raise KeyError("x")

    async def works() -> int:
        return 3

    assert isinstance(asyncio.run(failure_of(fails())), KeyError)
    assert asyncio.run(failure_of(works())) is None
