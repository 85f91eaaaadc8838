"""`Ticket`: a result that is not there yet, which a thread may block on and a coroutine may await.

The kernel's walk is one coroutine. Over HTTP it runs on the event loop (`on_loop`); in process it is driven by the
calling thread (`in_thread`), with no event loop at all. Both await the same tickets.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_TICK = 1.0
"""Seconds by which an errand may be told too late that it waits in vain."""

Waker = Callable[[list["Ticket[Any]"]], None]
Soon = Callable[[Callable[[], None]], None]
"""Calls something when whatever is at hand has been done."""


def at_once(do: Callable[[], None]) -> None:
    """Nothing else is at hand."""
    do()


class Ticket(Generic[T]):
    """A one-shot result, completed once from any thread with `complete` and then announced with `announce`."""

    __slots__ = ("_event", "_failure", "_lock", "_value", "_waiter", "_waker", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._failure: BaseException | None = None
        self._event: threading.Event | None = None
        self._waiter: Callable[[Ticket[T]], None] | None = None
        """Whoever waits on a loop, called there by the waker."""
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
            raise _late()


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
    """Drives walks on one event loop, each in a task of its own or as an errand without one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self.seconds = seconds
        self._beginning: deque[Callable[[], None]] = deque()
        self._patient: dict[Errand, float] = {}
        """The errands that wait, and until when; in that order, because all have the same time."""
        self._ticking = False

    def soon(self, do: Callable[[], None]) -> None:
        """Have `do` called once every walk that can go on in this turn of the loop has; at once off the loop."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        (self._loop.call_soon if here else at_once)(do)

    def begin(self, walk: Coroutine[Any, None, None]) -> None:
        """Run `walk` as an errand, from the end of this turn on."""
        if not self._beginning:
            self._loop.call_soon(self._begin_all)
        self._beginning.append(Errand(self, walk).go_on)

    def _begin_all(self) -> None:
        beginning, self._beginning = self._beginning, deque()
        self._call_all(beginning)

    def _call_all(self, calls: deque[Callable[[], None]]) -> None:
        try:
            while calls:
                calls.popleft()()
        finally:
            # One was surprised, which is the loop's to tell; the others go on.
            if calls:
                self._loop.call_soon(self._call_all, calls)

    def expect(self, errand: "Errand") -> None:
        """From now on `errand` waits."""
        self._patient[errand] = self._loop.time() + self.seconds
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._tick)

    def found(self, errand: "Errand") -> None:
        """What `errand` waited for is there."""
        del self._patient[errand]

    def _tick(self) -> None:
        """Wake whoever has waited too long. One timer for all: one for each would cost more than this."""
        now = self._loop.time()
        self._ticking = bool(self._patient)
        if self._ticking:
            self._loop.call_later(_TICK, self._tick)
        self._call_all(deque(errand.give_up for errand, until in self._patient.items() if until <= now))

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

    async def result(self, ticket: Ticket[T]) -> T:
        """What the ticket comes to, for whoever is no walk."""
        await self._wait(ticket, self.seconds)
        return ticket.result()

    async def _wait(self, ticket: Ticket[Any], seconds: float) -> None:
        future = self._loop.create_future()
        if not self.put_in(ticket, lambda _ticket: _finish(future)):
            return
        late = self._loop.call_later(seconds, _expire, future)
        try:
            await future
        finally:
            late.cancel()

    def put_in(self, ticket: Ticket[Any], waiter: Callable[[Ticket[Any]], None]) -> bool:
        """Have `waiter` called on the loop once the result is there; False where it is."""
        with ticket._lock:
            if ticket.done:
                return False
            ticket._waiter = waiter
            ticket._waker = self._wake
        return True

    def _wake(self, tickets: list[Ticket[Any]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken, deque(tickets))
        except RuntimeError:
            # A closed loop has nobody left to wake, and the announcing thread serves others.
            if not self._loop.is_closed():
                raise

    def _woken(self, tickets: deque[Ticket[Any]]) -> None:
        try:
            while tickets:
                ticket = tickets.popleft()
                if ticket._waiter is not None:
                    ticket._waiter(ticket)
        finally:
            if tickets:
                self._loop.call_soon(self._woken, tickets)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _expire(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(_late())


def _late() -> TimeoutError:
    return TimeoutError("the result did not arrive in time")


class Errand:
    """A walk that goes on when what it waits for is there, with no task, no future and no timer of its own."""

    __slots__ = ("_driver", "_ticket", "_walk")

    def __init__(self, driver: LoopDriver, walk: Coroutine[Any, None, None]) -> None:
        self._driver = driver
        self._walk = walk
        self._ticket: Ticket[Any] | None = None

    def go_on(self, ticket: Ticket[Any] | None = None) -> None:
        """Walk to the next ticket that is not there yet; nothing, where `ticket` is not what it waits for."""
        if ticket is not self._ticket:
            return
        if ticket is not None:
            self._driver.found(self)
        self._walk_on(None)

    def give_up(self) -> None:
        """Go on without what it waits for, if it still waits."""
        if self._ticket is not None:
            self._driver.found(self)
            self._walk_on(_late())

    def _walk_on(self, late: TimeoutError | None) -> None:
        self._ticket = None
        try:
            ticket = self._walk.send(None) if late is None else self._walk.throw(late)
            while not self._driver.put_in(ticket, self.go_on):
                ticket = self._walk.send(None)
        except StopIteration:
            return
        self._ticket = ticket
        self._driver.expect(self)


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
