"""Decision backend that asks a server over persistent HTTP connections."""

from collections.abc import Mapping
from typing import Any

from qwed.proxies.backend import Identity
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.models import Action, Answer

DECISION_SECONDS = 15.0
"""Timeout of one request in seconds; waiting for an approver may take longer."""


class RemoteBackend:
    """Decision backend with the agent's token and no API key, because a key could also approve."""

    can_wait = True
    approval_hint = "`qwed approvals approve {approval} --reason ...`"

    def __init__(self, identity: Identity, base_url: str) -> None:
        self.agent_id = identity.agent_id
        self.location = base_url
        self._client = QWEDAsyncClient(
            base_url=base_url, timeout=DECISION_SECONDS, agent_token=identity.agent_token, retries=1
        )

    async def verify_action(
        self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None
    ) -> Answer:
        """Return the server's decision about an action."""
        return await self._client.verify_action(self.agent_id, action, context, idempotency_key=key)

    async def get_action(self, action_id: str, wait: float) -> Action:
        """Return the action once it is decided, or after `wait` seconds at most."""
        if wait <= 0:
            return await self._client.get_action(self.agent_id, action_id)
        return await self._client.wait_for_decision(self.agent_id, action_id, wait)

    async def log_execution(
        self, action_id: str, success: bool, result_hash: str | None, attestation: str | dict[str, Any] | None
    ) -> None:
        """Log the outcome of a permitted action."""
        await self._client.log_execution(
            self.agent_id, action_id, success, attestation=attestation, result_hash=result_hash
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
