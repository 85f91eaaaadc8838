"""Interceptor that verifies every message between agents before it reaches its recipient."""

import asyncio
import logging
import threading
import time
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from qwed.engines.pool import EnginePool
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import OwnedVerdictSource, VerdictCache
from qwed.futures import LoopRunner
from qwed.ledger.attestation_verifier import UNREAD
from qwed.ledger.keyring import Keyring
from qwed.model.clock import Clock
from qwed_a2a.attestation import TTL_SECONDS, ephemeral_keyring, sign
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import digest_of
from qwed_a2a.guards import GUARDS, GuardEntry, load_guard
from qwed_a2a.message import MAX_ID_LENGTH, AgentMessage, PayloadType
from qwed_a2a.metrics import InterceptorMetrics
from qwed_a2a.parsing import DataPart, Payload, UnparsableMessage, read_parts
from qwed_a2a.results import GuardResult, UnsignedVerdict
from qwed_a2a.trust_boundary import MessageBoundary, TrustBoundary
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict

ENGINE_SECONDS = 10.0
"""Time limit of an engine in seconds, including the wait for a worker (DESIGN 4.6)."""
_WAIT_SECONDS = 15.0
_WORKERS = 2
_PARSER = "payload_parser"
FORWARDED, BLOCKED = VerdictStatus.FORWARDED, VerdictStatus.BLOCKED
log = logging.getLogger(__name__)


