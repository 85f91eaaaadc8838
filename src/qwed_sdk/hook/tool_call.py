"""Tool call in the input of a hook, independent of the agent."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolCall(NamedTuple):
    """Tool call that is about to run, or has run."""

    agent: str
    """Agent that called the hook; it determines the output format."""
    tool: str
    arguments: Mapping[str, Any]
    session: str | None = None
    """The agent's own id of the conversation."""
    turn: str | None = None
    """The agent's own id of the work between two prompts."""
    use_id: str | None = None
    """The agent's own id of this call."""
    cwd: str | None = None
    """Working directory of the call."""
    success: bool | None = None
    """Result of the call; None before it ran."""
    can_ask: bool = False
    """True if the agent can ask its user first."""

    @property
    def is_over(self) -> bool:
        """True if the tool has already run."""
        return self.success is not None
