"""Message verification in a server: authenticate the sender, judge, record, and only then sign the verdict (P1)."""

import hashlib
import secrets
import time
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from qwed.kernel.a2a.message import InterceptedMessage, MessageVerdict
from qwed.kernel.a2a.pipeline import admit_message, process_message
from qwed.kernel.a2a.sender import prove_sender
from qwed.kernel.answer import Problem, problem
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.model.lru_cache import LruCache
from qwed.settings import Settings
from qwed_a2a.attestation import seal
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import canonical_payload
from qwed_a2a.intercept_request import conversation_step_of
from qwed_a2a.judge import ContentJudge
from qwed_a2a.message import AgentMessage
from qwed_a2a.metrics import InterceptorMetrics
from qwed_a2a.verdict import VerificationVerdict

MAX_ORGANISATIONS = 1_000
"""Organisations whose counters are kept; the one inactive for the longest starts again at zero."""
_TRACE_BYTES = 6
_ERROR_BY_CHECK = {"payload_size": ErrorCode.TOO_LARGE, "payload_is_json": ErrorCode.NOT_DETERMINISTIC}


class RecordedVerdict(NamedTuple):
    """Verdict and the position of its leaf in the log."""

    verdict: VerificationVerdict
    activity_id: str
    log_index: int


class InterceptorService:
    """Message service for all organisations of one server, or for a Gate. Safe to use from any thread."""

    def __init__(self, services: Services, config: InterceptorConfig | None = None) -> None:
        self.services = services
        self.config = config or config_from(services.settings)
        self._judge = ContentJudge(self.config, services.engines)
        self._metrics: LruCache[str, InterceptorMetrics] = LruCache(MAX_ORGANISATIONS)
        self._lock = Lock()

    async def intercept(
        self, message: AgentMessage, credentials: Credentials, trace_id: str | None = None
    ) -> RecordedVerdict | Problem:
        """Return the verdict on one message, signed once its leaf is durable, or the problem if there is none.

        It awaits futures of `qwed.futures` only, so an event loop or a thread may run it.
        """
        began = time.perf_counter()
        sender = prove_sender(message.sender_agent_id, credentials, self.services)
        if isinstance(sender, Problem):
            return sender
        message_in = self._to_kernel_message(message, trace_id or new_trace_id())
        if isinstance(message_in, Problem):
            return message_in
        verdict = await admit_message(message_in, sender, self.services, self.config.trusted_agents or ())
        if verdict is None:
            # Unregistered senders may use any name: those of one organisation share its turn.
            owner = sender.organisation_id if sender.agent is None else sender.agent.agent_id
            verdict = await self._judge.judge(message, owner)
        if isinstance(verdict, Problem):
            return verdict
        result = await process_message(message_in, sender, verdict, self.services)
        if isinstance(result, Problem):
            return result
        sealed = seal(
            self.services.signer.keyring,
            message,
            result.verdict,
            trace_id=message_in.trace_id,
            at=datetime.fromtimestamp(result.at, UTC),
            digest=message_in.digest,
            activity_id=result.activity_id,
            ttl_seconds=self.services.settings.attestation_ttl_seconds,
        )
        metrics = self.metrics_of(sender.organisation_id)
        metrics.count(sealed.status, sealed.engine_used, time.perf_counter() - began)
        return RecordedVerdict(sealed, result.activity_id, result.log_index)

    def metrics_of(self, organisation_id: str) -> InterceptorMetrics:
        """Return the counters of one organisation since the start."""
        # Large messages are judged in threads, concurrently with the event loop.
        with self._lock:
            metrics = self._metrics[organisation_id] = self._metrics.get(organisation_id) or InterceptorMetrics()
            return metrics

    def _to_kernel_message(self, message: AgentMessage, trace_id: str) -> InterceptedMessage | Problem:
        """Return the message in the form of the kernel, or the reason why it is not accepted."""
        text = canonical_payload(message.payload, self.config.max_payload_size_bytes)
        if isinstance(text, MessageVerdict):
            return problem(_ERROR_BY_CHECK[text.details["check"]], text.reason)
        step = conversation_step_of(message)
        if isinstance(step, Problem):
            return step
        return InterceptedMessage(
            trace_id=trace_id,
            sender=message.sender_agent_id,
            receiver=message.receiver_agent_id,
            kind=message.payload_type,
            payload=message.payload,
            text=text,
            digest=hashlib.sha256(text).hexdigest(),
            conversation_id=step.conversation_id,
            step_number=step.step_number,
            now=self.services.clock.now(),
        )


def config_from(settings: Settings) -> InterceptorConfig:
    """Return the configuration from the settings; each organisation has its own trusted agents."""
    return InterceptorConfig(
        block_on_error=settings.a2a_block_on_error,
        max_payload_size_bytes=settings.a2a_max_payload_bytes,
        verify_untyped=True,
    )


def new_trace_id() -> str:
    """Return an id for a message that has none."""
    return f"a2a_{secrets.token_hex(_TRACE_BYTES)}"
