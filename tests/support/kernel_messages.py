"""Sender of agent messages through the kernel, with a judge that the test chooses."""

from collections.abc import Callable
from typing import Any, NamedTuple

from qwed.futures import run_in_thread
from qwed.gate import Gate
from qwed.kernel.a2a.message import (
    PASSTHROUGH,
    TRUST_BOUNDARY,
    InterceptedMessage,
    Judge,
    MessageResult,
    MessageVerdict,
    Sender,
)
from qwed.kernel.a2a.pipeline import process_message
from qwed.kernel.a2a.sender import prove_sender
from qwed.kernel.a2a.trust_boundary import StoreBoundary
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.model import sha256_of

TRACE = "a2a_0123456789ab"
FINE = MessageVerdict(True, PASSTHROUGH, "nothing to verify")


class MessageSender(NamedTuple):
    """Sends messages as the owner of a Gate."""

    gate: Gate
    services: Services

    def send(self, sender: str, receiver: str, content: Any = "hello", **more: Any) -> MessageResult:
        """Send a message and return its result."""
        result = self.try_send(sender, receiver, content, **more)
        assert isinstance(result, MessageResult), result
        return result

    def try_send(
        self,
        sender: str,
        receiver: str,
        content: Any = "hello",
        *,
        judge: Judge | MessageVerdict | None = None,
        services: Services | None = None,
        kind: str = "general",
        trace_id: str = TRACE,
        **context: Any,
    ) -> MessageResult | Problem:
        """Send a message and return its result, or the problem if nothing could be stored."""
        services = services or self.services
        payload = content if isinstance(content, dict) else {"text": content}
        message = InterceptedMessage(
            trace_id=trace_id,
            sender=sender,
            receiver=receiver,
            kind=kind,
            payload=payload,
            digest=sha256_of(payload),
            now=services.clock.now(),
            **context,
        )
        return run_in_thread(process_message(message, self.proven(sender), judge_of(judge, services), services), 30)

    def proven(self, name: str) -> Sender:
        sender = prove_sender(name, Credentials(organisation_id=self.gate.organisation_id), self.services)
        assert isinstance(sender, Sender)
        return sender


def judge_of(judge: Judge | MessageVerdict | None, services: Services) -> Judge:
    """Return the judge itself, a constant one for a verdict, or one that asks only the trust boundary."""
    if isinstance(judge, MessageVerdict):
        return _constant_judge(lambda: judge)
    return judge or _boundary_judge(services)


def _constant_judge(say: Callable[[], MessageVerdict]) -> Judge:
    async def judge(_message: InterceptedMessage, _sender: Sender) -> MessageVerdict:
        return say()

    return judge


def _boundary_judge(services: Services) -> Judge:
    async def judge(message: InterceptedMessage, sender: Sender) -> MessageVerdict:
        boundary = StoreBoundary(sender, services)
        allowed, reason = boundary.evaluate(message.sender, message.receiver, message.kind)
        return (
            FINE
            if allowed
            else MessageVerdict(False, TRUST_BOUNDARY, reason, over_rate=boundary.over_rate, wait=boundary.wait)
        )

    return judge
