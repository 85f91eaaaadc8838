"""Message backend that asks a server over persistent HTTP connections."""

from datetime import datetime
from typing import Any

from qwed.proxies.remote_backend import DECISION_SECONDS
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.backend import Peer
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.errors import QWEDAuthError, QWEDProtocolError

OWNER = "owner"
_NAMELESS = "a sender without a token cannot be verified: "
_NO_KEY = f"{_NAMELESS}set QWED_API_KEY to a member's key, or send QWED-Agent-Token too"
_OWNERS_KEY = (
    f"{_NAMELESS}QWED_API_KEY is an owner's key, which would prove any name; give the proxy a member's key "
    "(`qwed api-keys create NAME`), or send QWED-Agent-Token too"
)


class RemoteMessageBackend:
    """Message backend that uses the sender's token; an unproven name is sent with a member key, or refused."""

    def __init__(self, base_url: str, client: Peer, upstream: Peer, api_key: str | None) -> None:
        self.location = base_url
        self.client = client
        self.upstream = upstream
        self._has_key = api_key is not None
        self._role: str | None = None
        self._client = QWEDAsyncClient(api_key, base_url, DECISION_SECONDS, retries=1)

    async def intercept(self, message: AgentMessage, sender: Peer) -> VerificationVerdict:
        """Return the verdict on one message, signed and logged."""
        if not sender.token:
            await self._require_member_key()
        # An empty token is no token: the client must not combine it with the key.
        return _parse_verdict(await self._client.intercept(message, sender.token or None))

    async def learn_role(self) -> None:
        """Determine the role of the API key; raise QWEDError if the server does not answer."""
        if self._has_key and self._role is None:
            self._role = str((await self._client.get_own_key())["role"])

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
        await self._client.close()


def _parse_verdict(members: Any) -> VerificationVerdict:
    try:
        return VerificationVerdict(
            status=VerdictStatus(members["status"]),
            reason=str(members["reason"]),
            audit_trace_id=str(members["audit_trace_id"]),
            attestation_jwt=members.get("attestation_jwt"),
            engine_used=EngineName(members["engine_used"]),
            verified_at=datetime.fromisoformat(members["verified_at"]),
            details=dict(members.get("details") or {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise QWEDProtocolError(f"the server's verdict cannot be read: {type(error).__name__}") from None
