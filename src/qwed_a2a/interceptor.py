"""The central component: every message between agents passes through it before it reaches its recipient."""

import asyncio
import logging
import threading
import time
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from qwed.engines.pool import EnginePool
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import OnBehalf, Verdicts
from qwed.ledger.keyring import Keyring
from qwed.ledger.tokens import UNREAD
from qwed.waiting import LoopDriver
from qwed.words.clock import Clock
from qwed_a2a.attestation import TTL_SECONDS, own_keyring, sign
from qwed_a2a.boundary import Boundary, TrustBoundary
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import digest_of
from qwed_a2a.finding import Finding, Ruling
from qwed_a2a.guards import GUARDS, Row, guard_of
from qwed_a2a.message import LONGEST_ID, AgentMessage
from qwed_a2a.metrics import Metrics
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict

ENGINE_SECONDS = 10.0
"""DESIGN 4.6: how long an engine has, its wait for a worker included."""
_WAIT_SECONDS = 15.0
_WORKERS = 2
FORWARDED, BLOCKED = VerdictStatus.FORWARDED, VerdictStatus.BLOCKED
log = logging.getLogger(__name__)


class A2AVerificationInterceptor:
    """Gives a signed verdict on each message. Safe to use from any thread and any number of event loops."""

    def __init__(
        self,
        config: InterceptorConfig | None = None,
        trust_boundary: Boundary | None = None,
        signer: Keyring | None = None,
        *,
        engines: Verdicts | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config or InterceptorConfig()
        self.boundary: Boundary = trust_boundary if trust_boundary is not None else TrustBoundary()
        self.signer = signer if signer is not None else own_keyring()
        self.metrics = Metrics()
        self._bypass = frozenset(self.config.trusted_agents or ())
        self._engines, self._owns_engines = engines, engines is None
        self._clock = clock
        self._closed = False
        self._lock = threading.Lock()

    async def intercept(
        self, message: AgentMessage, trace_id: str, *, proven: bool = True, at: datetime | None = None
    ) -> VerificationVerdict:
        """The verdict on one message; `proven` is whether its sender is known to be who it says it is.

        Its time is `at`, else that of the clock, else the message's own: the same message is then answered alike.
        """
        require_trace_id(trace_id)
        began = time.perf_counter()
        driver = LoopDriver(asyncio.get_running_loop(), _WAIT_SECONDS)
        digest, ruling = await driver.drive(self._ruled(message, self.boundary, self._bypass, proven))
        verdict = self.seal(
            message, ruling, trace_id, at or (message.timestamp if self._clock is None else self.now()), digest
        )
        self.metrics.count(verdict.status, verdict.engine_used, time.perf_counter() - began)
        return verdict

    async def judge(
        self,
        message: AgentMessage,
        boundary: Boundary,
        *,
        proven: bool,
        trusted: Collection[str] | None = None,
        who: str = "",
        digest: str | None = None,
    ) -> Ruling:
        """What is to become of a message, neither kept nor signed; whoever is `trusted` in place of the configured.

        `digest` is that of the payload, where that was measured already; engines are shared out among all `who`. It
        awaits tickets only, so a loop and a thread may drive it alike.
        """
        bypass = self._bypass if trusted is None else trusted
        return (await self._ruled(message, boundary, bypass, proven, who, digest))[1]

    def seal(
        self,
        message: AgentMessage,
        ruling: Ruling,
        trace_id: str,
        at: datetime,
        digest: str | None = None,
        *,
        activity_id: str | None = None,
        ttl_seconds: int = TTL_SECONDS,
    ) -> VerificationVerdict:
        """The ruling as a signed verdict; `digest` is that of the payload, where it is known already.

        `activity_id` is the leaf of a verdict that a server has kept.
        """
        require_trace_id(trace_id)
        if digest is None:
            taken = digest_of(message.payload, self.config.max_payload_size_bytes)
            digest = taken if isinstance(taken, str) else UNREAD
        attestation = sign(
            self.signer,
            digest=digest,
            trace_id=trace_id,
            at=at.timestamp(),
            status=ruling.status,
            engine=ruling.engine,
            sender=message.sender_agent_id,
            receiver=message.receiver_agent_id,
            activity_id=activity_id,
            ttl_seconds=ttl_seconds,
        )
        return VerificationVerdict(
            status=ruling.status,
            reason=ruling.reason,
            audit_trace_id=trace_id,
            attestation_jwt=attestation,
            engine_used=ruling.engine,
            verified_at=at,
            details=ruling.details,
        )

    def jwks(self) -> dict[str, Any]:
        """The public keys that its attestations are verified with."""
        return {"keys": self.signer.public_jwks()}

    def start(self) -> None:
        """Load the engines in the background, so that the first message that needs one does not wait for that."""
        self._started().start()

    def close(self) -> None:
        """End the engine workers it started; those it was given stay."""
        with self._lock:
            engines, self._closed = self._engines, True
        if engines is not None and self._owns_engines:
            engines.close()

    def now(self) -> datetime:
        """The time of its clock, else that of the machine."""
        return datetime.fromtimestamp(time.time() if self._clock is None else self._clock.now(), UTC)

    async def _ruled(
        self,
        message: AgentMessage,
        boundary: Boundary,
        trusted: Collection[str],
        proven: bool,
        who: str = "",
        known: str | None = None,
    ) -> tuple[str, Ruling]:
        """The digest of the payload, and the order of the stages: size, trust boundary, bypass, guard."""
        if self._closed:
            raise RuntimeError("the interceptor is closed")
        digest = known or digest_of(message.payload, self.config.max_payload_size_bytes)
        if isinstance(digest, Ruling):
            return UNREAD, digest
        said = boundary.evaluate(message.sender_agent_id, message.receiver_agent_id, message.payload_type)
        allowed, reason = said if isinstance(said, tuple) else await said
        if not allowed:
            return digest, Ruling(BLOCKED, EngineName.TRUST_BOUNDARY, reason)
        if proven and message.sender_agent_id in trusted:
            return digest, Ruling(FORWARDED, EngineName.BYPASS, "the sender is trusted and its messages not verified")
        return digest, await self._verified(message, who)

    async def _verified(self, message: AgentMessage, who: str) -> Ruling:
        row = GUARDS.get(message.payload_type)
        if row is None or not getattr(self.config, row.switch):
            reason = f"payloads of the type `{message.payload_type}` are not verified"
            return Ruling(FORWARDED, EngineName.PASSTHROUGH, reason)
        try:
            found = await guard_of(row)(message.payload, OnBehalf(self._started(), who))
        except Exception as error:  # noqa: BLE001  # the one broad catch of this room: an engine may fail in any way
            return self._failed(row, error)
        return _ruling(row, found)

    def _failed(self, row: Row, error: Exception) -> Ruling:
        # The kind of an error is ours; its words may be those of the payload.
        kind = type(error).__name__
        details = {"error": kind, "engine": str(row.engine)}
        if self.config.block_on_error:
            return Ruling(BLOCKED, EngineName.ERROR_HANDLER, f"the {row.engine} failed: {kind}", details)
        log.error("the %s failed and the message was forwarded unverified: %s", row.engine, kind)
        reason = f"the {row.engine} failed, and errors do not block: {kind}"
        return Ruling(FORWARDED, EngineName.ERROR_HANDLER, reason, details)

    def _started(self) -> Verdicts:
        with self._lock:
            if self._engines is None:
                self._engines = Verdicts(EnginePool(ENGINES.values(), size=_WORKERS), ENGINE_SECONDS)
            return self._engines


def _ruling(row: Row, found: Finding) -> Ruling:
    status = FORWARDED if found.passed else BLOCKED
    return Ruling(status, row.engine, found.reason, found.details, found.violation)


def require_trace_id(trace_id: str) -> None:
    """ValueError unless it is a text of 1 to 256 characters without control characters."""
    fits = isinstance(trace_id, str) and 0 < len(trace_id) <= LONGEST_ID
    # Cs are halves of surrogate pairs, which cannot be written down.
    if not fits or any(unicodedata.category(each) in ("Cc", "Cs") for each in trace_id):
        raise ValueError(f"`trace_id` must be a text of 1 to {LONGEST_ID} characters without control characters")
