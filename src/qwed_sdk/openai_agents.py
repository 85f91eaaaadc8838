"""OpenAI Agents SDK: every tool of an agent asks qwed before it runs, and runs with what was permitted."""

import copy
import json
import secrets
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from qwed_sdk.calls.checks import Refusal
from qwed_sdk.checkpoint import Asks, Checkpoint, checkpoint_of
from qwed_sdk.pausing import Asked, Pauses, Waiting, is_pending, report

if TYPE_CHECKING:
    from agents import Agent, FunctionTool, RunContextWrapper, Tool
    from agents.items import ToolApprovalItem
    from agents.tool_context import ToolContext

A = TypeVar("A", bound="Agent[Any]")
Memo = dict[int, tuple["Agent[Any]", "Agent[Any]"]]
Needs = Callable[["RunContextWrapper[Any]", dict[str, Any], str], Coroutine[Any, Any, bool]]

_MARK = "_qwed_guard"
"""On the kinds of agents and the handoffs that a guard made."""

INSTALL = "qwed_sdk.openai_agents needs the OpenAI Agents SDK: pip install openai-agents"
UNSEEN = (
    "qwed cannot see what the tool `{name}` does: leave it out, or name it in `unverified` to let it run without qwed"
)
UNGUARDED = "the agent inside the tool `{name}` has no guard: make the tool of `guard.agent(...).as_tool(...)`"


class QWEDGuard:
    """Makes agents whose tools run only with qwed's permission: `guard.agent(agent)`."""

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        pause: bool = True,
        unverified: Collection[str] = (),
        waiting: Waiting | None = None,
        **asks: Unpack[Asks],
    ) -> None:
        """`pause`: PENDING interrupts the run. `unverified`: names of tools that may run unseen by qwed.

        The other keywords are those of a Checkpoint, where none is given.
        """
        try:
            import agents  # noqa: F401
        except ImportError as missing:
            raise ImportError(INSTALL) from missing
        self.checkpoint = checkpoint_of(checkpoint, **asks)
        self._pauses = Pauses(self.checkpoint, waiting)
        self._pausing = pause
        self._unverified = frozenset(unverified)
        self._runs: weakref.WeakKeyDictionary[RunContextWrapper[Any], str] = weakref.WeakKeyDictionary()
        self._kinds: dict[type, type] = {}

    def agent(self, agent: A) -> A:
        """A copy of the agent, and of the agents it hands over to, whose tools ask first."""
        return self._copy(agent, {})

    def approval_id(self, interruption: "ToolApprovalItem") -> str | None:
        """What a person decides on in qwed for this call to go on; None if something else interrupted it."""
        call = interruption.raw_item
        read = call.get if isinstance(call, dict) else lambda name: getattr(call, name, None)
        arguments = _arguments_of(read("arguments"))
        if arguments is None:
            return None
        return self._pauses.approval_id(Asked(str(read("call_id")), str(read("name")), arguments))

    def _copy(self, agent: A, made: Memo) -> A:
        from agents import Agent

        if not isinstance(agent, Agent):
            raise TypeError(f"guard an `Agent`, not a {type(agent).__name__}")
        if _guarded(agent):
            return agent
        if id(agent) in made:
            found: A = made[id(agent)][1]  # type: ignore[assignment]
            return found
        guarded = copy.copy(agent)
        guarded.__class__ = self._kind(type(agent))  # type: ignore[assignment]
        made[id(agent)] = (agent, guarded)
        guarded.tools = list(agent.tools)
        for tool in agent.tools:
            self._require_visible(tool)
        guarded.handoffs = [self._handoff(handoff, made) for handoff in agent.handoffs]
        return guarded

    def _kind(self, base: type["Agent[Any]"]) -> type["Agent[Any]"]:
        """A kind of agent that gives out guarded tools only, however it is cloned and whatever tools it gets later."""
        if base not in self._kinds:
            guard = self

            async def get_all_tools(agent: "Agent[Any]", run_context: "RunContextWrapper[Any]") -> "list[Tool]":
                _require_guarded(agent.handoffs)
                tools = await base.get_all_tools(agent, run_context)
                return [guard._tool(tool, run_context) for tool in tools]

            members = {"get_all_tools": get_all_tools, _MARK: self}
            self._kinds[base] = type(f"Guarded{base.__name__}", (base,), members)
        return self._kinds[base]

    def _handoff(self, handoff: Any, made: Memo) -> Any:
        from agents import Handoff

        if not isinstance(handoff, Handoff):
            return self._copy(handoff, made)
        original = handoff.on_invoke_handoff

        async def on_invoke_handoff(context: "RunContextWrapper[Any]", text: str) -> "Agent[Any]":
            return self._copy(await original(context, text), made)

        guarded: Handoff[Any, Any] = copy.copy(handoff)
        guarded.on_invoke_handoff = on_invoke_handoff
        setattr(on_invoke_handoff, _MARK, self)
        target = handoff._agent_ref() if handoff._agent_ref is not None else None
        if target is not None:
            # A saved run finds its agents through this reference; the closure above keeps the target alive.
            guarded._agent_ref = weakref.ref(self._copy(target, made))  # type: ignore[type-var]
        return guarded

    def _require_visible(self, tool: "Tool") -> None:
        from agents import FunctionTool

        if tool.name in self._unverified:
            return
        if not isinstance(tool, FunctionTool):
            raise ValueError(UNSEEN.format(name=tool.name))
        if tool._is_agent_tool and not _guarded(tool._agent_instance):
            raise ValueError(UNGUARDED.format(name=tool.name))

    def _tool(self, tool: "Tool", run: "RunContextWrapper[Any]") -> "Tool":
        from agents import FunctionTool

        self._require_visible(tool)
        # An agent as a tool acts through its own tools, and those ask.
        if not isinstance(tool, FunctionTool) or tool._is_agent_tool or tool.name in self._unverified:
            return tool
        return self._asking(tool, self._runs.setdefault(run, secrets.token_hex(16)))

    def _asking(self, tool: "FunctionTool", conversation: str) -> "FunctionTool":
        """The tool, running only what is permitted; errors and timeouts are told as the tool says."""
        from agents.tool import (
            FunctionTool,
            set_function_tool_failure_error_function,
            with_function_tool_failure_error_handler,
        )

        # Its errors come out here, so that the outcome is known; `asking` then words them for the model.
        raising = copy.copy(tool)
        set_function_tool_failure_error_function(raising, None)
        raising.timeout_seconds = None

        async def invoke(context: "ToolContext[Any]", text: str) -> Any:
            return await self._run(raising, context, text, conversation)

        asking = copy.copy(tool)
        asking.on_invoke_tool = with_function_tool_failure_error_handler(invoke, lambda *_: None)
        FunctionTool.__post_init__(asking)  # type: ignore[no-untyped-call]
        if self._pausing:
            asking.needs_approval = self._pauses_for(tool, conversation)
        return asking

    def _pauses_for(self, tool: "FunctionTool", conversation: str) -> "Needs":
        async def needs_approval(context: "RunContextWrapper[Any]", arguments: dict[str, Any], call_id: str) -> bool:
            if await _asks_by_itself(tool, context, arguments, call_id):
                return True
            found = await self._pauses.look(Asked(call_id, tool.name, arguments, _defaults_of(tool)), conversation)
            return is_pending(found)

        return needs_approval

    async def _run(self, tool: "FunctionTool", context: "ToolContext[Any]", text: str, conversation: str) -> Any:
        from agents.tool import invoke_function_tool

        arguments = _arguments_of(text)
        if arguments is None:
            return f"qwed did not permit `{tool.name}`: its arguments are no JSON object"
        asked = Asked(context.tool_call_id, tool.name, arguments, _defaults_of(tool))
        found = await self._pauses.before(asked, conversation)
        if isinstance(found, Refusal):
            return str(found)
        context.tool_arguments = json.dumps(found.arguments)
        done, result = False, None
        try:
            result = await invoke_function_tool(function_tool=tool, context=context, arguments=context.tool_arguments)
            done = True
            return result
        finally:
            await report(self.checkpoint, found, done, result)


