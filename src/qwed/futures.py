"""One-shot futures that a thread can block on and a coroutine can await, and the two runners of kernel coroutines.

A kernel request is one coroutine. In process the calling thread runs it with `run_in_thread`, because an event loop
would cost more than the decision. Over HTTP a `LoopRunner` runs it on the event loop, because a thread for each request
would. `LoopRunner.start_inline` does so without a task, which saves a tenth of the CPU time of a short decision.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
TICK_SECONDS = 1.0
"""Seconds between two checks for expired waits; an inline run times out at most this much too late."""

Waker = Callable[[list["Future[Any]"]], None]
Pool = Callable[..., Awaitable[Any]]
"""Calls a function with its arguments in another thread, and returns its result."""
CallScheduler = Callable[[Callable[[], None]], None]
"""Schedules a callback for the end of the current event loop tick."""


_lock = threading.Lock()
"""Held to publish futures and to register their waiters, for a few instructions: one lock for all costs less."""


def call_now(do: Callable[[], None]) -> None:
    """Call `do` immediately; the scheduler where no event loop runs."""
    do()


class Future(Generic[T]):
    """One-shot result, set once from any thread with `set_result` and published with `notify`."""

    # Attributes of the class: every decision makes a future, and a constructor would cost more than all else in it.
    done = False
    _value: T | None = None
    _failure: BaseException | None = None
    _event: threading.Event | None = None
    _waiter: "Callable[[Future[T]], None] | None" = None
    """Callback of the waiting coroutine, called on its loop by the waker."""
    _waker: Waker | None = None

    def set_result(self, value: T) -> None:
        """Set the result. Waiters are woken by `notify`."""
        self._value = value

    def set_exception(self, failure: BaseException) -> None:
        """Set an exception in place of a result. Waiters are woken by `notify`."""
        self._failure = failure

    def result(self) -> T:
        """Return the value, or raise the exception."""
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]  # T may itself be None

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            yield self
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]  # T may itself be None

    def wait_result(self, seconds: float) -> T:
        """Block this thread for at most `seconds` and return the result; raise TimeoutError after that."""
        self.wait(seconds)
        return self.result()

    def wait(self, seconds: float) -> None:
        """Block this thread until the future is done, without raising its exception; raise TimeoutError after
        `seconds`."""
        with _lock:
            if self.done:
                return
            # Every thread that waits shares one event: a second one would leave the first waiter asleep.
            event = self._event = self._event or threading.Event()
        if not event.wait(seconds):
            raise _timeout_error()


def completed(value: T) -> Future[T]:
    """Return a future that is already done."""
    future: Future[T] = Future()
    future.set_result(value)
    future.done = True
    return future


def notify(futures: Iterable[Future[Any]]) -> None:
    """Mark the futures as done and wake their waiters, with one call for each event loop."""
    groups: dict[Waker, list[Future[Any]]] = {}
    futures = [*futures]
    with _lock:
        for future in futures:
            future.done = True
    for future in futures:
        if future._event is not None:
            future._event.set()
        if future._waker is not None:
            groups.setdefault(future._waker, []).append(future)
    for waker, group in groups.items():
        waker(group)


def run_in_thread(coro: Coroutine[Any, None, T], seconds: float) -> T:
    """Run `coro` in this thread, blocking on each future it awaits."""
    try:
        future = coro.send(None)
        while True:
            try:
                # Not `wait_result`: an exception is raised inside the coroutine, where it can be caught.
                future.wait(seconds)
            except TimeoutError as error:
                future = coro.throw(error)
            else:
                future = coro.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        coro.close()


class _Step(NamedTuple):
    """Future that a coroutine awaits, or its result."""

    future: Future[Any] | None
    value: Any = None


def _advance(coro: Coroutine[Any, None, Any], error: TimeoutError | None) -> _Step:
    """Run `coro` up to the next pending future; an error is raised inside it, where it can be caught."""
    try:
        return _Step(coro.send(None) if error is None else coro.throw(error))
    except StopIteration as stop:
        return _Step(None, stop.value)


class LoopRunner:
    """Runs kernel coroutines on one event loop, in the task that calls `run` or inline without a task."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self.seconds = seconds
        self._waiting: dict[_InlineRun, float] = {}
        """Inline runs that wait and their deadlines, in deadline order because all have the same timeout."""
        self._timer_running = False

    def call_at_end_of_tick(self, do: Callable[[], None]) -> None:
        """Call `do` after every coroutine that is ready in this loop tick has run; immediately when called off the
        loop."""
        try:
            on_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            on_loop = False
        (self._loop.call_soon if on_loop else call_now)(do)

    async def run(self, coro: Coroutine[Any, None, T], seconds: float | None = None, pool: Pool | None = None) -> T:
        """Run `coro`, awaiting each future it waits for, each for at most `seconds` or the runner's own timeout.

        With a `pool`, all but the waiting happens there.
        """
        timeout = self.seconds if seconds is None else seconds
        error: TimeoutError | None = None
        try:
            while True:
                step = _advance(coro, error) if pool is None else await pool(_advance, coro, error)
                if step.future is None:
                    return step.value  # type: ignore[no-any-return]
                error = await self._wait(step.future, timeout)
        finally:
            # A cancelled coroutine releases its resources now, not when it is garbage-collected. ValueError: a thread
            # of the pool is still running it, and closes it afterwards.
            with suppress(ValueError):
                coro.close()

    async def result(self, future: Future[T], seconds: float | None = None) -> T:
        """Await the future and return its result, for callers that are not kernel coroutines."""
        error = await self._wait(future, self.seconds if seconds is None else seconds)
        if error is not None:
            raise error
        return future.result()

    async def _wait(self, future: Future[Any], seconds: float) -> TimeoutError | None:
        woken = self._loop.create_future()
        if not self.subscribe(future, lambda _future: _resolve(woken, None)):
            return None
        timer = self._loop.call_later(seconds, _expire, woken)
        try:
            error: TimeoutError | None = await woken
        finally:
            timer.cancel()
        return error

    def start_inline(self, coro: Coroutine[Any, None, None]) -> None:
        """Run `coro` without a task, starting in the next tick."""
        self._loop.call_soon(_InlineRun(self, coro).resume)

    def add_waiter(self, run: "_InlineRun") -> None:
        """Register an inline run as waiting, with a deadline."""
        self._waiting[run] = self._loop.time() + self.seconds
        if not self._timer_running:
            self._timer_running = True
            self._loop.call_later(TICK_SECONDS, self._tick)

    def remove_waiter(self, run: "_InlineRun") -> None:
        """Remove an inline run from the waiting ones."""
        del self._waiting[run]

    def _tick(self) -> None:
        """Wake the inline runs that have waited too long. One timer serves all: one for each would cost more."""
        now = self._loop.time()
        self._timer_running = bool(self._waiting)
        if self._timer_running:
            self._loop.call_later(TICK_SECONDS, self._tick)
        for run, deadline in self._waiting.items():
            if deadline > now:
                break
            self._loop.call_soon(run.expire)

    def subscribe(self, future: Future[Any], waiter: Callable[[Future[Any]], None]) -> bool:
        """Have `waiter` called on the loop when the future is done; return False if it is done already."""
        with _lock:
            if future.done:
                return False
            future._waiter = waiter
            future._waker = self._wake
        return True

    def _wake(self, futures: list[Future[Any]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken, deque(futures))
        except RuntimeError:
            # A closed loop has no waiters left, and the notifying thread must go on.
            if not self._loop.is_closed():
                raise

    def _woken(self, futures: deque[Future[Any]]) -> None:
        try:
            while futures:
                future = futures.popleft()
                if future._waiter is not None:
                    future._waiter(future)
        finally:
            # A waiter raised, which the loop reports; the remaining ones are still called.
            if futures:
                self._loop.call_soon(self._woken, futures)


def _resolve(future: "asyncio.Future[TimeoutError | None]", error: TimeoutError | None) -> None:
    if not future.done():
        future.set_result(error)


def _expire(future: "asyncio.Future[TimeoutError | None]") -> None:
    _resolve(future, _timeout_error())


def _timeout_error() -> TimeoutError:
    return TimeoutError("the result did not arrive in time")


class _InlineRun:
    """Coroutine that is resumed when its awaited future is done, without a task, asyncio future or timer of its own."""

    __slots__ = ("_coro", "_future", "_runner")

    def __init__(self, runner: LoopRunner, coro: Coroutine[Any, None, None]) -> None:
        self._runner = runner
        self._coro = coro
        self._future: Future[Any] | None = None

    def resume(self, future: Future[Any] | None = None) -> None:
        """Run the coroutine up to the next pending future; do nothing if `future` is not the awaited one."""
        if future is not self._future:
            return
        if future is not None:
            self._runner.remove_waiter(self)
        self._go_on(None)

    def expire(self) -> None:
        """Raise TimeoutError in the coroutine if it still waits."""
        if self._future is not None:
            self._runner.remove_waiter(self)
            self._go_on(_timeout_error())

    def _go_on(self, error: TimeoutError | None) -> None:
        self._future = None
        try:
            future = self._coro.send(None) if error is None else self._coro.throw(error)
            while not self._runner.subscribe(future, self.resume):
                future = self._coro.send(None)
        except StopIteration:
            return
        self._future = future
        self._runner.add_waiter(self)


class LoopThread(threading.Thread):
    """Thread with an event loop of its own, for one coroutine that runs until the thread is closed.

    `start` and `close` are called once; `call_soon` may be called from any thread at any time.
    """

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(name=name, daemon=True)
        self.loop: asyncio.AbstractEventLoop
        """Created by `start` and not before: a loop holds file descriptors."""
        self.closing = asyncio.Event()
        """Set by `close`; the coroutine ends when it is set."""
        self._main = main

    @property
    def started(self) -> bool:
        """True once `start` was called."""
        return self.ident is not None

    def start(self) -> None:
        """Create the loop and start the thread."""
        self.loop = asyncio.new_event_loop()
        super().start()

    def run(self) -> None:
        """Run the coroutine; leaving the runner cancels every unfinished task."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._main())

    def call_soon(self, do: Callable[[], object]) -> None:
        """Call `do` on the loop; do nothing if the loop has not started or is closed."""
        loop = getattr(self, "loop", None)
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(do)
        except RuntimeError:
            if not loop.is_closed():
                raise

    async def pause(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Wait for `seconds`, or until the event is set; the default event is `closing`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (until or self.closing).wait()

    def close(self, seconds: float) -> None:
        """Signal the coroutine to end and wait up to `seconds` for it."""
        if self.started:
            self.call_soon(self.closing.set)
            self.join(seconds)


async def capture_failure(work: Coroutine[Any, Any, object]) -> BaseException | None:
    """Return the exception that `work` raised, or None: a thread that serves many requests must survive it."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    return outcome if isinstance(outcome, BaseException) else None
