"""What the OpenAI Agents tests and the scene share: a model that follows a script, and tools that only remember."""

import itertools
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, RunResult, RunResultStreaming, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

# Traces go to the provider, and the tests talk to this machine alone.
set_tracing_disabled(True)

Asked = tuple[str, dict[str, Any]]
_numbers = itertools.count(1)


def scripted(*turns: list[Asked]) -> ScriptedModel:
    """A model that asks for the calls of each turn at once, turn by turn, and then says `done`."""
    steps = [[function_call(tool, given, call_id=f"call_{next(_numbers)}") for tool, given in calls] for calls in turns]
    return ScriptedModel([*steps, [assistant_message("done")]])


def toolbox(ran: list[Asked]) -> list[FunctionTool]:
    """The three tools of the scenes; each writes down that it ran, and with what."""

    @function_tool
    def search_web(query: str) -> str:
        ran.append(("search_web", {"query": query}))
        return f"found {query}"

    @function_tool
    def delete_database(name: str) -> str:
        ran.append(("delete_database", {"name": name}))
        return "deleted"

    @function_tool
    async def send_email(to: str, body: str) -> str:
        ran.append(("send_email", {"to": to, "body": body}))
        return "sent"

    return [search_web, delete_database, send_email]


def told(result: RunResult | RunResultStreaming) -> list[str]:
    """What the tools of a run gave back to the model."""
    return [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]


def names(calls: Iterable[Asked]) -> list[str]:
    """The tools that were called."""
    return [tool for tool, _ in calls]
