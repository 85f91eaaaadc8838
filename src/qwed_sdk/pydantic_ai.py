"""Pydantic AI integration: every tool of an agent, or of one toolset, is verified before it runs."""

import copy
import inspect
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from qwed_sdk.optional_import import import_or_stub
from qwed_sdk.pending_runs import PendingRuns, ToolRequest, is_pending, log_outcome, pending_note_of
from qwed_sdk.permits import Permit, Refusal
from qwed_sdk.tool_guard import Checkpoint, CheckpointOptions, checkpoint_or_new

UNSEEN = "qwed cannot verify the tool `{}`: leave it out, or name it in `unverified` to let it run without qwed"
LOSSY = "its arguments change when they are converted to JSON, so the tool would not receive what is verified"


if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
else:
    AbstractCapability = import_or_stub("pydantic_ai.capabilities", "AbstractCapability", "pydantic-ai-slim")
    WrapperToolset = import_or_stub("pydantic_ai.toolsets", "WrapperToolset", "pydantic-ai-slim")


class QWEDToolset(WrapperToolset[Any]):
    """Toolset whose tools run only with permission."""

    def __init__(
        self,
        wrapped: "AbstractToolset[Any]",
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool | None = None,
        unverified: Collection[str] = (),
        **options: Unpack[CheckpointOptions],
    ) -> None:
        """Wrap a toolset.

        `pause`: PENDING defers the call; by default if the agent's `output_type` includes DeferredToolRequests.
        `unverified`: names of tools that may run without verification. The other keywords are those of a Checkpoint, if
        none is given.
        """
        super().__init__(wrapped)
        self.checkpoint = checkpoint_or_new(checkpoint, **options)
        self.pause = pause
        self.unverified = frozenset(unverified)
        self._pending = PendingRuns(self.checkpoint)

    async def for_run(self, ctx: "RunContext[Any]") -> "AbstractToolset[Any]":
        """Return the toolset around the wrapped one of this run."""
        return self._rewrap(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: "RunContext[Any]") -> "AbstractToolset[Any]":
        """Return the toolset around the wrapped one of this step."""
        return self._rewrap(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: "Callable[[AbstractToolset[Any]], AbstractToolset[Any]]"
    ) -> "AbstractToolset[Any]":
        """Return the toolset around what the visitor returns for the wrapped one."""
        return self._rewrap(self.wrapped.visit_and_replace(visitor))

    def _rewrap(self, wrapped: "AbstractToolset[Any]") -> Self:
        # The base class would copy its own fields only, and lose the checkpoint.
        if wrapped is self.wrapped:
            return self
        copied = copy.copy(self)
        copied.wrapped = wrapped
        return copied

    async def get_tools(self, ctx: "RunContext[Any]") -> "dict[str, ToolsetTool[Any]]":
        """Return the wrapped tools; raise ValueError for an external one that is not named in `unverified`."""
        tools = await self.wrapped.get_tools(ctx)
        _require_verifiable((name for name, tool in tools.items() if tool.tool_def.kind == "external"), self.unverified)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]"
    ) -> Any:
        """Call the tool if it is permitted, and return its result."""
        if name in self.unverified:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        request = ToolRequest(
            ctx.tool_call_id or secrets.token_hex(16), name, _json_arguments(name, tool_args, ctx, tool)
        )
        if ctx.tool_call_approved and isinstance(ctx.tool_call_metadata, Mapping):
            self._pending.restore(request, ctx.tool_call_metadata.get("qwed"))
        decision = await self._pending.before(request, ctx.run_id)
        if isinstance(decision, Refusal):
            raise self._refusal_error(decision, ctx)
        done, result = False, None
        try:
            result = await self.wrapped.call_tool(
                name, await _permitted_arguments(decision, tool_args, ctx, tool), ctx, tool
            )
            done = True
            return result
        finally:
            await log_outcome(self.checkpoint, decision, done, result)

    def _refusal_error(self, refusal: Refusal, ctx: "RunContext[Any]") -> Exception:
        from pydantic_ai import ApprovalRequired, ToolFailed

        if is_pending(refusal) and (_can_pause(ctx) if self.pause is None else self.pause):
            return ApprovalRequired(metadata={"qwed": pending_note_of(refusal)})
        # The model receives the reason as a failed tool's: it costs no retry, and the run continues.
        return ToolFailed(str(refusal))


