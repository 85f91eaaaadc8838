"""What became of a permitted tool call, read off what LangChain hands back."""

import sys
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """Whether the tool did what was asked, and what it said."""

    success: bool
    result: str | None


def outcome_of(output: Any) -> Outcome:
    """Of what a tool returned: a message, a Command, several of them, or any value."""
    if isinstance(output, list):
        parts = [outcome_of(each) for each in output]
        said = [part.result for part in parts if part.result is not None]
        return Outcome(all(part.success for part in parts), "\n".join(said) or None)
    return Outcome(getattr(output, "status", None) != "error", _text(output))


def failure_of(error: BaseException | None) -> Outcome | None:
    """Of what a tool raised; None where it is not over: it waits for a person, or was cancelled half way."""
    graph = sys.modules.get("langgraph.errors")
    paused = graph is not None and isinstance(error, graph.GraphBubbleUp)
    return None if paused or not isinstance(error, Exception) else Outcome(False, repr(error))


def _text(output: Any) -> str | None:
    content = getattr(output, "content", output)
    return content if content is None or isinstance(content, str) else str(content)
