"""`@agent.verified`: a decorator that verifies each call of a Python function before it runs."""

import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from qwed_sdk.operations import tool_check
from qwed_sdk.operations.tool_check import Rules
from qwed_sdk.permits import Permit, Refusal

if TYPE_CHECKING:
    from qwed_sdk.agent import BaseAgentClient

F = TypeVar("F", bound=Callable[..., Any])
MAX_LOG_SECONDS = 5.0
"""Seconds that recording the outcome may delay a task, cancelled or not."""


class _FunctionSignature(NamedTuple):
    """Parameters of a function, and the class it is a method of."""

    signature: inspect.Signature
    owner: tuple[str, str] | None
    """Module and qualified name of the class, or None."""

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "_FunctionCall":
        """Return the call with every argument by name, defaults included."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        first = next(iter(self.signature.parameters), "")
        own = first in ("self", "cls") and self._owned_by(bound.arguments[first])
        return _FunctionCall(self.signature, bound.arguments, first if own else None)

    def _owned_by(self, value: Any) -> bool:
        """Return True if `value` is the object of a method call: a plain function may have a parameter `self` too."""
        kinds = (*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ()))
        return any((kind.__module__, kind.__qualname__) == self.owner for kind in kinds)


class _FunctionCall(NamedTuple):
    """One call of a function."""

    signature: inspect.Signature
    arguments: dict[str, Any]
    own: str | None
    """Name of the parameter that holds the object of a method; it is not verified."""

    def verified_arguments(self) -> dict[str, Any]:
        """Return the arguments that are verified."""
        return {name: value for name, value in self.arguments.items() if name != self.own}

    def with_permitted(self, permit: Permit) -> inspect.BoundArguments:
        """Return the call with the permitted arguments; raise ActionDenied if they do not fit its parameters."""
        intended = OrderedDict((name, permit.arguments.get(name, value)) for name, value in self.arguments.items())
        call = inspect.BoundArguments(self.signature, intended)
        if not _rebinds_identically(call):
            reason = "its correction does not fit its parameters"
            raise Refusal(permit.tool, reason, answer=permit.answer).error()
        return call


def _rebinds_identically(call: inspect.BoundArguments) -> bool:
    """Return True if every argument reaches its own parameter: a name in `**kwargs` may equal that of a parameter."""
    try:
        again = call.signature.bind(*call.args, **call.kwargs)
    except TypeError:
        return False
    again.apply_defaults()
    kinds = {name: parameter.kind for name, parameter in call.signature.parameters.items()}
    return all(
        _object_ids(again.arguments[name], kinds[name]) == _object_ids(value, kinds[name])
        for name, value in call.arguments.items()
    )


def _object_ids(value: Any, kind: Any) -> Any:
    """Return the identities of the objects in an argument."""
    if kind is inspect.Parameter.VAR_POSITIONAL:
        return [id(item) for item in value]
    if kind is inspect.Parameter.VAR_KEYWORD:
        return {name: id(item) for name, item in value.items()}
    return id(value)


def _signature_of(function: Callable[..., Any]) -> _FunctionSignature:
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    method = outer and not outer.endswith("<locals>")
    return _FunctionSignature(inspect.signature(function), (function.__module__, outer) if method else None)


def verified_decorator(
    agent: "BaseAgentClient[Any]",
    *,
    tool: str | None,
    action: Mapping[str, str] | None,
    options: Mapping[str, Any] | None,
    wait: float,
) -> Callable[[F], F]:
    """Return the decorator."""

    def decorate(function: F) -> F:
        name = tool or _function_name(function)
        rules = Rules({} if action is None else {name: action}, options, wait)
        if _is_kind(function, inspect.isgeneratorfunction) or _is_kind(function, inspect.isasyncgenfunction):
            raise TypeError(f"`{name}` is a generator, which runs after its call has returned: verify what it calls")
        _require_parameters(function, name, action or {})
        wrap = _wrap_async if _is_kind(function, inspect.iscoroutinefunction) else _wrap_sync
        return wrap(agent, name, rules, function)  # type: ignore[return-value]

    return decorate


def _require_parameters(function: Callable[..., Any], name: str, action: Mapping[str, str]) -> None:
    parameters = inspect.signature(function).parameters
    for member, argument in action.items():
        if member != "type" and argument not in parameters:
            raise TypeError(f"`{name}` has no parameter `{argument}` that could be the {member} of its action")


def _function_name(function: Any) -> str:
    if isinstance(function, classmethod | staticmethod | property):
        raise TypeError(f"put `verified` below `@{type(function).__name__}`, next to the function")
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"a {type(function).__name__} has no name of its own: give `tool`")
    return name


def _is_kind(function: Any, kind: Callable[[Any], bool]) -> bool:
    """Return True if the function, or the `__call__` of an object, is of this kind."""
    return kind(function) or (not inspect.isroutine(function) and kind(type(function).__call__))


def _wrap_sync(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    from qwed_sdk.agent import QWEDAsyncAgentClient
    from qwed_sdk.tool_guard import Checkpoint

    if isinstance(agent, QWEDAsyncAgentClient):
        raise TypeError(f"`{tool}` is not an `async def` function: verify it with a QWEDAgentClient")
    checkpoint, signature = Checkpoint(agent), _signature_of(function)
    checkpoint.rules = rules

    @wraps(function)
    def verified(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(args, kwargs)
        permit = _permit_or_raise(checkpoint.before(tool, call.verified_arguments()))
        permitted = call.with_permitted(permit)
        done, result = False, None
        try:
            result = function(*permitted.args, **permitted.kwargs)
            done = True
            return result
        finally:
            checkpoint.after(permit, done, result)

    return verified


def _wrap_async(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    signature = _signature_of(function)
    run = _async_runner(agent)

    @wraps(function)
    async def verified(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(args, kwargs)
        permit = _permit_or_raise(await run(tool_check.before(agent.binding, rules, tool, call.verified_arguments())))
        permitted = call.with_permitted(permit)
        done, result = False, None
        try:
            result = await function(*permitted.args, **permitted.kwargs)
            done = True
            return result
        finally:
            await _log_shielded(run, tool_check.after(agent.binding, permit, done, result))

    return verified


async def _log_shielded(run: Callable[[Any], Any], call: Any) -> None:
    """Record the outcome although the task is cancelled, within MAX_LOG_SECONDS."""
    import anyio

    if isinstance(sys.exception(), GeneratorExit):
        # The coroutine was closed: nothing can be awaited any more.
        return
    with anyio.move_on_after(MAX_LOG_SECONDS, shield=True):
        await run(call)


def _async_runner(agent: Any) -> Callable[[Any], Any]:
    """Return a function that awaits an operation, in a thread if the client is sync."""
    from qwed_sdk.agent import QWEDAsyncAgentClient
    from qwed_sdk.tool_guard import run_in_thread

    if isinstance(agent, QWEDAsyncAgentClient):
        return agent.run

    async def run(call: Any) -> Any:
        return await run_in_thread(agent.run, call)

    return run


def _permit_or_raise(outcome: Permit | Refusal) -> Permit:
    if not isinstance(outcome, Permit):
        raise outcome.error()
    return outcome
