"""Interface of the decision backend: a server reached over HTTP, or a Gate of the proxy's own."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from qwed_sdk.models import Action, Answer


class Identity(NamedTuple):
    """Agent id, and the token that proves it; without a token it is an unproven name."""

    agent_id: str
    agent_token: str | None = None

    def __repr__(self) -> str:
        return f"Identity(agent_id={self.agent_id!r})"


class DecisionBackend(Protocol):
    """Decision backend of a proxy; its methods raise QWEDError on failure."""

    agent_id: str
    location: str
    """Address of the server, or directory of the Gate."""
    can_wait: bool
    """True if an approver may decide while the proxy waits."""
    approval_hint: str
    """Command that approves an action, such as `run ...`; `{approval}` stands for the approval id."""

    async def verify_action(
        self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None
    ) -> Answer:
        """Return the decision about an action; with a `key` a repeated request is decided only once."""

    async def get_action(self, action_id: str, wait: float) -> Action:
        """Return the action once an approver has decided, or its current state after `wait` seconds."""

    async def log_execution(
        self, action_id: str, success: bool, result_hash: str | None, attestation: str | dict[str, Any] | None
    ) -> None:
        """Log the outcome of a permitted action."""

    async def close(self) -> None:
        """Release connections and files."""
