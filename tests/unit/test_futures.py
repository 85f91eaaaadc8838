"""Futures that are awaited on an event loop or blocked on in a thread, and the runners of coroutines."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed import futures
from qwed.futures import Future, LoopRunner, LoopThread, capture_failure, completed, notify, run_in_thread

TIMEOUT = 60.0
"""Longer than any step takes; only a failing test waits for it."""


def resolve(future: Future[Any], value: Any) -> None:
    future.set_result(value)
    notify([future])


def reject(future: Future[Any], failure: BaseException) -> None:
    future.set_exception(failure)
    notify([future])


async def double(future: Future[int]) -> int:
    return 2 * await future


async def catch_failure(future: Future[int]) -> str:
    try:
        return str(await future)
    except (KeyError, TimeoutError) as error:
        return f"caught {type(error).__name__}"


def on_loop(coro: Callable[[], Any], *, seconds: float = TIMEOUT, during: Callable[[], None] = lambda: None) -> Any:
    """Run one coroutine on a loop of its own; `during` runs in another thread once the coroutine waits."""

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(LoopRunner(loop, seconds).run(coro()))
        await asyncio.sleep(0)
        await loop.run_in_executor(None, during)
        return await task

    return asyncio.run(main())


def test_a_completed_future_needs_no_wait() -> None:
    assert completed(3).wait_result(0) == 3
    assert run_in_thread(double(completed(3)), 0) == 6
    assert on_loop(lambda: double(completed(3))) == 6


def test_the_result_may_be_nothing() -> None:
    assert completed(None).wait_result(0) is None


def test_a_result_wakes_waiters_only_after_notify() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    assert not future.done
    with pytest.raises(TimeoutError, match="the result did not arrive in time"):
        future.wait_result(0)
    notify([future])
    assert future.done
    assert future.wait_result(0) == 1


def test_a_thread_that_timed_out_may_wait_again() -> None:
    future: Future[int] = Future()
    with pytest.raises(TimeoutError):
        future.wait_result(0)
    threading.Thread(target=resolve, args=(future, 5)).start()
    assert future.wait_result(TIMEOUT) == 5


def test_every_thread_that_blocks_on_a_future_is_woken() -> None:
    future: Future[int] = Future()
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(future.wait_result(TIMEOUT))) for _ in range(20)]
    for thread in threads:
        thread.start()
    resolve(future, 9)
    for thread in threads:
        thread.join()
    assert seen == [9] * 20


def event_of(future: Future[int]) -> threading.Event | None:
    """Return the event that the waiting threads share."""
    return future._event


def test_a_second_waiter_does_not_take_the_first_ones_wake_up() -> None:
    future: Future[int] = Future()
    with pytest.raises(TimeoutError):
        future.wait(0)
    first = event_of(future)
    with pytest.raises(TimeoutError):
        future.wait(0)
    assert event_of(future) is first


def test_a_notification_at_any_moment_is_never_missed() -> None:
    for number in range(300):
        future: Future[int] = Future()
        thread = threading.Thread(target=resolve, args=(future, number))
        thread.start()
        assert future.wait_result(TIMEOUT) == number
        thread.join()


def test_a_failure_is_raised_where_the_result_would_be() -> None:
    future: Future[int] = Future()
    reject(future, KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        future.wait_result(0)
    future.wait(0)


def test_a_coroutine_in_a_thread_waits_for_each_future_in_turn() -> None:
    first: Future[int] = Future()
    second: Future[int] = Future()

    async def coro() -> int:
        got = await first
        threading.Thread(target=resolve, args=(second, got + 1)).start()
        return got * await second

    threading.Thread(target=resolve, args=(first, 6)).start()
    assert run_in_thread(coro(), TIMEOUT) == 42


def test_a_failure_can_be_caught_by_the_coroutine_in_a_thread() -> None:
    future: Future[int] = Future()
    threading.Thread(target=reject, args=(future, KeyError("gone"))).start()
    assert run_in_thread(catch_failure(future), TIMEOUT) == "caught KeyError"


def test_a_failure_can_be_caught_by_the_coroutine_on_a_loop() -> None:
    future: Future[int] = Future()
    result = on_loop(lambda: catch_failure(future), during=lambda: reject(future, KeyError("gone")))
    assert result == "caught KeyError"


def test_a_late_result_is_a_timeout_inside_the_coroutine() -> None:
    assert run_in_thread(catch_failure(Future()), 0) == "caught TimeoutError"
    assert on_loop(lambda: catch_failure(Future()), seconds=0) == "caught TimeoutError"
    with pytest.raises(TimeoutError):
        run_in_thread(double(Future()), 0)
    with pytest.raises(TimeoutError):
        on_loop(lambda: double(Future()), seconds=0)


def test_an_exception_of_the_coroutine_is_raised_to_the_caller() -> None:
    async def coro() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_in_thread(coro(), 0)
    with pytest.raises(ZeroDivisionError):
        on_loop(coro)


def test_a_result_from_another_thread_wakes_the_loop() -> None:
    future: Future[int] = Future()
    assert on_loop(lambda: double(future), during=lambda: resolve(future, 4)) == 8


def test_futures_of_one_loop_are_woken_with_one_call() -> None:
    futures_awaited: list[Future[int]] = [Future() for _ in range(10)]
    woken: list[int] = []

    class Counting(LoopRunner):
        def _wake(self, futures_awaited: list[Future[Any]]) -> None:
            woken.append(len(futures_awaited))
            super()._wake(futures_awaited)

    async def main() -> list[int]:
        runner = Counting(asyncio.get_running_loop(), TIMEOUT)
        tasks = [asyncio.create_task(runner.run(double(future))) for future in futures_awaited]
        await asyncio.sleep(0)
        for number, future in enumerate(futures_awaited):
            future.set_result(number)
        notify(futures_awaited)
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [2 * number for number in range(10)]
    assert woken == [10]


def test_an_end_of_tick_call_runs_after_every_ready_coroutine_and_immediately_off_the_loop() -> None:
    async def main() -> list[str]:
        runner, seen = LoopRunner(asyncio.get_running_loop(), TIMEOUT), []

        async def coro(name: str) -> None:
            runner.call_at_end_of_tick(lambda: seen.append(f"after {name}"))
            seen.append(name)

        await asyncio.gather(*(runner.run(coro(name)) for name in "ab"))
        await asyncio.to_thread(runner.call_at_end_of_tick, lambda: seen.append("elsewhere"))
        return seen

    assert asyncio.run(main()) == ["a", "b", "after a", "after b", "elsewhere"]


def test_a_cancelled_coroutine_is_closed_immediately() -> None:
    closed: list[str] = []

    async def coro() -> None:
        try:
            await Future[int]()
        finally:
            closed.append("now")

    async def main() -> None:
        task = asyncio.create_task(LoopRunner(asyncio.get_running_loop(), TIMEOUT).run(coro()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed == ["now"]

    asyncio.run(main())


def test_notifying_a_closed_loop_still_wakes_the_others() -> None:
    future: Future[int] = Future()
    other: Future[int] = Future()

    async def main() -> None:
        task = asyncio.create_task(LoopRunner(asyncio.get_running_loop(), TIMEOUT).run(double(future)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    future.set_result(1)
    other.set_result(2)
    notify([future, other])
    assert (future.wait_result(0), other.wait_result(0)) == (1, 2)


def test_a_result_after_a_timeout_is_harmless() -> None:
    future: Future[int] = Future()

    async def main() -> str:
        result: str = await LoopRunner(asyncio.get_running_loop(), 0).run(catch_failure(future))
        resolve(future, 1)
        await asyncio.sleep(0)
        return result

    assert asyncio.run(main()) == "caught TimeoutError"
    assert future.wait_result(0) == 1


# Inline runners: coroutines on a loop without a task


def run_inline(*coros: Any, seconds: float = TIMEOUT, during: Callable[[], None] = lambda: None) -> list[str]:
    """Start the coroutines in one tick, run `during` in another thread, and wait for a result of each."""
    results: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: results.append(f"raised {context['exception']!r}"))
        runner = LoopRunner(loop, seconds)
        for coro in coros:
            runner.start_inline(coro(results))
        assert results == [], "nothing starts before the tick is over"
        await asyncio.sleep(0)
        await loop.run_in_executor(None, during)
        async with asyncio.timeout(TIMEOUT):
            while len(results) < len(coros):  # noqa: ASYNC110 - an inline runner has no completion event
                await asyncio.sleep(0)
        assert runner._waiting == {}

    asyncio.run(main())
    return results


def sum_of(*futures_awaited: Future[int]) -> Callable[[list[str]], Any]:
    async def coro(results: list[str]) -> None:
        try:
            results.append(str(sum([await future for future in futures_awaited])))
        except TimeoutError:
            results.append("late")

    return coro


def test_inline_coroutines_resume_when_their_future_is_done() -> None:
    first: Future[int] = Future()
    second: Future[int] = Future()

    def during() -> None:
        resolve(second, 20)
        resolve(first, 1)

    assert run_inline(sum_of(completed(5)), sum_of(first, completed(2), second), sum_of(second), during=during) == [
        "5",
        "20",
        "23",
    ]


def test_an_inline_coroutine_times_out_and_a_late_result_is_harmless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(futures, "TICK_SECONDS", 0.01)
    never: Future[int] = Future()

    async def coro(results: list[str]) -> None:
        try:
            await never
        except TimeoutError:
            resolve(never, 1)
            await asyncio_free(Future())
        results.append("not reached")

    async def asyncio_free(other: Future[int]) -> None:
        try:
            await other
        except TimeoutError:
            timeouts.append("both were late")

    timeouts: list[str] = []
    assert run_inline(coro, sum_of(Future()), seconds=0) == ["late", "not reached"]
    assert timeouts == ["both were late"]


def test_an_exception_of_one_inline_coroutine_is_reported_and_the_others_continue() -> None:
    future: Future[int] = Future()
    another: Future[int] = Future()

    def during() -> None:
        resolve(future, 3)
        resolve(another, 3)

    def raising(*futures_awaited: Future[int]) -> Callable[[list[str]], Any]:
        async def coro(_said: list[str]) -> None:
            for awaited in futures_awaited:
                await awaited
            raise KeyError("x")

        return coro

    results = run_inline(raising(), sum_of(completed(1)), raising(future), sum_of(another), during=during)
    assert sorted(results) == ["1", "3", "raised KeyError('x')", "raised KeyError('x')"]


# A thread with a loop of its own


class RecordingThread:
    """Loop thread that records its calls until it is closed."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun = threading.Event()
        self.thread = LoopThread("recorder", self._serve)

    async def _serve(self) -> None:
        self.begun.set()
        await self.thread.closing.wait()
        self.done.append("ended")


