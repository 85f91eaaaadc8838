"""Scripted model and recording tools for the OpenAI Agents tests and scene."""

import itertools
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, RunResult, RunResultStreaming, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

# Traces would be sent to the provider, and the tests only connect to this machine.
set_tracing_disabled(True)

CallSpec = tuple[str, dict[str, Any]]
_numbers = itertools.count(1)


def scripted(*turns: list[CallSpec]) -> ScriptedModel:
    """Return a model that makes the calls of each turn at once, turn by turn, and then says `done`."""
    steps = [
        [function_call(tool, arguments, call_id=f"call_{next(_numbers)}") for tool, arguments in calls]
        for calls in turns
    ]
    return ScriptedModel([*steps, [assistant_message("done")]])


def toolbox(ran: list[CallSpec]) -> list[FunctionTool]:
    """Return the three tools of the scenes; each records its calls."""

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


def tool_outputs(result: RunResult | RunResultStreaming) -> list[str]:
    """Return what the tools of a run returned to the model."""
    return [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]


def tool_names(calls: Iterable[CallSpec]) -> list[str]:
    """Return the names of the called tools."""
    return [tool for tool, _ in calls]
