"""`@agent.verified`: a Python function that runs only when its call was permitted."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from qwed_sdk.calls import checks
from qwed_sdk.calls.checks import Permit, Refusal, Rules

if TYPE_CHECKING:
    from qwed_sdk.agent import OwnClient

F = TypeVar("F", bound=Callable[..., Any])


class _Called(NamedTuple):
    """A function's parameters, and how a call of it is told to the server."""

    signature: inspect.Signature
    unseen: frozenset[str]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Every argument by its name, defaults included: what is not said is done all the same."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def seen(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Those that are verified."""
        return {name: value for name, value in arguments.items() if name not in self.unseen}

    def again(self, arguments: Mapping[str, Any], permitted: Mapping[str, Any]) -> inspect.BoundArguments:
        """The call with the permitted arguments in place of its own."""
        unseen = {name: value for name, value in arguments.items() if name in self.unseen}
        return inspect.BoundArguments(self.signature, OrderedDict({**unseen, **permitted}))


def _called(function: Callable[..., Any]) -> _Called:
    signature = inspect.signature(function)
    first = next(iter(signature.parameters), "")
    # The object a method belongs to is no argument of the call.
    return _Called(signature, frozenset({first} & {"self", "cls"}))


def verified_by(
    agent: "OwnClient",
    *,
    tool: str | None,
    action: Mapping[str, str] | None,
    options: Mapping[str, Any] | None,
    wait: float,
) -> Callable[[F], F]:
    """The decorator."""

    def decorate(function: F) -> F:
        name = tool or function.__name__
        rules = Rules({} if action is None else {name: action}, options, wait)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"`{name}` is a generator, which runs after its call has returned: verify what it calls")
        made = _awaiting if inspect.iscoroutinefunction(function) else _blocking
        return made(agent, name, rules, function)  # type: ignore[return-value]

    return decorate


def _blocking(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    from qwed_sdk.agent import QWEDAsyncAgentClient
    from qwed_sdk.checkpoint import Checkpoint

    if isinstance(agent, QWEDAsyncAgentClient):
        raise TypeError(f"`{tool}` is no `async def`: verify it with a QWEDAgentClient")
    checkpoint, called = Checkpoint(agent), _called(function)
    checkpoint.rules = rules

    @wraps(function)
    def verified(*args: Any, **kwargs: Any) -> Any:
        arguments = called.arguments(args, kwargs)
        permit = _permitted(checkpoint.before(tool, called.seen(arguments)))
        call = called.again(arguments, permit.arguments)
        try:
            result = function(*call.args, **call.kwargs)
        except BaseException:
            checkpoint.after(permit, False)
            raise
        checkpoint.after(permit, True, result)
        return result

    return verified


def _awaiting(agent: Any, tool: str, rules: Rules, function: Callable[..., Any]) -> Callable[..., Any]:
    called = _called(function)
    run = _runner(agent)

    @wraps(function)
    async def verified(*args: Any, **kwargs: Any) -> Any:
        arguments = called.arguments(args, kwargs)
        permit = _permitted(await run(checks.before(agent.bound, rules, tool, called.seen(arguments))))
        call = called.again(arguments, permit.arguments)
        try:
            result = await function(*call.args, **call.kwargs)
        except BaseException:
            await run(checks.after(agent.bound, permit, False))
            raise
        await run(checks.after(agent.bound, permit, True, result))
        return result

    return verified


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
    if isinstance(outcome, Refusal):
        raise outcome.error()
    return outcome
