"""Whoever decides: a server that is asked over HTTP, or a Gate of the proxy's own."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from qwed_sdk.records import Action, Answer


class Identity(NamedTuple):
    """The agent as which a proxy asks."""

    agent_id: str
    agent_token: str

    def __repr__(self) -> str:
        return f"Identity(agent_id={self.agent_id!r})"


class Kernel(Protocol):
    """Answers questions; QWEDError where none could be had."""

    agent_id: str
    place: str
    """Where it decides: an address, or a directory."""
    waits: bool
    """Whether somebody else may decide while we wait."""
    approving: str
    """What a person does to approve, such as `run ...`."""

    async def ask(self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None) -> Answer:
        """May this happen? With a `key` the same question is decided once, however often it is asked."""

    async def look(self, action_id: str, wait: float) -> Action:
        """The action once a person has decided, or as it stands after so many seconds."""

    async def log(
        self, action_id: str, success: bool, result_hash: str | None, attestation: str | dict[str, Any] | None
    ) -> None:
        """What became of what was permitted."""

    async def close(self) -> None:
        """Give back what is held."""
