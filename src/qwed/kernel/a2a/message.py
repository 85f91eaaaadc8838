"""A message between two agents, its sender and the verdict on it. The content is judged in `qwed_a2a`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from qwed.domain.agent import Agent, Key
from qwed.guards.tool_approval import fold_name
from qwed.kernel.answer import Problem


class EngineName(StrEnum):
    """Check that decided the verdict on a message."""

    FINANCE_GUARD = "finance_guard"
    LOGIC_GUARD = "logic_guard"
    CODE_GUARD = "code_guard"
    TRUST_BOUNDARY = "trust_boundary"
    BYPASS = "bypass"
    PASSTHROUGH = "passthrough"
    ERROR_HANDLER = "error_handler"


class InterceptedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message with sender, receiver and its place in a conversation."""

    trace_id: str
    sender: str
    receiver: str
    kind: str
    """The payload type."""
    payload: Mapping[str, Any]
    text: bytes
    """The payload in canonical JSON."""
    digest: str
    """SHA-256 of that text."""
    conversation_id: str | None = None
    step_number: int | None = None
    """None in a conversation means the next step."""
    now: float

    @property
    def receiver_id(self) -> str:
        """Id that the receiver has if it is a registered agent."""
        return fold_name(self.receiver)


class Sender(NamedTuple):
    """Sender of a message, as far as it is known."""

    organisation_id: str
    actor_id: str
    """Id of the key or the agent that sent the request, as logged."""
    agent: Agent | None = None
    """The registered agent, authenticated; None if no agent has this name."""
    key: Key | None = None
    proven: bool = False
    """True if the sender is authenticated: by its own token, by an owner's key, or because the process itself asks."""


class MessageVerdict(NamedTuple):
    """Verdict on a message before it is stored and signed."""

    forwarded: bool
    engine: EngineName
    reason: str
    details: Mapping[str, Any] = {}
    """JSON values only, without payload content that could be a secret."""
    violation: bool = False
    """True if it breaks a security rule, which costs a registered sender trust; a wrong sum does not (DESIGN 3)."""
    over_rate: bool = False
    """True if the pair exceeds its rate: such refusals share one leaf per minute."""
    problem: Problem | None = None
    """Refusal of the kernel, where it is not the content that is refused."""

    @property
    def failed(self) -> bool:
        """True if no check could give a verdict."""
        return self.engine == EngineName.ERROR_HANDLER


class MessageResult(NamedTuple):
    """Durable result for a message."""

    verdict: MessageVerdict
    """Verdict on the content, or the kernel's own refusal: engine `trust_boundary`, and `details.code`."""
    activity_id: str
    """For a refusal over the rate, the id of the first such refusal in the same minute."""
    log_index: int
    at: float
