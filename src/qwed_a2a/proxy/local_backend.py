"""Message backend with a Gate of its own, run on the event loop of the proxy."""

import asyncio
from pathlib import Path

import msgspec

from qwed.futures import LoopRunner, run_in_thread
from qwed.gate import Gate, GateError
from qwed.gate.gate_result import unwrap
from qwed.kernel.admin.organisations import add_key
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.authentication import find_key
from qwed.kernel.case import Credentials
from qwed.ledger.keyring import Keyring
from qwed.ledger.subject_encryption import VaultError
from qwed.proxies.backend import Identity
from qwed.proxies.local_backend import DECISION_SECONDS, GATE_DIRECTORY, LocalBackend, store_errors_as_qwed_errors
from qwed.proxies.state_directory import read_json_object, write_json_object
from qwed.store.protocol import StoreError
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.parsing_pool import LARGE_BYTES, new_parsing_pool
from qwed_a2a.service import InterceptorService, RecordedVerdict
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.errors import QWEDAuthError, QWEDError, UsageError

FILE = "member.json"
_KEY_NAME = "a2a proxy"
_ROLE = "member"
_UNPROVEN = "QWED-AUTH-002"
_encode = msgspec.json.Encoder().encode


class LocalMessageBackend(LocalBackend):
    """Message backend that uses the sender's token; an unproven name is sent with a member key that proves no agent."""

    def __init__(self, gate: Gate, directory: Path, client: Identity, upstream: Identity, member_key: str) -> None:
        super().__init__(gate, upstream, directory)
        self.client = client
        self.upstream = upstream
        self.verdict_keyring: Keyring | None = gate.services.signer.keyring
        self._service = InterceptorService(gate.services)
        # Not the owner's credentials of this process, which prove any name.
        self._anonymous = Credentials(api_key=member_key)
        self._parsing_pool = new_parsing_pool()

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        """Return the verdict on one message, signed and logged."""
        credentials = Credentials(agent_token=sender.agent_token) if sender.agent_token else self._anonymous
        size = len(_encode(message.payload))
        with store_errors_as_qwed_errors():
            if size < LARGE_BYTES:
                outcome = await self._driver.run(self._service.intercept(message, credentials))
            else:
                outcome = await self._parsing_pool.run(
                    message.sender_agent_id, self._in_thread, message, credentials, size=size
                )
        if isinstance(outcome, Problem):
            kind = QWEDAuthError if outcome.code == _UNPROVEN else QWEDError
            raise kind(outcome.message, code=outcome.code, suggestion=outcome.suggestion)
        return outcome.verdict

    def _in_thread(self, message: AgentMessage, credentials: Credentials) -> RecordedVerdict | Problem:
        return run_in_thread(self._service.intercept(message, credentials), DECISION_SECONDS)

    async def close(self) -> None:
        """Flush the queued writes and release the directory."""
        self._parsing_pool.close()
        await super().close()


async def ensure_member_key(gate: Gate, directory: Path) -> str:
    """Return a member key of the Gate, created once and stored; raise UsageError if that fails."""
    stored = (read_json_object(directory / FILE) or {}).get("key")
    services = gate.services
    if isinstance(stored, str) and _is_member(find_key(stored, services.store)):
        return stored
    driver = LoopRunner(asyncio.get_running_loop(), DECISION_SECONDS)
    try:
        key = unwrap(await driver.run(add_key(_KEY_NAME, _ROLE, Actor(GATE, gate.organisation_id, "owner"), services)))
    except (GateError, StoreError, VaultError, TimeoutError) as error:
        raise UsageError(f"no key could be created in {directory / GATE_DIRECTORY}: {error}") from None
    write_json_object(directory / FILE, {"key": key.text})
    return key.text


def _is_member(key: object) -> bool:
    return getattr(key, "role", None) == _ROLE
