"""Message backend that asks a server over persistent HTTP connections."""

from typing import Any

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.proxies.backend import Identity
from qwed.proxies.remote_backend import DECISION_SECONDS, RemoteBackend
from qwed_a2a.message import AgentMessage
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.errors import QWEDAuthError, QWEDProtocolError

OWNER = "owner"
_NAMELESS = "a sender without a token cannot be verified: "
_NO_KEY = f"{_NAMELESS}set QWED_API_KEY to a member's key, or send QWED-Agent-Token too"
_OWNERS_KEY = (
    f"{_NAMELESS}QWED_API_KEY is an owner's key, which would prove any name; give the proxy a member's key "
    "(`qwed api-keys create NAME`), or send QWED-Agent-Token too"
)


class RemoteMessageBackend(RemoteBackend):
    """Message backend that uses the sender's token; an unproven name is sent with a member key, or refused."""

    verdict_keyring: Keyring | None = None

    def __init__(self, base_url: str, client: Identity, upstream: Identity, api_key: str | None) -> None:
        super().__init__(upstream, base_url)
        self.client = client
        self.upstream = upstream
        self._has_key = api_key is not None
        self._role: str | None = None
        self._message_client = QWEDAsyncClient(api_key, base_url, DECISION_SECONDS, retries=1)

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        """Return the verdict on one message, signed and logged."""
        if not sender.agent_token:
            await self._require_member_key()
        # An empty token is no token: the client must not combine it with the key.
        return _parse_verdict(await self._message_client.intercept(message, sender.agent_token or None))

    async def learn_role(self) -> None:
        """Determine the role of the API key; raise QWEDError if the server does not answer."""
        if self._has_key and self._role is None:
            self._role = str((await self._message_client.get_own_key())["role"])

    @property
    def has_owner_key(self) -> bool:
        """True if the key is an owner's, which is more than a proxy needs."""
        return self._role == OWNER

    async def _require_member_key(self) -> None:
        if not self._has_key:
            raise QWEDAuthError(_NO_KEY)
        await self.learn_role()
        if self.has_owner_key:
            raise QWEDAuthError(_OWNERS_KEY)

    async def close(self) -> None:
        """Close the connections."""
        await self._message_client.close()
        await super().close()


def _parse_verdict(members: Any) -> VerificationVerdict:
    try:
        return msgspec.convert(members, VerificationVerdict)
    except msgspec.ValidationError as error:
        raise QWEDProtocolError(f"the server's verdict cannot be read: {error}") from None
