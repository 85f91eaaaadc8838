"""OpenAI Agents SDK integration: every tool of an agent is verified before it runs."""

import copy
import json
import secrets
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from qwed_sdk.pending_runs import PendingRuns, PendingStore, ToolRequest, is_pending, log_outcome
from qwed_sdk.permits import Refusal
from qwed_sdk.tool_guard import Checkpoint, CheckpointOptions, checkpoint_or_new

if TYPE_CHECKING:
    from agents import Agent, FunctionTool, RunContextWrapper, Tool
    from agents.items import ToolApprovalItem
    from agents.tool_context import ToolContext

A = TypeVar("A", bound="Agent[Any]")
GuardedAgents = dict[int, tuple["Agent[Any]", "Agent[Any]"]]
NeedsApproval = Callable[["RunContextWrapper[Any]", dict[str, Any], str], Coroutine[Any, Any, bool]]

_GUARD_ATTRIBUTE = "_qwed_guard"
"""Attribute of the agent classes and handoffs that a guard created."""

INSTALL = "qwed_sdk.openai_agents needs the OpenAI Agents SDK: pip install openai-agents"
UNSEEN = "qwed cannot verify the tool `{name}`: leave it out, or name it in `unverified` to let it run without qwed"
UNGUARDED = "the agent inside the tool `{name}` has no guard: create the tool with `guard.agent(...).as_tool(...)`"


class QWEDGuard:
    """Guard of agents, whose tools run only with permission: `guard.agent(agent)`."""

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool = True,
        unverified: Collection[str] = (),
        waiting: PendingStore | None = None,
        **options: Unpack[CheckpointOptions],
    ) -> None:
        """Create a guard.

        `pause`: PENDING interrupts the run. `unverified`: names of tools that may run without verification. `waiting`:
        store of paused calls. The other keywords are those of a Checkpoint, if none is given.
        """
        try:
            import agents  # noqa: F401
        except ImportError as missing:
            raise ImportError(INSTALL) from missing
        self.checkpoint = checkpoint_or_new(checkpoint, **options)
        self._pending = PendingRuns(self.checkpoint, waiting)
        self._pause = pause
        self._unverified = frozenset(unverified)
        self._runs: weakref.WeakKeyDictionary[RunContextWrapper[Any], str] = weakref.WeakKeyDictionary()
        self._classes: dict[type, type] = {}

    def agent(self, agent: A) -> A:
        """Return a copy of the agent, and of the agents it hands over to, whose tools are verified."""
        return self._copy(agent, {})

    def approval_id(self, interruption: "ToolApprovalItem") -> str | None:
        """Return the id of the approval that the interrupted call waits for; None for other interruptions."""
        call = interruption.raw_item
        read = call.get if isinstance(call, dict) else lambda name: getattr(call, name, None)
        arguments = _arguments_of(read("arguments"))
        if arguments is None:
            return None
        return self._pending.approval_id(ToolRequest(str(read("call_id")), str(read("name")), arguments))

    def _copy(self, agent: A, copies: GuardedAgents) -> A:
        from agents import Agent

        if not isinstance(agent, Agent):
            raise TypeError(f"guard an `Agent`, not a {type(agent).__name__}")
        if _is_guarded(agent):
            return agent
        if id(agent) in copies:
            existing: A = copies[id(agent)][1]  # type: ignore[assignment]
            return existing
        guarded = copy.copy(agent)
        guarded.__class__ = self._guarded_class(type(agent))  # type: ignore[assignment]
        copies[id(agent)] = (agent, guarded)
        guarded.tools = list(agent.tools)
        for tool in agent.tools:
            self._require_visible(tool)
        guarded.handoffs = [self._handoff(handoff, copies) for handoff in agent.handoffs]
        return guarded

    def _guarded_class(self, base: type["Agent[Any]"]) -> type["Agent[Any]"]:
        """Return a subclass that returns guarded tools only, also after cloning and for tools that are added later."""
        if base not in self._classes:
            guard = self

            async def get_all_tools(agent: "Agent[Any]", run_context: "RunContextWrapper[Any]") -> "list[Tool]":
                _require_guarded(agent.handoffs)
                tools = await base.get_all_tools(agent, run_context)
                return [guard._tool(tool, run_context) for tool in tools]

            members = {"get_all_tools": get_all_tools, _GUARD_ATTRIBUTE: self}
            self._classes[base] = type(f"Guarded{base.__name__}", (base,), members)
        return self._classes[base]

    def _handoff(self, handoff: Any, copies: GuardedAgents) -> Any:
        from agents import Handoff

        if not isinstance(handoff, Handoff):
            return self._copy(handoff, copies)
        original = handoff.on_invoke_handoff

        async def on_invoke_handoff(context: "RunContextWrapper[Any]", text: str) -> "Agent[Any]":
            return self._copy(await original(context, text), copies)

        guarded: Handoff[Any, Any] = copy.copy(handoff)
        guarded.on_invoke_handoff = on_invoke_handoff
        setattr(on_invoke_handoff, _GUARD_ATTRIBUTE, self)
        target = handoff._agent_ref() if handoff._agent_ref is not None else None
        if target is not None:
            # A saved run finds its agents through this reference; the closure above keeps the target alive.
            guarded._agent_ref = weakref.ref(self._copy(target, copies))  # type: ignore[type-var]
        return guarded

    def _require_visible(self, tool: "Tool") -> None:
        from agents import FunctionTool

        if tool.name in self._unverified:
            return
        if not isinstance(tool, FunctionTool):
            raise ValueError(UNSEEN.format(name=tool.name))
        if tool._is_agent_tool and not _is_guarded(tool._agent_instance):
            raise ValueError(UNGUARDED.format(name=tool.name))

    def _tool(self, tool: "Tool", run: "RunContextWrapper[Any]") -> "Tool":
        from agents import FunctionTool

        self._require_visible(tool)
        # An agent as a tool acts through its own tools, which are verified.
        if not isinstance(tool, FunctionTool) or tool._is_agent_tool or tool.name in self._unverified:
            return tool
        return self._verified_tool(tool, self._runs.setdefault(run, secrets.token_hex(16)))

    def _verified_tool(self, tool: "FunctionTool", conversation: str) -> "FunctionTool":
        """Return the tool, running only permitted calls; its own settings for errors and timeouts apply."""
        from agents.tool import (
            FunctionTool,
            set_function_tool_failure_error_function,
            with_function_tool_failure_error_handler,
        )

        # Its errors are raised here, so that the outcome is known; `verified` then formats them for the model.
        raising = copy.copy(tool)
        set_function_tool_failure_error_function(raising, None)
        raising.timeout_seconds = None

        async def invoke(context: "ToolContext[Any]", text: str) -> Any:
            return await self._run(raising, context, text, conversation)

        verified = copy.copy(tool)
        verified.on_invoke_tool = with_function_tool_failure_error_handler(invoke, lambda *_: None)
        FunctionTool.__post_init__(verified)  # type: ignore[no-untyped-call]
        if self._pause:
            verified.needs_approval = self._approval_check(tool, conversation)
        return verified

    def _approval_check(self, tool: "FunctionTool", conversation: str) -> "NeedsApproval":
        async def needs_approval(context: "RunContextWrapper[Any]", arguments: dict[str, Any], call_id: str) -> bool:
            if await _tool_needs_approval(tool, context, arguments, call_id):
                return True
            decision = await self._pending.peek(
                ToolRequest(call_id, tool.name, arguments, _defaults_of(tool)), conversation
            )
            return is_pending(decision)

        return needs_approval

    async def _run(self, tool: "FunctionTool", context: "ToolContext[Any]", text: str, conversation: str) -> Any:
        from agents.tool import invoke_function_tool

        arguments = _arguments_of(text)
        if arguments is None:
            return f"qwed did not permit `{tool.name}`: its arguments are not a JSON object"
        request = ToolRequest(context.tool_call_id, tool.name, arguments, _defaults_of(tool))
        decision = await self._pending.before(request, conversation)
        if isinstance(decision, Refusal):
            return str(decision)
        context.tool_arguments = json.dumps(decision.arguments)
        done, result = False, None
        try:
            result = await invoke_function_tool(function_tool=tool, context=context, arguments=context.tool_arguments)
            done = True
            return result
        finally:
            await log_outcome(self.checkpoint, decision, done, result)


