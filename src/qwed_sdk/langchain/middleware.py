"""QWEDMiddleware: asks before each tool call of a LangChain 1.x agent and runs exactly what was permitted."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Unpack
from uuid import uuid4

from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.calls.checks import Permit, Refusal
from qwed_sdk.checkpoint import Checkpoint, Ruled
from qwed_sdk.client import QWEDClient
from qwed_sdk.framework import framework
from qwed_sdk.langchain.defaults import with_defaults
from qwed_sdk.langchain.outcome import failure_of, outcome_of

if TYPE_CHECKING:
    from langchain.agents import AgentState
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import ToolMessage
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    Told = ToolMessage | Command[Any]
else:
    AgentMiddleware = framework("langchain.agents.middleware", "AgentMiddleware", "langchain")
    AgentState = framework("langchain.agents", "AgentState", "langchain")
    PrivateStateAttr = framework("langchain.agents.middleware.types", "PrivateStateAttr", "langchain")
    ToolMessage = framework("langchain_core.messages", "ToolMessage", "langchain")


class Conversing(AgentState[Any]):
    """The state of the agent, and which conversation this run is where it has no thread."""

    qwed_conversation: NotRequired[Annotated[str, PrivateStateAttr]]


class QWEDMiddleware(AgentMiddleware[Conversing, Any, Any]):
    """`create_agent(..., middleware=[..., QWEDMiddleware()])`: a denied tool is not run, and the model reads why."""

    state_schema = Conversing

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: QWEDClient | QWEDAgentClient | None = None,
        **rules: Unpack[Ruled],
    ) -> None:
        """The keywords are those of a Checkpoint."""
        super().__init__()
        self._checkpoint = Checkpoint(agent_id=agent_id, agent_token=agent_token, client=client, **rules)

    def before_agent(self, state: Conversing, runtime: "Runtime[Any]") -> dict[str, Any] | None:  # noqa: ARG002
        return {"qwed_conversation": uuid4().hex}

    def wrap_tool_call(self, request: "ToolCallRequest", handler: "Callable[[ToolCallRequest], Told]") -> "Told":
        """What the tool says, or what the model is told instead."""
        said = self._checkpoint.before(*_asked(request))
        if isinstance(said, Refusal):
            return _refused(request, said)
        outcome = None
        try:
            told = handler(_permitted(request, said))
            outcome = outcome_of(told)
            return told
        finally:
            outcome = outcome or failure_of(sys.exception())
            if outcome is not None:
                self._checkpoint.after(said, *outcome)

    async def awrap_tool_call(
        self, request: "ToolCallRequest", handler: "Callable[[ToolCallRequest], Awaitable[Told]]"
    ) -> "Told":
        """The same, not blocking the event loop."""
        said = await self._checkpoint.before_async(*_asked(request))
        if isinstance(said, Refusal):
            return _refused(request, said)
        outcome = None
        try:
            told = await handler(_permitted(request, said))
            outcome = outcome_of(told)
            return told
        finally:
            outcome = outcome or failure_of(sys.exception())
            if outcome is not None:
                await self._checkpoint.after_async(said, *outcome)


def _asked(request: "ToolCallRequest") -> tuple[str, dict[str, Any], str | None]:
    # A middleware outside this one may have put another tool in the place of the one the model named.
    name = request.tool_call["name"] if request.tool is None else request.tool.name
    return name, with_defaults(request.tool, request.tool_call["args"]), _conversation(request)


def _conversation(request: "ToolCallRequest") -> str | None:
    thread = request.runtime.config.get("configurable", {}).get("thread_id")
    if thread is not None:
        return str(thread)
    # A graph of one's own with a bare ToolNode has another state, or none.
    return request.state.get("qwed_conversation") if isinstance(request.state, Mapping) else None


def _permitted(request: "ToolCallRequest", permit: Permit) -> "ToolCallRequest":
    if permit.answer.corrected is None:
        return request
    return request.override(tool_call={**request.tool_call, "args": permit.arguments})


def _refused(request: "ToolCallRequest", refusal: Refusal) -> "ToolMessage":
    call = request.tool_call
    return ToolMessage(content=str(refusal), name=call["name"], tool_call_id=call["id"], status="error")
