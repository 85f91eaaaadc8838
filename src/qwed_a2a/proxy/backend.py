"""Interface of the message backend: the decision backend of a proxy that gives verdicts on messages too."""

from typing import Protocol

from qwed.ledger.keyring import Keyring
from qwed.proxies.backend import DecisionBackend, Identity
from qwed_a2a.message import AgentMessage
from qwed_a2a.verdict import VerificationVerdict


class MessageBackend(DecisionBackend, Protocol):
    """Source of verdicts; it raises QWEDError when it has none, which refuses the message too."""

    client: Identity
    """Sender of messages from clients without credentials."""
    upstream: Identity
    """Sender of the answers of the agent behind the proxy; decisions are requested in its name too."""
    verdict_keyring: Keyring | None
    """Keys that sign verdicts, if that happens in this process."""

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        """Return the verdict on one message, signed and logged."""
