"""What the parts of the interceptor say to one another: what a guard found, and what is ruled because of it."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from qwed.engines.verdicts import Asks
from qwed_a2a.verdict import EngineName, VerdictStatus


class Finding(NamedTuple):
    """What a guard found in one payload."""

    passed: bool
    reason: str
    details: Mapping[str, Any] = {}
    """JSON values only, and nothing of the payload that could be a secret."""
    violation: bool = False
    """Whether it breaks a security rule (DESIGN 3), which costs a registered sender trust; a wrong sum does not."""


class Ruling(NamedTuple):
    """What is to become of a message, before it is kept and signed."""

    status: VerdictStatus
    engine: EngineName
    reason: str
    details: Mapping[str, Any] = {}
    violation: bool = False


Guard = Callable[[Mapping[str, Any], Asks], Coroutine[Any, None, Finding]]
"""Looks at one payload. It may await tickets of the engine pool (`qwed.waiting`), and nothing of an event loop: the
same coroutine is driven by a server's loop, by a thread, and by `A2AVerificationInterceptor.intercept`."""
