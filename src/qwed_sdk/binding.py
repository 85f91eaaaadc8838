"""How a verb becomes a method: driven to its end, blocking in one client and awaiting in the other."""

import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing, closing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args

from qwed_sdk.errors import QWEDError, QWEDTimeoutError
from qwed_sdk.following import SILENCE, Event, Following
from qwed_sdk.transport import Address, AsyncTransport, SyncTransport
from qwed_sdk.wire import Attempt, Call, Free, Pause, Policy, Step, Turns, steps_of

B = TypeVar("B")
P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT = 60.0
RETRIES = 2


class Driver:
    """Whom it asks, with what credential, how patiently."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        *,
        agent_token: str | None = None,
        retries: int = RETRIES,
    ) -> None:
        self._policy = Policy(timeout, retries).checked()
        self._address = Address(base_url, api_key, agent_token)
        self._open(self._address)

    def _open(self, address: Address) -> None:
        """Make ready to send."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._address.base_url


class SyncDriver(Driver):
    """Does the steps of a call, one after the other."""

    def _open(self, address: Address) -> None:
        self._transport = SyncTransport(address)

    def run(self, call: Call[T]) -> T:
        """What comes of the call."""
        steps, held = steps_of(call, self._policy), list[Turns]()
        try:
            done = self._do(next(steps), held)
            while True:
                done = self._do(steps.send(done), held)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            for turns in held:
                turns.free()

    def events(self, types: str | Iterable[str] | None = None, last: int | None = None) -> Iterator[Event]:
        """What happens in the organisation from now on, or since event `last`, without end and without a gap.

        A connection that breaks is made again; QWEDConnectionError where the server stays away for longer than the
        client's `timeout`.
        """
        return self._followed(Following(types, last, self._policy))

    def _followed(self, following: Following) -> Iterator[Event]:
        while True:
            error: QWEDError | None = None
            try:
                asked = Attempt(following.request(), self._policy.timeout)
                with closing(self._transport.follow(asked, SILENCE)) as chunks:
                    for chunk in chunks:
                        yield from following.read(chunk)
            except QWEDError as broken:
                error = broken
            time.sleep(following.pause(error))

    def _do(self, step: Step, held: list[Turns]) -> Any:
        if isinstance(step, Attempt):
            return self._transport.send(step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Free):
            held.remove(step.turns)
            return step.turns.free()
        if not step.turns.hold(self._policy.timeout):
            return _no_turn()
        held.append(step.turns)
        return None


class AsyncDriver(Driver):
    """The same without blocking the event loop."""

    def _open(self, address: Address) -> None:
        self._transport = AsyncTransport(address)

    async def run(self, call: Call[T]) -> T:
        """What comes of the call."""
        steps, held = steps_of(call, self._policy), list[Turns]()
        try:
            done = await self._do(next(steps), held)
            while True:
                done = await self._do(steps.send(done), held)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            for turns in held:
                turns.free_awaiting()

    def events(self, types: str | Iterable[str] | None = None, last: int | None = None) -> AsyncIterator[Event]:
        """What happens in the organisation from now on, or since event `last`, without end and without a gap.

        A connection that breaks is made again; QWEDConnectionError where the server stays away for longer than the
        client's `timeout`.
        """
        return self._followed(Following(types, last, self._policy))

    async def _followed(self, following: Following) -> AsyncIterator[Event]:
        import anyio

        while True:
            error: QWEDError | None = None
            try:
                asked = Attempt(following.request(), self._policy.timeout)
                async with aclosing(self._transport.follow(asked, SILENCE)) as chunks:
                    async for chunk in chunks:
                        for event in following.read(chunk):
                            yield event
            except QWEDError as broken:
                error = broken
            await anyio.sleep(following.pause(error))

    async def _do(self, step: Step, held: list[Turns]) -> Any:
        if isinstance(step, Attempt):
            return await self._transport.send(step)
        if isinstance(step, Pause):
            import anyio

            return await anyio.sleep(step.seconds)
        if isinstance(step, Free):
            held.remove(step.turns)
            return step.turns.free_awaiting()
        if not await step.turns.hold_awaiting(self._policy.timeout):
            return _no_turn()
        held.append(step.turns)
        return None


def _no_turn() -> QWEDError:
    return QWEDTimeoutError("other calls of the same conversation took all the time there was", sent=False)


def blocking(verb: Callable[P, Call[T]]) -> Callable[Concatenate[Any, P], T]:
    """The verb as a method that returns what came of it."""

    @wraps(verb)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self.run(verb(*args, **kwargs))
        return result

    return _as_method(method, verb)


def awaited(verb: Callable[P, Call[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The verb as an `async def` method."""

    @wraps(verb)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self.run(verb(*args, **kwargs))
        return result

    return _as_method(method, verb)


def own_blocking(verb: Callable[Concatenate[B, P], Call[T]]) -> Callable[Concatenate[Any, P], T]:
    """The verb of a client that is bound to something, as a method that returns what came of it."""

    @wraps(verb)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self.run(verb(self.bound, *args, **kwargs))
        return result

    return _as_method(method, verb, bound=1)


def own_awaited(verb: Callable[Concatenate[B, P], Call[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same as an `async def` method."""

    @wraps(verb)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self.run(verb(self.bound, *args, **kwargs))
        return result

    return _as_method(method, verb, bound=1)


M = TypeVar("M", bound=Callable[..., Any])


def _as_method(method: M, verb: Callable[..., Any], *, bound: int = 0) -> M:
    """The method with a signature that `help` and editors show: `self`, then what the verb takes, and what it gives."""
    told = inspect.signature(verb)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    returned = get_args(told.return_annotation)[-1]
    taken = list(told.parameters.values())[bound:]
    shown = told.replace(parameters=[own, *taken], return_annotation=returned)
    method.__signature__ = shown  # type: ignore[attr-defined]
    method.__annotations__ = {**verb.__annotations__, "return": returned}
    return method
