"""Pydantic AI: every tool of an agent, or of one toolset, asks qwed before it runs and runs with what was permitted."""

import copy
import inspect
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from qwed_sdk.calls.checks import Permit, Refusal
from qwed_sdk.checkpoint import Asks, Checkpoint, checkpoint_of
from qwed_sdk.framework import framework
from qwed_sdk.pausing import Asked, Pauses, is_pending, note_of, report

UNSEEN = "qwed cannot see what the tool `{}` does: leave it out, or name it in `unverified` to let it run without qwed"
LOSSY = "its arguments change when they are written as JSON, so what is verified would not be what it is given"


if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
else:
    AbstractCapability = framework("pydantic_ai.capabilities", "AbstractCapability", "pydantic-ai-slim")
    WrapperToolset = framework("pydantic_ai.toolsets", "WrapperToolset", "pydantic-ai-slim")


class QWEDToolset(WrapperToolset[Any]):
    """A toolset whose tools run only with qwed's permission."""

    def __init__(
        self,
        wrapped: "AbstractToolset[Any]",
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool | None = None,
        unverified: Collection[str] = (),
        **asks: Unpack[Asks],
    ) -> None:
        """`pause`: PENDING defers the call; if not said, where the agent's `output_type` has DeferredToolRequests.

        `unverified`: names of tools that may run unseen by qwed. The other keywords are those of a Checkpoint, where
        none is given.
        """
        super().__init__(wrapped)
        self.checkpoint = checkpoint_of(checkpoint, **asks)
        self.pause = pause
        self.unverified = frozenset(unverified)
        self._pauses = Pauses(self.checkpoint)

    async def for_run(self, ctx: "RunContext[Any]") -> "AbstractToolset[Any]":
        """The same around what the wrapped toolset is in this run."""
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: "RunContext[Any]") -> "AbstractToolset[Any]":
        """The same around what the wrapped toolset is in this step."""
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: "Callable[[AbstractToolset[Any]], AbstractToolset[Any]]"
    ) -> "AbstractToolset[Any]":
        """The same around what the visitor makes of the wrapped toolset."""
        return self._around(self.wrapped.visit_and_replace(visitor))

    def _around(self, wrapped: "AbstractToolset[Any]") -> Self:
        # The base class would make a new one of its fields alone, and that would not know whom to ask.
        if wrapped is self.wrapped:
            return self
        other = copy.copy(self)
        other.wrapped = wrapped
        return other

    async def get_tools(self, ctx: "RunContext[Any]") -> "dict[str, ToolsetTool[Any]]":
        """The wrapped tools; one that the application runs elsewhere is refused unless it is named as `unverified`."""
        tools = await self.wrapped.get_tools(ctx)
        _require_seen((name for name, tool in tools.items() if tool.tool_def.kind == "external"), self.unverified)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]"
    ) -> Any:
        """What the tool returns, if it may run."""
        if name in self.unverified:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        asked = Asked(ctx.tool_call_id or secrets.token_hex(16), name, _json_of(name, tool_args, ctx, tool))
        if ctx.tool_call_approved and isinstance(ctx.tool_call_metadata, Mapping):
            self._pauses.recall(asked, ctx.tool_call_metadata.get("qwed"))
        found = await self._pauses.before(asked, ctx.run_id)
        if isinstance(found, Refusal):
            raise self._refused(found, ctx)
        done, result = False, None
        try:
            result = await self.wrapped.call_tool(name, await _permitted(found, tool_args, ctx, tool), ctx, tool)
            done = True
            return result
        finally:
            await report(self.checkpoint, found, done, result)

    def _refused(self, found: Refusal, ctx: "RunContext[Any]") -> Exception:
        from pydantic_ai import ApprovalRequired, ToolFailed

        if is_pending(found) and (_can_pause(ctx) if self.pause is None else self.pause):
            return ApprovalRequired(metadata={"qwed": note_of(found)})
        # The model reads why, as of a tool that failed: no retry is spent, the run goes on.
        return ToolFailed(str(found))


