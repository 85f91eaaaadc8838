"""What the Pydantic AI tests and the scene share: a model that follows a script, and tools that only remember."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai import FunctionToolset, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

Asked = tuple[str, dict[str, Any]]


def scripted(*turns: list[Asked]) -> FunctionModel:
    """A model that asks for the calls of each turn at once, turn by turn, and then says `done`."""

    def parts(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        calls = turns[turn] if turn < len(turns) else []
        return [ToolCallPart(tool, given, tool_call_id=f"{turn}.{call}") for call, (tool, given) in enumerate(calls)]

    def whole(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=parts(messages) or [TextPart("done")])

    async def streamed(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        calls = parts(messages)
        for index, call in enumerate(calls):
            yield {index: DeltaToolCall(call.tool_name, call.args_as_json_str(), tool_call_id=call.tool_call_id)}
        if not calls:
            yield "done"

    return FunctionModel(whole, stream_function=streamed)


def toolbox(ran: list[Asked]) -> FunctionToolset[Any]:
    """The three tools of the scenes; each writes down that it ran, and with what."""
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


def told(messages: Sequence[ModelMessage]) -> list[str]:
    """What the tools of a run gave back to the model."""
    return [str(part.content) for each in messages for part in each.parts if part.part_kind == "tool-return"]
