"""`@agent.verified`: a Python function that runs only when its call was permitted."""

import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from qwed_sdk.calls import checks
from qwed_sdk.calls.checks import Permit, Refusal, Rules

if TYPE_CHECKING:
    from qwed_sdk.agent import OwnClient

F = TypeVar("F", bound=Callable[..., Any])
LONGEST_GOODBYE = 5.0
"""Seconds that logging may hold up a task, cancelled or not."""


class _Called(NamedTuple):
    """A function's parameters, and how a call of it is told to the server."""

    signature: inspect.Signature
    owner: tuple[str, str] | None
    """Module and name of the class whose method it is."""

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "_Bound":
        """Every argument by its name, defaults included: what is not said is done all the same."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        first = next(iter(self.signature.parameters), "")
        own = first in ("self", "cls") and self._owned_by(bound.arguments[first])
        return _Bound(self.signature, bound.arguments, first if own else None)

    def _owned_by(self, value: Any) -> bool:
        """Whether a method was called on this: a function may call any of its arguments `self`."""
        kinds = (*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ()))
        return any((kind.__module__, kind.__qualname__) == self.owner for kind in kinds)


class _Bound(NamedTuple):
    """One call."""

    signature: inspect.Signature
    arguments: dict[str, Any]
    own: str | None
    """The object a method belongs to is no argument of the call."""

    def seen(self) -> dict[str, Any]:
        """The arguments that are verified."""
        return {name: value for name, value in self.arguments.items() if name != self.own}

    def with_permitted(self, permit: Permit) -> inspect.BoundArguments:
        """The call with the permitted arguments in place of its own; ActionDenied where they are not all of it."""
        intended = OrderedDict((name, permit.arguments.get(name, value)) for name, value in self.arguments.items())
        call = inspect.BoundArguments(self.signature, intended)
        if not _arrives(call):
            refused = "it was corrected in a way that its arguments cannot take"
            raise Refusal(permit.tool, refused, answer=permit.answer).error()
        return call


def _arrives(call: inspect.BoundArguments) -> bool:
    """Whether every argument reaches its own parameter: one of `**more` may be called like another."""
    try:
        again = call.signature.bind(*call.args, **call.kwargs)
    except TypeError:
        return False
    again.apply_defaults()
    kinds = {name: parameter.kind for name, parameter in call.signature.parameters.items()}
    return all(
        _ids(again.arguments[name], kinds[name]) == _ids(value, kinds[name]) for name, value in call.arguments.items()
    )


def _ids(value: Any, kind: Any) -> Any:
    """Which objects an argument is."""
    if kind is inspect.Parameter.VAR_POSITIONAL:
        return [id(each) for each in value]
    if kind is inspect.Parameter.VAR_KEYWORD:
        return {name: id(each) for name, each in value.items()}
    return id(value)


def _called(function: Callable[..., Any]) -> _Called:
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    method = outer and not outer.endswith("<locals>")
    return _Called(inspect.signature(function), (function.__module__, outer) if method else None)


def verified_by(
    agent: "OwnClient[Any]",
    *,
    tool: str | None,
    action: Mapping[str, str] | None,
    options: Mapping[str, Any] | None,
    wait: float,
) -> Callable[[F], F]:
    """The decorator."""

    def decorate(function: F) -> F:
        name = tool or _name(function)
        rules = Rules({} if action is None else {name: action}, options, wait)
        if _is(function, inspect.isgeneratorfunction) or _is(function, inspect.isasyncgenfunction):
            raise TypeError(f"`{name}` is a generator, which runs after its call has returned: verify what it calls")
        _require_parameters(function, name, action or {})
        made = _awaiting if _is(function, inspect.iscoroutinefunction) else _blocking
        return made(agent, name, rules, function)  # type: ignore[return-value]

    return decorate


def _require_parameters(function: Callable[..., Any], name: str, action: Mapping[str, str]) -> None:
    known = inspect.signature(function).parameters
    for member, argument in action.items():
        if member != "type" and argument not in known:
            raise TypeError(f"`{name}` has no parameter `{argument}` that could be the {member} of its action")


def _name(function: Any) -> str:
    if isinstance(function, classmethod | staticmethod | property):
        raise TypeError(f"put `verified` below `@{type(function).__name__}`, next to the function")
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"a {type(function).__name__} has no name of its own: give `tool`")
    return name


def _is(function: Any, kind: Callable[[Any], bool]) -> bool:
    """Whether it is of the kind, or an object whose call is."""
    return kind(function) or (not inspect.isroutine(function) and kind(type(function).__call__))


def _blocking(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    from qwed_sdk.agent import QWEDAsyncAgentClient
    from qwed_sdk.checkpoint import Checkpoint

    if isinstance(agent, QWEDAsyncAgentClient):
        raise TypeError(f"`{tool}` is no `async def`: verify it with a QWEDAgentClient")
    checkpoint, called = Checkpoint(agent), _called(function)
    checkpoint.rules = rules

    @wraps(function)
    def verified(*args: Any, **kwargs: Any) -> Any:
        bound = called.bound(args, kwargs)
        permit = _permitted(checkpoint.before(tool, bound.seen()))
        call = bound.with_permitted(permit)
        done, result = False, None
        try:
            result = function(*call.args, **call.kwargs)
            done = True
            return result
        finally:
            checkpoint.after(permit, done, result)

    return verified


def _awaiting(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    called = _called(function)
    run = _runner(agent)

    @wraps(function)
    async def verified(*args: Any, **kwargs: Any) -> Any:
        bound = called.bound(args, kwargs)
        permit = _permitted(await run(checks.before(agent.bound, rules, tool, bound.seen())))
        call = bound.with_permitted(permit)
        done, result = False, None
        try:
            result = await function(*call.args, **call.kwargs)
            done = True
            return result
        finally:
            await _goodbye(run, checks.after(agent.bound, permit, done, result))

    return verified


async def _goodbye(run: Callable[[Any], Any], call: Any) -> None:
    """Log it although the task is cancelled, but do not hold it up for long."""
    import anyio

    if isinstance(sys.exception(), GeneratorExit):
        # Thrown away unfinished: nothing can be awaited any more.
        return
    with anyio.move_on_after(LONGEST_GOODBYE, shield=True):
        await run(call)


def _runner(agent: Any) -> Callable[[Any], Any]:
    """How an `async def` runs a call: awaiting, or beside the loop where the client blocks."""
    from qwed_sdk.agent import QWEDAsyncAgentClient
    from qwed_sdk.checkpoint import beside

    if isinstance(agent, QWEDAsyncAgentClient):
        return agent.run

    async def run(call: Any) -> Any:
        return await beside(agent.run, call)

    return run


def _permitted(outcome: Permit | Refusal) -> Permit:
    if not isinstance(outcome, Permit):
        raise outcome.error()
    return outcome