def test_a_loop_thread_runs_its_coroutine_until_it_is_closed() -> None:
    recorder = RecordingThread()
    assert not recorder.thread.started
    recorder.thread.start()
    assert recorder.begun.wait(TIMEOUT)
    recorder.thread.call_soon(lambda: recorder.done.append("called"))
    recorder.thread.close(TIMEOUT)
    assert (recorder.done, recorder.thread.is_alive(), recorder.thread.loop.is_closed()) == (
        ["called", "ended"],
        False,
        True,
    )


def test_call_soon_does_nothing_before_the_start_and_after_the_end() -> None:
    recorder = RecordingThread()
    recorder.thread.call_soon(lambda: recorder.done.append("early"))
    recorder.thread.close(TIMEOUT)
    assert (recorder.done, recorder.thread.started) == ([], False)
    recorder.thread.start()
    recorder.thread.close(TIMEOUT)
    recorder.thread.call_soon(lambda: recorder.done.append("late"))
    assert recorder.done == ["ended"]


def test_a_pause_ends_with_its_time_with_the_close_or_with_its_event() -> None:
    event = asyncio.Event()
    woken: list[str] = []

    async def serve() -> None:
        await thread.pause(0.0)
        woken.append("time")
        thread.loop.call_soon(event.set)
        await thread.pause(TIMEOUT * 10, event)
        woken.append("event")
        begun.set()
        await thread.pause(TIMEOUT * 10)
        woken.append("end")

    begun, thread = threading.Event(), LoopThread("pausing", serve)
    thread.start()
    assert begun.wait(TIMEOUT)
    thread.close(TIMEOUT)
    assert woken == ["time", "event", "end"]


def test_a_failure_is_a_value() -> None:
    async def fails() -> None:
        raise KeyError("x")

    async def works() -> int:
        return 3

    assert isinstance(asyncio.run(capture_failure(fails())), KeyError)
    assert asyncio.run(capture_failure(works())) is None