def _guarded(agent: Any) -> bool:
    """Whether the agent has a guard, this one or another."""
    return hasattr(type(agent), _MARK)


def _require_guarded(handoffs: Iterable[Any]) -> None:
    """Those that were there when the agent was guarded are; one that came later may not be."""
    for handoff in handoffs:
        if not _guarded(handoff) and not hasattr(getattr(handoff, "on_invoke_handoff", None), _MARK):
            named = getattr(handoff, "agent_name", None) or getattr(handoff, "name", handoff)
            raise ValueError(f"the agent `{named}` came after the guard: add its handoff before `guard.agent(...)`")


async def _asks_by_itself(
    tool: "FunctionTool", context: "RunContextWrapper[Any]", arguments: Mapping[str, Any], call_id: str
) -> bool:
    """Whether the tool's own setting wants a person of the application."""
    if not callable(tool.needs_approval):
        return tool.needs_approval
    # The framework asks for a person without asking the setting where defaults or conversions would change the input.
    from agents.util._approvals import evaluate_function_tool_approval

    found = await evaluate_function_tool_approval(tool, context, json.dumps(arguments), call_id)
    return found.outcome != "invoke"


def _defaults_of(tool: "FunctionTool") -> dict[str, Any]:
    """What the tool takes where the model says nothing."""
    properties = tool.params_json_schema.get("properties", {})
    return {name: told["default"] for name, told in properties.items() if "default" in told}


def _arguments_of(text: Any) -> dict[str, Any] | None:
    """The arguments that a model wrote; none at all is an empty object."""
    try:
        arguments = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
