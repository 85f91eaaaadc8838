"""`Ticket`: a result that is not there yet, which a thread may block on and a coroutine may await.

The kernel's walk is one coroutine. Over HTTP it runs on the event loop (`on_loop`); in process it is driven by the
calling thread (`in_thread`), with no event loop at all. Both await the same tickets.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Waker = Callable[[list["Ticket[Any]"]], None]
Soon = Callable[[Callable[[], None]], None]
"""Calls something when whatever is at hand has been done."""


def at_once(do: Callable[[], None]) -> None:
    """Nothing else is at hand."""
    do()


class Ticket(Generic[T]):
    """A one-shot result, completed once from any thread with `complete` and then announced with `announce`."""

    __slots__ = ("_event", "_failure", "_future", "_lock", "_value", "_waker", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._failure: BaseException | None = None
        self._event: threading.Event | None = None
        self._future: asyncio.Future[None] | None = None
        self._waker: Waker | None = None
        self._lock = threading.Lock()

    def complete(self, value: T) -> None:
        """Set the result. Nobody wakes until `announce`."""
        self._value = value

    def fail(self, failure: BaseException) -> None:
        """Set an exception in place of a result. Nobody wakes until `announce`."""
        self._failure = failure

    def result(self) -> T:
        """The value, or the failure raised."""
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]  # T may itself be None

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            yield self
        return self.result()

    def block(self, seconds: float) -> T:
        """Wait in this thread, at most `seconds`; TimeoutError after that."""
        self.wait(seconds)
        return self.result()

    def wait(self, seconds: float) -> None:
        """Wait in this thread until the result or failure is there, raising neither; TimeoutError after `seconds`."""
        with self._lock:
            if self.done:
                return
            # Every thread that waits shares one event: a second one would leave the first waiter asleep.
            event = self._event = self._event or threading.Event()
        if not event.wait(seconds):
            raise TimeoutError("the result did not arrive in time")


def done(value: T) -> Ticket[T]:
    """A ticket whose result is already there."""
    ticket: Ticket[T] = Ticket()
    ticket.complete(value)
    ticket.done = True
    return ticket


def announce(tickets: Iterable[Ticket[Any]]) -> None:
    """Wake everyone who waits for these; tickets of one event loop are woken with one call."""
    groups: dict[Waker, list[Ticket[Any]]] = {}
    for ticket in tickets:
        with ticket._lock:
            ticket.done = True
        if ticket._event is not None:
            ticket._event.set()
        if ticket._waker is not None:
            groups.setdefault(ticket._waker, []).append(ticket)
    for waker, group in groups.items():
        waker(group)


def in_thread(walk: Coroutine[Any, None, T], seconds: float) -> T:
    """Drive `walk` in this thread, blocking on each ticket it waits for."""
    try:
        ticket = walk.send(None)
        while True:
            try:
                # Not `block`: a failure is raised inside the walk, where it can be caught.
                ticket.wait(seconds)
            except TimeoutError as late:
                ticket = walk.throw(late)
            else:
                ticket = walk.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        walk.close()


class LoopDriver:
    """Drives walks on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self.seconds = seconds

    def soon(self, do: Callable[[], None]) -> None:
        """Have `do` called once every walk that can go on in this turn of the loop has; at once off the loop."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        (self._loop.call_soon if here else at_once)(do)

    async def drive(self, walk: Coroutine[Any, None, T], seconds: float | None = None) -> T:
        """Run `walk`, awaiting each ticket it waits for, each at most `seconds` or the driver's own time."""
        try:
            ticket = walk.send(None)
            while True:
                try:
                    await self._wait(ticket, self.seconds if seconds is None else seconds)
                except TimeoutError as late:
                    ticket = walk.throw(late)
                else:
                    ticket = walk.send(None)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            # A cancelled walk lets go of what it holds now, not when it is collected.
            walk.close()

    async def _wait(self, ticket: Ticket[Any], seconds: float) -> None:
        future = self._loop.create_future()
        with ticket._lock:
            if ticket.done:
                return
            ticket._future = future
            ticket._waker = self._wake
        late = self._loop.call_later(seconds, _expire, future)
        try:
            await future
        finally:
            late.cancel()

    def _wake(self, tickets: list[Ticket[Any]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_finish, tickets)
        except RuntimeError:
            # A closed loop has nobody left to wake, and the announcing thread serves others.
            if not self._loop.is_closed():
                raise


def _finish(tickets: list[Ticket[Any]]) -> None:
    for ticket in tickets:
        if ticket._future is not None and not ticket._future.done():
            ticket._future.set_result(None)


def _expire(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError("the result did not arrive in time"))


class LoopThread(threading.Thread):
    """A thread with an event loop of its own, for one coroutine that runs until it is told to end.

    `start` and `close` are called once; `tell` may be called from any thread at any time.
    """

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(name=name, daemon=True)
        self.loop: asyncio.AbstractEventLoop
        """There from the start on, and not before: a loop holds descriptors."""
        self.closing = asyncio.Event()
        """What the coroutine ends for."""
        self._main = main

    @property
    def started(self) -> bool:
        """Whether it was."""
        return self.ident is not None

    def start(self) -> None:
        """Begin with the coroutine."""
        self.loop = asyncio.new_event_loop()
        super().start()

    def run(self) -> None:
        """Run the coroutine; leaving the runner cancels every task that is under way."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._main())

    def tell(self, do: Callable[[], object]) -> None:
        """Have `do` called on the loop; where that has not begun or is over, there is nobody to tell."""
        loop = getattr(self, "loop", None)
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(do)
        except RuntimeError:
            if not loop.is_closed():
                raise

    async def pause(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Wait so long, or until what is waited for; by itself that is the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (until or self.closing).wait()

    def close(self, seconds: float) -> None:
        """Tell it to end, and wait so long for that."""
        if self.started:
            self.tell(self.closing.set)
            self.join(seconds)


async def failure_of(work: Coroutine[Any, Any, object]) -> BaseException | None:
    """What `work` raised, as a value: a thread that serves others must outlive it, whatever it is."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    return outcome if isinstance(outcome, BaseException) else None
