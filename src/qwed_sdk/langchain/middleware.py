"""QWEDMiddleware: a LangChain 1.x middleware that verifies each tool call and runs the permitted arguments."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Unpack
from uuid import uuid4

from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.client import QWEDClient
from qwed_sdk.langchain.tool_result import failure_of, outcome_of
from qwed_sdk.optional_import import import_or_stub
from qwed_sdk.permits import Permit, Refusal
from qwed_sdk.to_json import NotJsonSerializableError, to_plain_json
from qwed_sdk.tool_guard import Checkpoint, CheckpointRules

if TYPE_CHECKING:
    from langchain.agents import AgentState
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    ToolReply = ToolMessage | Command[Any]
else:
    AgentMiddleware = import_or_stub("langchain.agents.middleware", "AgentMiddleware", "langchain")
    AgentState = import_or_stub("langchain.agents", "AgentState", "langchain")
    PrivateStateAttr = import_or_stub("langchain.agents.middleware.types", "PrivateStateAttr", "langchain")
    ToolMessage = import_or_stub("langchain_core.messages", "ToolMessage", "langchain")


class ConversationState(AgentState[Any]):
    """Agent state with the conversation of a run that has no thread."""

    qwed_conversation: NotRequired[Annotated[str, PrivateStateAttr]]


class QWEDMiddleware(AgentMiddleware[ConversationState, Any, Any]):
    """Middleware for `create_agent`: a denied tool does not run, and the model receives the reason."""

    state_schema = ConversationState

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: QWEDClient | QWEDAgentClient | None = None,
        **rules: Unpack[CheckpointRules],
    ) -> None:
        """The keywords are those of a Checkpoint."""
        super().__init__()
        self._checkpoint = Checkpoint(agent_id=agent_id, agent_token=agent_token, client=client, **rules)

    def before_agent(self, state: ConversationState, runtime: "Runtime[Any]") -> dict[str, Any] | None:  # noqa: ARG002
        return {"qwed_conversation": uuid4().hex}

    def wrap_tool_call(
        self, request: "ToolCallRequest", handler: "Callable[[ToolCallRequest], ToolReply]"
    ) -> "ToolReply":
        """Return the tool's reply, or the refusal as a tool message."""
        decision = self._checkpoint.before(*_tool_call_of(request))
        if isinstance(decision, Refusal):
            return _refusal_message(request, decision)
        outcome = None
        try:
            reply = handler(_permitted_request(request, decision))
            outcome = outcome_of(reply)
            return reply
        finally:
            outcome = outcome or failure_of(sys.exception())
            if outcome is not None:
                self._checkpoint.after(decision, *outcome)

    async def awrap_tool_call(
        self, request: "ToolCallRequest", handler: "Callable[[ToolCallRequest], Awaitable[ToolReply]]"
    ) -> "ToolReply":
        """Do the same without blocking the event loop."""
        decision = await self._checkpoint.before_async(*_tool_call_of(request))
        if isinstance(decision, Refusal):
            return _refusal_message(request, decision)
        outcome = None
        try:
            reply = await handler(_permitted_request(request, decision))
            outcome = outcome_of(reply)
            return reply
        finally:
            outcome = outcome or failure_of(sys.exception())
            if outcome is not None:
                await self._checkpoint.after_async(decision, *outcome)


def _tool_call_of(request: "ToolCallRequest") -> tuple[str, dict[str, Any], str | None]:
    # An outer middleware may have replaced the tool that the model named.
    name = request.tool_call["name"] if request.tool is None else request.tool.name
    return name, _with_defaults(request.tool, request.tool_call["args"]), _conversation_of(request)


def _conversation_of(request: "ToolCallRequest") -> str | None:
    thread = request.runtime.config.get("configurable", {}).get("thread_id")
    if thread is not None:
        return str(thread)
    # A custom graph with a bare ToolNode may have another state, or none.
    return request.state.get("qwed_conversation") if isinstance(request.state, Mapping) else None


def _permitted_request(request: "ToolCallRequest", permit: Permit) -> "ToolCallRequest":
    if permit.answer.corrected is None:
        return request
    return request.override(tool_call={**request.tool_call, "args": permit.arguments})


def _refusal_message(request: "ToolCallRequest", refusal: Refusal) -> "ToolMessage":
    call = request.tool_call
    return ToolMessage(content=str(refusal), name=call["name"], tool_call_id=call["id"], status="error")


def _with_defaults(tool: "BaseTool | None", arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the tool will receive; a default that is not JSON is left out."""
    left_out = {name: value for name, value in _defaults(tool) if name not in arguments and _is_plain(value)}
    return {**left_out, **arguments}


def _defaults(tool: "BaseTool | None") -> Iterator[tuple[str, Any]]:
    """Yield the defaults in the schema that the model sees, which has no arguments injected by LangChain."""
    schema = None if tool is None else tool.tool_call_schema
    if isinstance(schema, dict):
        properties = schema.get("properties", {}).items()
        yield from ((name, description["default"]) for name, description in properties if "default" in description)
        return
    for name, field in getattr(schema, "model_fields", {}).items():
        # The value of a default factory is not known before it is called.
        if not field.is_required() and field.default_factory is None:
            yield name, field.default


def _is_plain(value: Any) -> bool:
    try:
        to_plain_json(value, "default")
    except NotJsonSerializableError:
        return False
    return True
