"""Interceptor that verifies every message between agents before it reaches its recipient."""

import asyncio
import time
import unicodedata
from datetime import UTC, datetime
from typing import Any

from qwed.engines.verdict_cache import VerdictCache
from qwed.futures import LoopRunner
from qwed.kernel.a2a.admission import BYPASSED
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.ledger.attestation_verifier import UNREAD
from qwed.ledger.keyring import Keyring
from qwed.model.clock import Clock
from qwed_a2a.attestation import ephemeral_keyring, seal
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import digest_of
from qwed_a2a.judge import ContentJudge
from qwed_a2a.message import MAX_ID_LENGTH, AgentMessage
from qwed_a2a.metrics import InterceptorMetrics
from qwed_a2a.trust_boundary import MessageBoundary, TrustBoundary
from qwed_a2a.verdict import VerificationVerdict

_WAIT_SECONDS = 15.0


class A2AVerificationInterceptor(ContentJudge):
    """Interceptor that returns a signed verdict for each message. Safe to use from any thread and any number of event
    loops."""

    def __init__(
        self,
        config: InterceptorConfig | None = None,
        trust_boundary: MessageBoundary | None = None,
        signer: Keyring | None = None,
        *,
        engines: VerdictCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(config or InterceptorConfig(), engines)
        self.boundary: MessageBoundary = trust_boundary if trust_boundary is not None else TrustBoundary()
        self.signer = signer if signer is not None else ephemeral_keyring()
        self.metrics = InterceptorMetrics()
        self._clock = clock

    async def intercept(
        self, message: AgentMessage, trace_id: str, *, proven: bool = True, at: datetime | None = None
    ) -> VerificationVerdict:
        """Return the signed verdict for one message; `proven` is True if the sender is authenticated.

        The verdict has the time `at`, else that of the clock, else that of the message, so that the same message gets
        the same answer.
        """
        require_trace_id(trace_id)
        began = time.perf_counter()
        measured = digest_of(message.payload, self.config.max_payload_size_bytes)
        digest = measured if isinstance(measured, str) else UNREAD
        driver = LoopRunner(asyncio.get_running_loop(), _WAIT_SECONDS)
        verdict = await driver.run(self._decide(message, proven)) if isinstance(measured, str) else measured
        now = at or (message.timestamp if self._clock is None else self.now())
        sealed = seal(self.signer, message, verdict, trace_id=trace_id, at=now, digest=digest)
        self.metrics.count(sealed.status, sealed.engine_used, time.perf_counter() - began)
        return sealed

    def jwks(self) -> dict[str, Any]:
        """Return the public keys that verify its attestations."""
        return {"keys": self.signer.public_jwks()}

    def now(self) -> datetime:
        """Return the time of its clock, else that of the machine."""
        return datetime.fromtimestamp(time.time() if self._clock is None else self._clock.now(), UTC)

    async def _decide(self, message: AgentMessage, proven: bool) -> MessageVerdict:
        """Return the verdict of the trust boundary or of the bypass, else that on the content."""
        self.require_open()
        answer = self.boundary.evaluate(message.sender_agent_id, message.receiver_agent_id, message.payload_type)
        allowed, reason = answer if isinstance(answer, tuple) else await answer
        if not allowed:
            return MessageVerdict(False, EngineName.TRUST_BOUNDARY, reason)
        if proven and message.sender_agent_id in (self.config.trusted_agents or ()):
            return BYPASSED
        return await self.judge(message)


def require_trace_id(trace_id: str) -> None:
    """Raise ValueError unless it is a text of 1 to 256 characters without control characters."""
    fits = isinstance(trace_id, str) and 0 < len(trace_id) <= MAX_ID_LENGTH
    # Cs are lone surrogates, which cannot be encoded.
    if not fits or any(unicodedata.category(character) in ("Cc", "Cs") for character in trace_id):
        raise ValueError(f"`trace_id` must be a text of 1 to {MAX_ID_LENGTH} characters without control characters")
