"""Scripted model and recording tools for the Pydantic AI tests and scene."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai import FunctionToolset, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

CallSpec = tuple[str, dict[str, Any]]


def scripted(*turns: list[CallSpec]) -> FunctionModel:
    """Return a model that makes the calls of each turn at once, turn by turn, and then says `done`."""

    def parts(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        calls = turns[turn] if turn < len(turns) else []
        return [
            ToolCallPart(tool, arguments, tool_call_id=f"{turn}.{call}") for call, (tool, arguments) in enumerate(calls)
        ]

    def whole(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=parts(messages) or [TextPart("done")])

    async def streamed(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        calls = parts(messages)
        for index, call in enumerate(calls):
            yield {index: DeltaToolCall(call.tool_name, call.args_as_json_str(), tool_call_id=call.tool_call_id)}
        if not calls:
            yield "done"

    return FunctionModel(whole, stream_function=streamed)


def toolbox(ran: list[CallSpec]) -> FunctionToolset[Any]:
    """Return the three tools of the scenes; each records its calls."""
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool_plain
    def search_web(query: str) -> str:
        ran.append(("search_web", {"query": query}))
        return f"found {query}"

    @tools.tool_plain
    def delete_database(name: str) -> str:
        ran.append(("delete_database", {"name": name}))
        return "deleted"

    @tools.tool_plain
    async def send_email(to: str, body: str) -> str:
        ran.append(("send_email", {"to": to, "body": body}))
        return "sent"

    return tools


def tool_outputs(messages: Sequence[ModelMessage]) -> list[str]:
    """Return what the tools of a run returned to the model."""
    return [str(part.content) for message in messages for part in message.parts if part.part_kind == "tool-return"]