class QWEDGuard(AbstractCapability[Any]):
    """A capability that guards whatever an agent can call: its tools, toolsets, those of a run, output functions."""

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool | None = None,
        unverified: Collection[str] = (),
        **asks: Unpack[Asks],
    ) -> None:
        """The settings are those of QWEDToolset; `unverified` also takes the kinds of tools that the provider runs."""
        self.checkpoint = checkpoint_of(checkpoint, **asks)
        self._pause = pause
        self._unverified = frozenset(unverified)
        self._pauses = Pauses(self.checkpoint)

    def get_ordering(self) -> "CapabilityOrdering":
        """Next to the tools: what another capability makes of a call is made before it is verified."""
        from pydantic_ai.capabilities import CapabilityOrdering

        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: "AbstractToolset[Any]") -> "AbstractToolset[Any]":
        """Everything the agent can call in this run, guarded."""
        guarded = QWEDToolset(toolset, self.checkpoint, pause=self._pause, unverified=self._unverified)
        # A run is resumed as another run, and that asks about the calls of the first.
        guarded._pauses = self._pauses
        return guarded

    async def prepare_model_request(
        self, ctx: "RunContext[Any]", request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        """The request, unless it offers the model tools that its provider runs and the application did not name."""
        native = request_context.model_request_parameters.native_tools
        _require_seen((tool.kind for tool in native), self._unverified)
        return await super().prepare_model_request(ctx, request_context)

    async def wrap_output_process(
        self, ctx: "RunContext[Any]", *, output_context: "OutputContext", output: Any, handler: Callable[[Any], Any]
    ) -> Any:
        """What the output is made into; a function that makes it is asked about like a tool."""
        from pydantic_ai import ModelRetry

        if not output_context.has_function:
            return await handler(output)
        name = output_context.function_name or "output"
        if ctx.partial_output:
            # The framework passes over it, and asks again when the output is whole.
            raise ModelRetry(f"`{name}` runs once, when its input is complete")
        found = await self.checkpoint.before_async(name, _as_arguments(output), ctx.run_id)
        if isinstance(found, Refusal):
            raise ModelRetry(str(found))
        if found.answer.corrected is not None:
            await report(self.checkpoint, found, False)
            raise ModelRetry(f"qwed permits `{name}` with other arguments only: {found.arguments}")
        done = False
        try:
            result = await handler(output)
            done = True
            return result
        finally:
            await report(self.checkpoint, found, done)


def _require_seen(names: Iterable[str], unverified: frozenset[str]) -> None:
    """Tools that run elsewhere are there only where the application named them."""
    unseen = next((name for name in names if name not in unverified), None)
    if unseen is not None:
        raise ValueError(UNSEEN.format(unseen))


def _can_pause(ctx: "RunContext[Any]") -> bool:
    from pydantic_ai import DeferredToolRequests

    declared = ctx.agent.output_type if ctx.agent is not None else None
    return DeferredToolRequests in (declared if isinstance(declared, list | tuple) else [declared])


def _as_arguments(output: Any) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    value = to_jsonable_python(output)
    return value if isinstance(value, dict) else {"output": value}


def _json_of(name: str, arguments: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]") -> dict[str, Any]:
    """The arguments as JSON, which gives the tool the same arguments when it is read back."""
    from pydantic import ValidationError
    from pydantic_ai import ToolFailed
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        written: dict[str, Any] = to_jsonable_python(arguments)
        if written == arguments or arguments == _read(written, ctx, tool):
            return written
    except (PydanticSerializationError, ValidationError, ValueError):
        pass
    raise ToolFailed(str(Refusal(name, LOSSY)))


def _read(written: Mapping[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]") -> dict[str, Any]:
    read: dict[str, Any] = tool.args_validator.validate_python(dict(written), context=ctx.validation_context)
    return read


async def _permitted(
    permit: Permit, arguments: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]"
) -> dict[str, Any]:
    """The arguments to run with: a repair passes the tool's own validation first."""
    if permit.answer.corrected is None:
        return arguments
    from pydantic import ValidationError
    from pydantic_ai import ToolFailed

    try:
        repaired = _read(permit.arguments, ctx, tool)
    except ValidationError as error:
        raise ToolFailed(str(Refusal(permit.tool, "its corrected arguments do not fit it"))) from error
    if tool.args_validator_func is not None:
        judged = tool.args_validator_func(ctx, **repaired)
        if inspect.isawaitable(judged):
            await judged
    return repaired