class QWEDGuard(AbstractCapability[Any]):
    """Capability that guards everything an agent can call: tools, toolsets and output functions."""

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool | None = None,
        unverified: Collection[str] = (),
        **options: Unpack[CheckpointOptions],
    ) -> None:
        """Create a guard with the settings of QWEDToolset; `unverified` also accepts kinds of provider-run tools."""
        self.checkpoint = checkpoint_or_new(checkpoint, **options)
        self._pause = pause
        self._unverified = frozenset(unverified)
        self._pending = PendingRuns(self.checkpoint)

    def get_ordering(self) -> "CapabilityOrdering":
        """Return the innermost position: other capabilities change a call before it is verified."""
        from pydantic_ai.capabilities import CapabilityOrdering

        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: "AbstractToolset[Any]") -> "AbstractToolset[Any]":
        """Return everything the agent can call in this run, guarded."""
        guarded = QWEDToolset(toolset, self.checkpoint, pause=self._pause, unverified=self._unverified)
        # A run is resumed as another run, which needs the pending calls of the first.
        guarded._pending = self._pending
        return guarded

    async def prepare_model_request(
        self, ctx: "RunContext[Any]", request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        """Return the request; raise ValueError if it offers provider-run tools that are not in `unverified`."""
        native = request_context.model_request_parameters.native_tools
        _require_verifiable((tool.kind for tool in native), self._unverified)
        return await super().prepare_model_request(ctx, request_context)

    async def wrap_output_process(
        self, ctx: "RunContext[Any]", *, output_context: "OutputContext", output: Any, handler: Callable[[Any], Any]
    ) -> Any:
        """Process the output; an output function is verified like a tool."""
        from pydantic_ai import ModelRetry

        if not output_context.has_function:
            return await handler(output)
        name = output_context.function_name or "output"
        if ctx.partial_output:
            # The framework ignores this, and calls again when the output is complete.
            raise ModelRetry(f"`{name}` runs once, when its input is complete")
        decision = await self.checkpoint.before_async(name, _arguments_of_output(output), ctx.run_id)
        if isinstance(decision, Refusal):
            raise ModelRetry(str(decision))
        if decision.answer.corrected is not None:
            await log_outcome(self.checkpoint, decision, False)
            raise ModelRetry(f"qwed permits `{name}` with other arguments only: {decision.arguments}")
        done = False
        try:
            result = await handler(output)
            done = True
            return result
        finally:
            await log_outcome(self.checkpoint, decision, done)


def _require_verifiable(names: Iterable[str], unverified: frozenset[str]) -> None:
    """Raise ValueError for a tool that runs elsewhere and is not named in `unverified`."""
    unseen = next((name for name in names if name not in unverified), None)
    if unseen is not None:
        raise ValueError(UNSEEN.format(unseen))


def _can_pause(ctx: "RunContext[Any]") -> bool:
    from pydantic_ai import DeferredToolRequests

    declared = ctx.agent.output_type if ctx.agent is not None else None
    return DeferredToolRequests in (declared if isinstance(declared, list | tuple) else [declared])


def _arguments_of_output(output: Any) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    value = to_jsonable_python(output)
    return value if isinstance(value, dict) else {"output": value}


def _json_arguments(
    name: str, arguments: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]"
) -> dict[str, Any]:
    """Return the arguments as JSON; raise ToolFailed if they do not convert back to the same arguments."""
    from pydantic import ValidationError
    from pydantic_ai import ToolFailed
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        encoded: dict[str, Any] = to_jsonable_python(arguments)
        if encoded == arguments or arguments == _validate_arguments(encoded, ctx, tool):
            return encoded
    except (PydanticSerializationError, ValidationError, ValueError):
        pass
    raise ToolFailed(str(Refusal(name, LOSSY)))


def _validate_arguments(encoded: Mapping[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]") -> dict[str, Any]:
    validated: dict[str, Any] = tool.args_validator.validate_python(dict(encoded), context=ctx.validation_context)
    return validated


async def _permitted_arguments(
    permit: Permit, arguments: dict[str, Any], ctx: "RunContext[Any]", tool: "ToolsetTool[Any]"
) -> dict[str, Any]:
    """Return the arguments to run with; corrected ones pass the tool's own validation first."""
    if permit.answer.corrected is None:
        return arguments
    from pydantic import ValidationError
    from pydantic_ai import ToolFailed

    try:
        corrected = _validate_arguments(permit.arguments, ctx, tool)
    except ValidationError as error:
        raise ToolFailed(str(Refusal(permit.tool, "its corrected arguments do not fit its parameters"))) from error
    if tool.args_validator_func is not None:
        validation = tool.args_validator_func(ctx, **corrected)
        if inspect.isawaitable(validation):
            await validation
    return corrected
