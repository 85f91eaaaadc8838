"""Whoever decides: a server that is asked over HTTP, or a Gate of the proxy's own."""

from typing import NamedTuple, Protocol

from qwed_a2a.message import AgentMessage
from qwed_a2a.verdict import VerificationVerdict


class Party(NamedTuple):
    """One end of a conversation: an agent of ours with the token that proves it, or a name that proves nothing."""

    agent_id: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Party(agent_id={self.agent_id!r})"


class Kernel(Protocol):
    """Gives verdicts; QWEDError where none could be had, which is a refusal too."""

    place: str
    """Where it decides: an address, or a directory."""
    client: Party
    """As whom those clients send that show nothing of their own."""
    upstream: Party
    """As whom the agent behind the proxy answers."""

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        """The verdict on one message, signed and in the log."""

    async def close(self) -> None:
        """Give back what is held."""