def _is_guarded(agent: Any) -> bool:
    """Return True if the agent has a guard, this one or another."""
    return hasattr(type(agent), _GUARD_ATTRIBUTE)


def _require_guarded(handoffs: Iterable[Any]) -> None:
    """Raise ValueError for a handoff that was added after the agent was guarded."""
    for handoff in handoffs:
        if not _is_guarded(handoff) and not hasattr(getattr(handoff, "on_invoke_handoff", None), _GUARD_ATTRIBUTE):
            name = getattr(handoff, "agent_name", None) or getattr(handoff, "name", handoff)
            raise ValueError(f"the agent `{name}` was added after the guard: add its handoff before `guard.agent(...)`")


async def _tool_needs_approval(
    tool: "FunctionTool", context: "RunContextWrapper[Any]", arguments: Mapping[str, Any], call_id: str
) -> bool:
    """Return True if the tool's own setting requires approval by the application."""
    if not callable(tool.needs_approval):
        return tool.needs_approval
    # The framework requires approval, without consulting the setting, if defaults or conversions change the input.
    from agents.util._approvals import evaluate_function_tool_approval

    evaluation = await evaluate_function_tool_approval(tool, context, json.dumps(arguments), call_id)
    return evaluation.outcome != "invoke"


def _defaults_of(tool: "FunctionTool") -> dict[str, Any]:
    """Return the defaults of the tool's parameters."""
    properties = tool.params_json_schema.get("properties", {})
    return {name: schema["default"] for name, schema in properties.items() if "default" in schema}


def _arguments_of(text: Any) -> dict[str, Any] | None:
    """Return the arguments that a model wrote, or None if they are not an object; empty text is an empty object."""
    try:
        arguments = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
