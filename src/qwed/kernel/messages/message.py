"""A message between two agents as the kernel sees it, and what its judge says of it. The judge is `qwed_a2a`."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.store.agent import Agent, Key

TRUST_BOUNDARY, ERROR_HANDLER, BYPASS, PASSTHROUGH = "trust_boundary", "error_handler", "bypass", "passthrough"
"""Who speaks of a message without having looked into it."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, by whom, to whom, and where in which conversation."""

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
    """None where there is a conversation: the next step of it."""
    now: float


class Sender(NamedTuple):
    """Who sends, as far as that is known."""

    organisation_id: str
    by: str
    """The key or the agent that asked us, as the log names it."""
    agent: Agent | None = None
    """The registered agent, proven; None where the name is nobody's."""
    key: Key | None = None
    proven: bool = False
    """Whether the sender is who it says it is: by its own token, by an owner's key, or because the process asks."""


class Ruled(NamedTuple):
    """What the judge says."""

    forwarded: bool
    engine: str
    reason: str
    details: Mapping[str, Any] = {}
    violation: bool = False
    failed: bool = False
    """Whether the judge itself failed."""
    flood: bool = False
    """Whether the pair is over its rate: refused by the boundary, many of these are one leaf in a minute."""
    wait: float = 0.0
    """The seconds until it may be sent again, where its rate is all that refused it."""


class Carried(NamedTuple):
    """What became of a message, durably."""

    ruled: Ruled
    """The judge's word, or the kernel's own refusal: engine `trust_boundary`, and `details.code`."""
    activity_id: str
    """Of a message over the rate of its pair, that of the first such one in the same minute."""
    log_index: int
    at: float


Judge = Callable[[Message, Sender], Coroutine[Any, None, Ruled]]
