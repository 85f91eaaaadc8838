"""A kernel that is asked over HTTP, on connections that stay open."""

from datetime import datetime
from typing import Any

from qwed.proxies.remote import PATIENCE
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.errors import QWEDAuthError, QWEDProtocolError

OWNER = "owner"
_NAMELESS = "a sender that shows no token cannot be asked about: "
_NO_KEY = f"{_NAMELESS}set QWED_API_KEY to a member's key, or send QWED-Agent-Token too"
_OWNERS_KEY = (
    f"{_NAMELESS}QWED_API_KEY is an owner's key, which would prove any name; give the proxy a member's key "
    "(`qwed api-keys create NAME`), or send QWED-Agent-Token too"
)


class Remote:
    """Asks with the sender's own token; about a name alone with a key that proves nobody, or not at all."""

    def __init__(self, base_url: str, client: Party, upstream: Party, api_key: str | None) -> None:
        self.place = base_url
        self.client = client
        self.upstream = upstream
        self._has_key = api_key is not None
        self._role: str | None = None
        self._client = QWEDAsyncClient(api_key, base_url, PATIENCE, retries=1)

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        """The verdict on one message, signed and in the log."""
        if not sender.token:
            await self._require_nobodys_key()
        # An empty token is none, and must not be one beside which a key is taken.
        return _verdict(await self._client.intercept(message, sender.token or None))

    async def learn_role(self) -> None:
        """Find out whose key it is; QWEDError where the server does not say."""
        if self._has_key and self._role is None:
            self._role = str((await self._client.get_own_key())["role"])

    @property
    def may_prove_anybody(self) -> bool:
        """Whether the key is an owner's, which is more than a proxy needs."""
        return self._role == OWNER

    async def _require_nobodys_key(self) -> None:
        if not self._has_key:
            raise QWEDAuthError(_NO_KEY)
        await self.learn_role()
        if self.may_prove_anybody:
            raise QWEDAuthError(_OWNERS_KEY)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _verdict(said: Any) -> VerificationVerdict:
    try:
        return VerificationVerdict(
            status=VerdictStatus(said["status"]),
            reason=str(said["reason"]),
            audit_trace_id=str(said["audit_trace_id"]),
            attestation_jwt=said.get("attestation_jwt"),
            engine_used=EngineName(said["engine_used"]),
            verified_at=datetime.fromisoformat(said["verified_at"]),
            details=dict(said.get("details") or {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise QWEDProtocolError(f"the server's verdict cannot be read: {type(error).__name__}") from None
