"""Message verification in a server: authenticate the sender, judge, record, and only then sign the verdict (P1)."""

import math
import secrets
import time
from collections import OrderedDict
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from qwed.kernel.a2a.message import InterceptedMessage, Judge, MessageVerdict, Sender
from qwed.kernel.a2a.pipeline import process_message
from qwed.kernel.a2a.sender import prove_sender
from qwed.kernel.a2a.trust_boundary import StoreBoundary
from qwed.kernel.answer import Problem, problem
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.settings import Settings
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import digest_of
from qwed_a2a.intercept_request import conversation_step_of
from qwed_a2a.interceptor import A2AVerificationInterceptor
from qwed_a2a.message import AgentMessage
from qwed_a2a.metrics import InterceptorMetrics
from qwed_a2a.results import UnsignedVerdict
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict

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
        self._trusted = frozenset(self.config.trusted_agents or ())
        self._interceptor = A2AVerificationInterceptor(
            self.config, signer=services.signer.keyring, engines=services.engines, clock=services.clock
        )
        self._metrics: OrderedDict[str, InterceptorMetrics] = OrderedDict()
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
        recorded = await process_message(message_in, sender, self._judge_of(message), self.services)
        if isinstance(recorded, Problem):
            return recorded
        at = datetime.fromtimestamp(recorded.at, UTC)
        verdict = self._interceptor.seal(
            message,
            _from_kernel_verdict(recorded.verdict),
            message_in.trace_id,
            at,
            message_in.digest,
            activity_id=recorded.activity_id,
            ttl_seconds=self.services.settings.attestation_ttl_seconds,
        )
        self._count(sender.organisation_id, verdict, time.perf_counter() - began)
        return RecordedVerdict(verdict, recorded.activity_id, recorded.log_index)

    def metrics_of(self, organisation_id: str) -> InterceptorMetrics:
        """Return the counters of one organisation since the start."""
        # Large messages are judged in threads, concurrently with the event loop.
        with self._lock:
            metrics = self._metrics.setdefault(organisation_id, InterceptorMetrics())
            self._metrics.move_to_end(organisation_id)
            if len(self._metrics) > MAX_ORGANISATIONS:
                self._metrics.popitem(last=False)
            return metrics

    def _to_kernel_message(self, message: AgentMessage, trace_id: str) -> InterceptedMessage | Problem:
        """Return the message in the form of the kernel, or the reason why it is not accepted."""
        digest = digest_of(message.payload, self.config.max_payload_size_bytes)
        if isinstance(digest, UnsignedVerdict):
            return problem(_ERROR_BY_CHECK[digest.details["check"]], digest.reason)
        step = conversation_step_of(message)
        if isinstance(step, Problem):
            return step
        return InterceptedMessage(
            trace_id=trace_id,
            sender=message.sender_agent_id,
            receiver=message.receiver_agent_id,
            kind=message.payload_type,
            payload=message.payload,
            digest=digest,
            conversation_id=step.conversation_id,
            step_number=step.step_number,
            now=self.services.clock.now(),
        )

    def _judge_of(self, message: AgentMessage) -> Judge:
        async def judge(message_in: InterceptedMessage, sender: Sender) -> MessageVerdict:
            boundary, name = StoreBoundary(sender, self.services), message.sender_agent_id
            trusted = (name,) if boundary.trusts(name) else self._trusted
            # Unregistered senders may use any name: those of one organisation share its turn.
            owner = sender.organisation_id if sender.agent is None else sender.agent.agent_id
            verdict = await self._interceptor.judge(
                message, boundary, proven=sender.proven, trusted=trusted, owner=owner, digest=message_in.digest
            )
            return _to_kernel_verdict(verdict, boundary)

        return judge

    def _count(self, organisation_id: str, verdict: VerificationVerdict, seconds: float) -> None:
        self.metrics_of(organisation_id).count(verdict.status, verdict.engine_used, seconds)


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


def _to_kernel_verdict(verdict: UnsignedVerdict, boundary: StoreBoundary) -> MessageVerdict:
    wait = boundary.wait
    # A rate-limited sender gets the delay in a machine-readable form.
    later = {"code": ErrorCode.RATE_LIMITED.code, "retry_after": math.ceil(wait)} if wait > 0 else {}
    return MessageVerdict(
        forwarded=verdict.status is VerdictStatus.FORWARDED,
        engine=verdict.engine,
        reason=verdict.reason,
        details={**verdict.details, **later},
        violation=verdict.violation,
        failed=verdict.engine is EngineName.ERROR_HANDLER,
        over_rate=boundary.over_rate,
        wait=wait,
    )


def _from_kernel_verdict(verdict: MessageVerdict) -> UnsignedVerdict:
    status = VerdictStatus.FORWARDED if verdict.forwarded else VerdictStatus.BLOCKED
    return UnsignedVerdict(status, EngineName(verdict.engine), verdict.reason, verdict.details, verdict.violation)
