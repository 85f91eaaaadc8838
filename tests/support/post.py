"""Messages between agents as the kernel carries them, with a judge that a test chooses."""

from collections.abc import Callable
from typing import Any, NamedTuple

from qwed.gate import Gate
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.messages.boundary import StoreBoundary
from qwed.kernel.messages.carrying import carry
from qwed.kernel.messages.message import PASSTHROUGH, TRUST_BOUNDARY, Carried, Judge, Message, Ruled, Sender
from qwed.kernel.messages.sender import prove_sender
from qwed.kernel.services import Services
from qwed.waiting import in_thread
from qwed.words import sha256_of

TRACE = "a2a_0123456789ab"
FINE = Ruled(True, PASSTHROUGH, "nothing to verify")


class Post(NamedTuple):
    """Sends messages as the owner of a Gate."""

    gate: Gate
    services: Services

    def send(self, sender: str, receiver: str, said: Any = "hello", **more: Any) -> Carried:
        """What became of a message."""
        carried = self.tried(sender, receiver, said, **more)
        assert isinstance(carried, Carried), carried
        return carried

    def tried(
        self,
        sender: str,
        receiver: str,
        said: Any = "hello",
        *,
        judge: Judge | Ruled | None = None,
        services: Services | None = None,
        kind: str = "general",
        trace_id: str = TRACE,
        **place: Any,
    ) -> Carried | Problem:
        """The same, or why nothing could be kept."""
        services = services or self.services
        payload = said if isinstance(said, dict) else {"text": said}
        message = Message(
            trace_id=trace_id,
            sender=sender,
            receiver=receiver,
            kind=kind,
            payload=payload,
            digest=sha256_of(payload),
            now=services.clock.now(),
            **place,
        )
        return in_thread(carry(message, self.proven(sender), judge_of(judge, services), services), 30)

    def proven(self, name: str) -> Sender:
        found = prove_sender(name, Credentials(organisation_id=self.gate.organisation_id), self.services)
        assert isinstance(found, Sender)
        return found


def judge_of(judge: Judge | Ruled | None, services: Services) -> Judge:
    """The judge itself; one who always says this; or one who asks the boundary alone."""
    if isinstance(judge, Ruled):
        return _always(lambda: judge)
    return judge or _of_boundary(services)


def _always(say: Callable[[], Ruled]) -> Judge:
    async def judge(_message: Message, _sender: Sender) -> Ruled:
        return say()

    return judge


def _of_boundary(services: Services) -> Judge:
    async def judge(message: Message, sender: Sender) -> Ruled:
        boundary = StoreBoundary(sender, services)
        allowed, reason = boundary.evaluate(message.sender, message.receiver, message.kind)
        return FINE if allowed else Ruled(False, TRUST_BOUNDARY, reason, flood=boundary.flood, wait=boundary.wait)

    return judge
