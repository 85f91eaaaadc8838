"""A message between two agents, its sender and its verdict, as the kernel sees them. The judge is in `qwed_a2a`."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.store.agent import Agent, Key

TRUST_BOUNDARY, ERROR_HANDLER, BYPASS, PASSTHROUGH = "trust_boundary", "error_handler", "bypass", "passthrough"
"""Engine names of verdicts that did not inspect the message."""


class InterceptedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message with sender, receiver and its place in a conversation."""

    trace_id: str
    sender: str
    receiver: str
    kind: str
    """The payload type."""
    payload: Mapping[str, Any]
    digest: str
    """SHA-256 of the canonical payload."""
    conversation_id: str | None = None
    step_number: int | None = None
    """None in a conversation means the next step."""
    now: float


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
    """Verdict of the judge on a message."""

    forwarded: bool
    engine: str
    reason: str
    details: Mapping[str, Any] = {}
    violation: bool = False
    failed: bool = False
    """True if the judge itself failed."""
    over_rate: bool = False
    """True if the pair exceeds its rate: such refusals share one leaf per minute."""
    wait: float = 0.0
    """Seconds until it may be sent again, where only the rate refused it."""


class MessageResult(NamedTuple):
    """Durable result for a message."""

    verdict: MessageVerdict
    """The judge's verdict, or the kernel's own refusal: engine `trust_boundary`, and `details.code`."""
    activity_id: str
    """For a refusal over the rate, the id of the first such refusal in the same minute."""
    log_index: int
    at: float


Judge = Callable[[InterceptedMessage, Sender], Coroutine[Any, None, MessageVerdict]]
