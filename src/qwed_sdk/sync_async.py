"""Runs the operations of the API, sync in one client and async in the other, and makes methods of them."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing, closing
from functools import cached_property, wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, get_args, overload

from qwed_sdk.errors import QWEDError, QWEDTimeoutError
from qwed_sdk.event_stream import SILENCE_TIMEOUT, Event, EventReader
from qwed_sdk.http_request import Attempt, Operation, Pause, Release, RetryPolicy, Step, StepLock, run_with_retries
from qwed_sdk.transport import AsyncTransport, ServerAddress, SyncTransport

B = TypeVar("B")
P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_TIMEOUT = 60.0
DEFAULT_RETRIES = 2


class Driver:
    """Base of both clients: policy, address and transport."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        agent_token: str | None = None,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        """Open a client.

        Args:
            api_key: Key of the organisation; without it `QWED_API_KEY`.
            base_url: Address of the server; without it `QWED_BASE_URL`, or port 8000 of this machine.
            timeout: Seconds for one call, including retries.
            agent_token: Token that is sent in place of the key.
            retries: Repetitions of a call after a broken connection, or the answers 502, 503 and 504.

        Raises:
            QWEDArgumentError: A value cannot be used.
        """
        self._policy = RetryPolicy(timeout, retries).checked()
        self._address = ServerAddress(base_url, api_key, agent_token)
        self._open(self._address)

    def _open(self, address: ServerAddress) -> None:
        """Create the transport."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """Address of the server."""
        return self._address.base_url


class SyncDriver(Driver):
    """Runs operations in the calling thread."""

    def _open(self, address: ServerAddress) -> None:
        self._transport = SyncTransport(address)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation, and return its result."""
        steps, locks = run_with_retries(operation, self._policy), list[StepLock]()
        try:
            done = self._do(next(steps), locks)
            while True:
                done = self._do(steps.send(done), locks)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            for lock in locks:
                lock.release()

    def events(self, types: str | Iterable[str] | None = None, last: int | None = None) -> Iterator[Event]:
        """Follow the events of the organisation, without an end and without a gap.

        A broken connection is opened again, and the stream continues after the last event.

        Args:
            types: Types of events, such as `decision`; without it all.
            last: Index of the last event that was received, or -1 for the first; without it the stream begins now.

        Returns:
            An iterator over the events.

        Raises:
            QWEDConnectionError: The server was unavailable for longer than the `timeout` of the client.
            QWEDArgumentError: `types` or `last` cannot be used.
        """
        return self._follow_events(EventReader(types, last, self._policy))

    def _follow_events(self, reader: EventReader) -> Iterator[Event]:
        while True:
            error: QWEDError | None = None
            try:
                attempt = Attempt(reader.request(), self._policy.timeout)
                with closing(self._transport.follow(attempt, SILENCE_TIMEOUT)) as chunks:
                    for chunk in chunks:
                        yield from reader.read(chunk)
            except QWEDError as broken:
                error = broken
            time.sleep(reader.pause(error))

    def _do(self, step: Step, locks: list[StepLock]) -> Any:
        if isinstance(step, Attempt):
            return self._transport.send(step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Release):
            locks.remove(step.lock)
            return step.lock.release()
        if not step.lock.acquire(self._policy.timeout):
            return _step_timeout()
        locks.append(step.lock)
        return None


