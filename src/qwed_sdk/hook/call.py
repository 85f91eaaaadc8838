"""One tool call as a hook is told of it, whichever agent tells it."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Unusable(ValueError):
    """It cannot be decided; the message is the sentence that says what to do."""


class Call(NamedTuple):
    """A tool that is about to be called, or was."""

    agent: str
    """Whose hook this is: how an answer is written depends on it."""
    tool: str
    arguments: Mapping[str, Any]
    session: str | None = None
    """The agent's own name for the conversation."""
    turn: str | None = None
    """The agent's own name for what it does between one prompt and the next."""
    use_id: str | None = None
    """The agent's own name for this call."""
    cwd: str | None = None
    """The directory the call would run in."""
    success: bool | None = None
    """How it went; None before it ran."""
    can_ask: bool = False
    """Whether this agent can be told to ask the person before it."""

    @property
    def is_over(self) -> bool:
        """Whether the tool has run already."""
        return self.success is not None


def quoted(text: object) -> str:
    """A piece of somebody else's text, short, in backticks."""
    plain = "".join(char if char.isprintable() and char != "`" else "?" for char in str(text)[:60])
    return f"`{plain}`"
