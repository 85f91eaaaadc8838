"""Sender of agent messages through the kernel, with a judge of content that the test chooses."""

from collections.abc import Callable
from typing import Any, NamedTuple

from qwed.futures import run_in_thread
from qwed.gate import Gate
from qwed.kernel.a2a.message import EngineName, InterceptedMessage, MessageResult, MessageVerdict, Sender
from qwed.kernel.a2a.pipeline import admit_message, process_message
from qwed.kernel.a2a.sender import prove_sender
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.model import canonical, sha256_of

Judge = Callable[[], MessageVerdict]
TRACE = "a2a_0123456789ab"
FINE = MessageVerdict(True, EngineName.PASSTHROUGH, "nothing to verify")


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
        judge: Judge | MessageVerdict = FINE,
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
            text=canonical(payload),
            digest=sha256_of(payload),
            now=services.clock.now(),
            **context,
        )
        return run_in_thread(_process(message, self.proven(sender), judge, services), 30)

    def proven(self, name: str) -> Sender:
        sender = prove_sender(name, Credentials(organisation_id=self.gate.organisation_id), self.services)
        assert isinstance(sender, Sender)
        return sender


async def _process(
    message: InterceptedMessage, sender: Sender, judge: Judge | MessageVerdict, services: Services
) -> MessageResult | Problem:
    """Process a message as the message service does, with this judge in place of the guards."""
    verdict = await admit_message(message, sender, services)
    if verdict is None:
        verdict = judge if isinstance(judge, MessageVerdict) else judge()
    if isinstance(verdict, Problem):
        return verdict
    return await process_message(message, sender, verdict, services)
