"""A kernel that is asked over HTTP, on connections that stay open."""

from collections.abc import Mapping
from typing import Any

from qwed.proxies.kernel import Identity
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.records import Action, Answer

PATIENCE = 15.0
"""Seconds for an answer; a person has longer."""


class Remote:
    """Asks with the agent's own token and nothing else: whoever holds a key could approve as well."""

    waits = True
    approving = "`qwed approvals approve {approval} --reason ...`"

    def __init__(self, identity: Identity, base_url: str) -> None:
        self.agent_id = identity.agent_id
        self.place = base_url
        self._client = QWEDAsyncClient(base_url=base_url, timeout=PATIENCE, agent_token=identity.agent_token, retries=1)

    async def ask(self, action: Mapping[str, Any], context: Mapping[str, Any], key: str | None = None) -> Answer:
        """May this happen?"""
        return await self._client.verify_action(self.agent_id, action, context, idempotency_key=key)

    async def look(self, action_id: str, wait: float) -> Action:
        """The action as it stands after so many seconds at most."""
        if wait <= 0:
            return await self._client.get_action(self.agent_id, action_id)
        return await self._client.wait_for_decision(self.agent_id, action_id, wait)

    async def log(
        self, action_id: str, success: bool, result_hash: str | None, attestation: str | dict[str, Any] | None
    ) -> None:
        """What became of what was permitted."""
        await self._client.log_execution(
            self.agent_id, action_id, success, attestation=attestation, result_hash=result_hash
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
