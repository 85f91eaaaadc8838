"""Outcome of a tool call, derived from what LangChain returns or raises."""

import sys
from typing import Any, NamedTuple


class ToolOutcome(NamedTuple):
    """Success of a tool call, and its result as text."""

    success: bool
    result: str | None


def outcome_of(output: Any) -> ToolOutcome:
    """Return the outcome of a tool's output: a message, a Command, a list of them, or any value."""
    if isinstance(output, list):
        parts = [outcome_of(item) for item in output]
        texts = [part.result for part in parts if part.result is not None]
        return ToolOutcome(all(part.success for part in parts), "\n".join(texts) or None)
    return ToolOutcome(getattr(output, "status", None) != "error", _text(output))


def failure_of(error: BaseException | None) -> ToolOutcome | None:
    """Return the outcome of an exception, or None if the call is paused or cancelled."""
    graph = sys.modules.get("langgraph.errors")
    paused = graph is not None and isinstance(error, graph.GraphBubbleUp)
    return None if paused or not isinstance(error, Exception) else ToolOutcome(False, repr(error))


def _text(output: Any) -> str | None:
    content = getattr(output, "content", output)
    return content if content is None or isinstance(content, str) else str(content)
