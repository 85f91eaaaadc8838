"""One message in a server: who sends it, what is ruled, what is kept, and only then the signed verdict (P1)."""

import math
import secrets
import time
from collections import OrderedDict
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.kernel.case import Credentials
from qwed.kernel.messages.boundary import StoreBoundary
from qwed.kernel.messages.carrying import carry
from qwed.kernel.messages.message import Judge, Message, Ruled, Sender
from qwed.kernel.messages.sender import prove_sender
from qwed.kernel.services import Services
from qwed.settings import Settings
from qwed.words import ErrorCode
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.digest import digest_of
from qwed_a2a.finding import Ruling
from qwed_a2a.interceptor import A2AVerificationInterceptor
from qwed_a2a.message import AgentMessage
from qwed_a2a.metrics import Metrics
from qwed_a2a.taking import place_of
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict

MOST_ORGANISATIONS = 1_000
"""Whose numbers are kept; the one that has been silent longest begins anew."""
_TRACE_BYTES = 6
_REFUSED = {"payload_size": ErrorCode.TOO_LARGE, "payload_is_json": ErrorCode.NOT_DETERMINISTIC}


class Delivered(NamedTuple):
    """A verdict, and where its leaf is."""

    verdict: VerificationVerdict
    activity_id: str
    log_index: int


class Desk:
    """Takes messages of any organisation of one server, or of a Gate. Safe to use from any thread."""

    def __init__(self, services: Services, config: InterceptorConfig | None = None) -> None:
        self.services = services
        self.config = config or config_from(services.settings)
        self._trusted = frozenset(self.config.trusted_agents or ())
        self._interceptor = A2AVerificationInterceptor(
            self.config, signer=services.signer.keyring, engines=services.engines, clock=services.clock
        )
        self._metrics: OrderedDict[str, Metrics] = OrderedDict()
        self._lock = Lock()

    async def intercept(
        self, message: AgentMessage, shown: Credentials, trace_id: str | None = None
    ) -> Delivered | Problem:
        """The verdict on one message, signed once its leaf is durable; a Problem where there is none to give.

        It awaits tickets only, so a server's loop and a thread may drive it alike.
        """
        began = time.perf_counter()
        sender = prove_sender(message.sender_agent_id, shown, self.services)
        if isinstance(sender, Problem):
            return sender
        taken = self._taken(message, trace_id or new_trace_id())
        if isinstance(taken, Problem):
            return taken
        carried = await carry(taken, sender, self._judge_of(message), self.services)
        if isinstance(carried, Problem):
            return carried
        at = datetime.fromtimestamp(carried.at, UTC)
        verdict = self._interceptor.seal(
            message,
            _ruling(carried.ruled),
            taken.trace_id,
            at,
            taken.digest,
            activity_id=carried.activity_id,
            ttl_seconds=self.services.settings.attestation_ttl_seconds,
        )
        self._count(sender.organisation_id, verdict, time.perf_counter() - began)
        return Delivered(verdict, carried.activity_id, carried.log_index)

    def metrics_of(self, organisation_id: str) -> Metrics:
        """What became of the messages of one organisation since the start."""
        # A large message is judged in threads, beside the loop that answers the others.
        with self._lock:
            found = self._metrics.setdefault(organisation_id, Metrics())
            self._metrics.move_to_end(organisation_id)
            if len(self._metrics) > MOST_ORGANISATIONS:
                self._metrics.popitem(last=False)
            return found

    def _taken(self, message: AgentMessage, trace_id: str) -> Message | Problem:
        """The message as the kernel sees it, or why it is not taken at all."""
        digest = digest_of(message.payload, self.config.max_payload_size_bytes)
        if isinstance(digest, Ruling):
            return problem(_REFUSED[digest.details["check"]], digest.reason)
        place = place_of(message)
        if isinstance(place, Problem):
            return place
        return Message(
            trace_id=trace_id,
            sender=message.sender_agent_id,
            receiver=message.receiver_agent_id,
            kind=message.payload_type,
            payload=message.payload,
            digest=digest,
            conversation_id=place.conversation_id,
            step_number=place.step_number,
            now=self.services.clock.now(),
        )

    def _judge_of(self, message: AgentMessage) -> Judge:
        async def judge(taken: Message, sender: Sender) -> Ruled:
            boundary, name = StoreBoundary(sender, self.services), message.sender_agent_id
            trusted = (name,) if boundary.trusts(name) else self._trusted
            # Whoever is nobody here may be called anything: those of one organisation share its turn.
            who = sender.organisation_id if sender.agent is None else sender.agent.agent_id
            ruling = await self._interceptor.judge(
                message, boundary, proven=sender.proven, trusted=trusted, who=who, digest=taken.digest
            )
            return _ruled(ruling, boundary)

        return judge

    def _count(self, organisation_id: str, verdict: VerificationVerdict, seconds: float) -> None:
        self.metrics_of(organisation_id).count(verdict.status, verdict.engine_used, seconds)


def config_from(settings: Settings) -> InterceptorConfig:
    """What an operator has set of it; who is trusted is each organisation's own matter."""
    return InterceptorConfig(
        block_on_error=settings.a2a_block_on_error, max_payload_size_bytes=settings.a2a_max_payload_bytes
    )


def new_trace_id() -> str:
    """What a message is called that came without a name of its own."""
    return f"a2a_{secrets.token_hex(_TRACE_BYTES)}"


def _ruled(ruling: Ruling, boundary: StoreBoundary) -> Ruled:
    wait = boundary.wait
    # Whoever sends too fast is told when to go on in a form that a program reads.
    later = {"code": ErrorCode.RATE_LIMITED.code, "retry_after": math.ceil(wait)} if wait > 0 else {}
    return Ruled(
        forwarded=ruling.status is VerdictStatus.FORWARDED,
        engine=ruling.engine,
        reason=ruling.reason,
        details={**ruling.details, **later},
        violation=ruling.violation,
        failed=ruling.engine is EngineName.ERROR_HANDLER,
        flood=boundary.flood,
        wait=wait,
    )


def _ruling(ruled: Ruled) -> Ruling:
    status = VerdictStatus.FORWARDED if ruled.forwarded else VerdictStatus.BLOCKED
    return Ruling(status, EngineName(ruled.engine), ruled.reason, ruled.details, ruled.violation)
