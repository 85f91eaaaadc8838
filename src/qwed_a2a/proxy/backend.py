"""Interface of the message backend: a server reached over HTTP, or a Gate of the proxy's own."""

from typing import NamedTuple, Protocol

from qwed_a2a.message import AgentMessage
from qwed_a2a.verdict import VerificationVerdict


class Peer(NamedTuple):
    """One end of a conversation: an agent with its token, or an unproven name."""

    agent_id: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Peer(agent_id={self.agent_id!r})"


class MessageBackend(Protocol):
    """Source of verdicts; it raises QWEDError when it has none, which refuses the message too."""

    location: str
    """Address of the server, or directory of the Gate."""
    client: Peer
    """Sender of messages from clients without credentials."""
    upstream: Peer
    """Sender of the answers of the agent behind the proxy."""

    async def intercept(self, message: AgentMessage, sender: Peer) -> VerificationVerdict:
        """Return the verdict on one message, signed and logged."""

    async def close(self) -> None:
        """Release connections and files."""