class AsyncDriver(Driver):
    """Runs operations without blocking the event loop."""

    def _open(self, address: ServerAddress) -> None:
        self._transport = AsyncTransport(address)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation, and return its result."""
        steps, locks = run_with_retries(operation, self._policy), list[StepLock]()
        try:
            done = await self._do(next(steps), locks)
            while True:
                done = await self._do(steps.send(done), locks)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            for lock in locks:
                lock.release_async()

    def events(self, types: str | Iterable[str] | None = None, last: int | None = None) -> AsyncIterator[Event]:
        """Follow the events of the organisation, without an end and without a gap.

        A broken connection is opened again, and the stream continues after the last event.

        Args:
            types: Types of events, such as `decision`; without it all.
            last: Index of the last event that was received, or -1 for the first; without it the stream begins now.

        Returns:
            An iterator over the events.

        Raises:
            QWEDConnectionError: The server was unavailable for longer than the `timeout` of the client.
            QWEDArgumentError: `types` or `last` cannot be used.
        """
        return self._follow_events(EventReader(types, last, self._policy))

    async def _follow_events(self, reader: EventReader) -> AsyncIterator[Event]:
        import anyio

        while True:
            error: QWEDError | None = None
            try:
                attempt = Attempt(reader.request(), self._policy.timeout)
                async with aclosing(self._transport.follow(attempt, SILENCE_TIMEOUT)) as chunks:
                    async for chunk in chunks:
                        for event in reader.read(chunk):
                            yield event
            except QWEDError as broken:
                error = broken
            await anyio.sleep(reader.pause(error))

    async def _do(self, step: Step, locks: list[StepLock]) -> Any:
        if isinstance(step, Attempt):
            return await self._transport.send(step)
        if isinstance(step, Pause):
            import anyio

            return await anyio.sleep(step.seconds)
        if isinstance(step, Release):
            locks.remove(step.lock)
            return step.lock.release_async()
        if not await step.lock.acquire_async(self._policy.timeout):
            return _step_timeout()
        locks.append(step.lock)
        return None


def _step_timeout() -> QWEDError:
    return QWEDTimeoutError("other calls of the same conversation took the whole timeout", sent=False)


class _Blocking(Protocol):
    def run(self, operation: Operation[T]) -> T: ...


class _Awaiting(Protocol):
    def run(self, operation: Operation[T]) -> Coroutine[Any, Any, T]: ...


class ClientMethod(Generic[P, T]):
    """Operation as a method of both clients: blocking in one, `async def` in the other."""

    def __init__(self, operation: Callable[..., Operation[T]], *, binds: bool = False) -> None:
        self._operation = operation
        self._binds = binds
        """True if the first parameter of the operation is the agent's binding."""

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...

    @overload
    def __get__(self, instance: _Blocking, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, instance: _Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        # Imported here: the hook of coding agents runs operations without their methods, and must start quickly.
        from inspect import iscoroutinefunction

        method = self._async_method if iscoroutinefunction(owner.run) else self._sync_method  # type: ignore[attr-defined]  # every client has it
        return method if instance is None else MethodType(method, instance)

    @cached_property
    def _sync_method(self) -> Callable[..., T]:
        operation, binds = self._operation, self._binds

        @wraps(operation)
        def method(self: Any, /, *args: Any, **kwargs: Any) -> T:
            result: T = self.run(operation(*((self.binding,) if binds else ()), *args, **kwargs))
            return result

        return _as_method(method, operation, skipped=int(binds))

    @cached_property
    def _async_method(self) -> Callable[..., Coroutine[Any, Any, T]]:
        operation, binds = self._operation, self._binds

        @wraps(operation)
        async def method(self: Any, /, *args: Any, **kwargs: Any) -> T:
            result: T = await self.run(operation(*((self.binding,) if binds else ()), *args, **kwargs))
            return result

        return _as_method(method, operation, skipped=int(binds))


def client_method(operation: Callable[P, Operation[T]]) -> ClientMethod[P, T]:
    """Return the operation as a method of both clients."""
    return ClientMethod(operation)


def agent_method(operation: Callable[Concatenate[B, P], Operation[T]]) -> ClientMethod[P, T]:
    """Return the operation of one agent as a method of both agent clients."""
    return ClientMethod(operation, binds=True)


M = TypeVar("M", bound=Callable[..., Any])


def _as_method(method: M, operation: Callable[..., Any], *, skipped: int = 0) -> M:
    """Give the method the signature that `help` and editors show: `self`, the operation's parameters and result."""
    import inspect

    signature = inspect.signature(operation)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    result = get_args(signature.return_annotation)[-1]
    parameters = list(signature.parameters.values())[skipped:]
    method_signature = signature.replace(parameters=[own, *parameters], return_annotation=result)
    method.__signature__ = method_signature  # type: ignore[attr-defined]
    method.__annotations__ = {**operation.__annotations__, "return": result}
    return method