class A2AVerificationInterceptor:
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
        self.config = config or InterceptorConfig()
        self.boundary: MessageBoundary = trust_boundary if trust_boundary is not None else TrustBoundary()
        self.signer = signer if signer is not None else ephemeral_keyring()
        self.metrics = InterceptorMetrics()
        self._bypass = frozenset(self.config.trusted_agents or ())
        self._engines, self._owns_engines = engines, engines is None
        self._clock = clock
        self._closed = False
        self._lock = threading.Lock()

    async def intercept(
        self, message: AgentMessage, trace_id: str, *, proven: bool = True, at: datetime | None = None
    ) -> VerificationVerdict:
        """Return the signed verdict for one message; `proven` is True if the sender is authenticated.

        The verdict has the time `at`, else that of the clock, else that of the message, so that the same message gets
        the same answer.
        """
        require_trace_id(trace_id)
        began = time.perf_counter()
        driver = LoopRunner(asyncio.get_running_loop(), _WAIT_SECONDS)
        digest, unsigned = await driver.run(self._evaluate(message, self.boundary, self._bypass, proven))
        verdict = self.seal(
            message, unsigned, trace_id, at or (message.timestamp if self._clock is None else self.now()), digest
        )
        self.metrics.count(verdict.status, verdict.engine_used, time.perf_counter() - began)
        return verdict

    async def judge(
        self,
        message: AgentMessage,
        boundary: MessageBoundary,
        *,
        proven: bool,
        trusted: Collection[str] | None = None,
        owner: str = "",
        digest: str | None = None,
    ) -> UnsignedVerdict:
        """Return the verdict for a message without storing or signing it; `trusted` replaces the configured agents.

        `digest` is that of the payload, if known. Engines are shared fairly between owners. It awaits futures
        of `qwed.futures` only, so an event loop or a thread may run it.
        """
        bypass = self._bypass if trusted is None else trusted
        return (await self._evaluate(message, boundary, bypass, proven, owner, digest))[1]

    def seal(
        self,
        message: AgentMessage,
        unsigned: UnsignedVerdict,
        trace_id: str,
        at: datetime,
        digest: str | None = None,
        *,
        activity_id: str | None = None,
        ttl_seconds: int = TTL_SECONDS,
    ) -> VerificationVerdict:
        """Return the verdict with its signature; `digest` is that of the payload, if known.

        `activity_id` is the leaf of a verdict that a server has stored.
        """
        require_trace_id(trace_id)
        if digest is None:
            measured = digest_of(message.payload, self.config.max_payload_size_bytes)
            digest = measured if isinstance(measured, str) else UNREAD
        attestation = sign(
            self.signer,
            digest=digest,
            trace_id=trace_id,
            at=at.timestamp(),
            status=unsigned.status,
            engine=unsigned.engine,
            sender=message.sender_agent_id,
            receiver=message.receiver_agent_id,
            activity_id=activity_id,
            ttl_seconds=ttl_seconds,
        )
        return VerificationVerdict(
            status=unsigned.status,
            reason=unsigned.reason,
            audit_trace_id=trace_id,
            attestation_jwt=attestation,
            engine_used=unsigned.engine,
            verified_at=at,
            details=unsigned.details,
        )

    def jwks(self) -> dict[str, Any]:
        """Return the public keys that verify its attestations."""
        return {"keys": self.signer.public_jwks()}

    def start(self) -> None:
        """Load the engines in the background, so that the first message does not wait for them."""
        self._ensure_engines().start()

    def close(self) -> None:
        """Stop the engine workers that it started; workers passed in keep running."""
        with self._lock:
            engines, self._closed = self._engines, True
        if engines is not None and self._owns_engines:
            engines.close()

    def now(self) -> datetime:
        """Return the time of its clock, else that of the machine."""
        return datetime.fromtimestamp(time.time() if self._clock is None else self._clock.now(), UTC)

    async def _evaluate(
        self,
        message: AgentMessage,
        boundary: MessageBoundary,
        trusted: Collection[str],
        proven: bool,
        owner: str = "",
        known_digest: str | None = None,
    ) -> tuple[str, UnsignedVerdict]:
        """Return the digest of the payload and the verdict, from the stages in order: size, trust boundary, bypass,
        guard."""
        if self._closed:
            raise RuntimeError("the interceptor is closed")
        digest = known_digest or digest_of(message.payload, self.config.max_payload_size_bytes)
        if isinstance(digest, UnsignedVerdict):
            return UNREAD, digest
        answer = boundary.evaluate(message.sender_agent_id, message.receiver_agent_id, message.payload_type)
        allowed, reason = answer if isinstance(answer, tuple) else await answer
        if not allowed:
            return digest, UnsignedVerdict(BLOCKED, EngineName.TRUST_BOUNDARY, reason)
        if proven and message.sender_agent_id in trusted:
            return digest, UnsignedVerdict(
                FORWARDED, EngineName.BYPASS, "the sender is trusted and its messages not verified"
            )
        verdict = await self._run_guard(message.payload_type, message.payload, owner)
        if verdict.status is BLOCKED or not self.config.verify_untyped:
            return digest, verdict
        return digest, await self._verify_content(message, owner, verdict)

    async def _verify_content(self, message: AgentMessage, owner: str, declared: UnsignedVerdict) -> UnsignedVerdict:
        """Return the verdict on what the payload is, whatever its type says; the declared one if it is nothing else."""
        try:
            contents = read_parts([DataPart(message.payload)])
        except Exception as error:  # noqa: BLE001  # like a guard, the parser may fail in any way
            return self._failure(_PARSER, type(error).__name__)
        if isinstance(contents, UnparsableMessage):
            return self._failure(_PARSER, "MessageParseError", contents.reason)
        verdict = declared
        for payload in contents.payloads:
            if payload.kind in GUARDS and not _is_declared(payload, message):
                verdict = await self._run_guard(payload.kind, payload.payload, owner)
                if verdict.status is BLOCKED:
                    break
        return verdict

    async def _run_guard(self, kind: PayloadType, payload: dict[str, Any], owner: str) -> UnsignedVerdict:
        entry = GUARDS.get(kind)
        if entry is None or not getattr(self.config, entry.switch):
            reason = f"payloads of the type `{kind}` are not verified"
            return UnsignedVerdict(FORWARDED, EngineName.PASSTHROUGH, reason)
        try:
            result = await load_guard(entry)(payload, OwnedVerdictSource(self._ensure_engines(), owner))
        except Exception as error:  # noqa: BLE001  # the one broad catch of this package: an engine may fail in any way
            return self._failure(str(entry.engine), type(error).__name__)
        return _verdict_of(entry, result)

    def _failure(self, part: str, kind: str, reason: str = "") -> UnsignedVerdict:
        """Return the verdict on a message that could not be read or judged: `block_on_error` decides.

        Of an error only its type is reported, because its text may quote the payload.
        """
        details = {"error": kind, "engine": part}
        if self.config.block_on_error:
            return UnsignedVerdict(BLOCKED, EngineName.ERROR_HANDLER, reason or f"the {part} failed: {kind}", details)
        log.error("a2a %s failed, message forwarded unverified: %s", part, kind)
        reason = f"the {part} failed, and errors do not block: {kind}"
        return UnsignedVerdict(FORWARDED, EngineName.ERROR_HANDLER, reason, details)

    def _ensure_engines(self) -> VerdictCache:
        with self._lock:
            if self._engines is None:
                self._engines = VerdictCache(EnginePool(ENGINES.values(), size=_WORKERS), ENGINE_SECONDS)
            return self._engines


def _is_declared(payload: Payload, message: AgentMessage) -> bool:
    """Return True if the guard of the declared type has judged this payload already."""
    if payload.kind is not message.payload_type:
        return False
    return payload.kind is not PayloadType.CODE_EXECUTION or payload.payload.get("code") == message.payload.get("code")


def _verdict_of(entry: GuardEntry, result: GuardResult) -> UnsignedVerdict:
    status = FORWARDED if result.passed else BLOCKED
    return UnsignedVerdict(status, entry.engine, result.reason, result.details, result.violation)


def require_trace_id(trace_id: str) -> None:
    """Raise ValueError unless it is a text of 1 to 256 characters without control characters."""
    fits = isinstance(trace_id, str) and 0 < len(trace_id) <= MAX_ID_LENGTH
    # Cs are lone surrogates, which cannot be encoded.
    if not fits or any(unicodedata.category(character) in ("Cc", "Cs") for character in trace_id):
        raise ValueError(f"`trace_id` must be a text of 1 to {MAX_ID_LENGTH} characters without control characters")
