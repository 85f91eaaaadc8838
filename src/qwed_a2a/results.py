"""Result types of the interceptor: the result of one guard, and the verdict before it is signed."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from qwed.engines.verdict_cache import VerdictSource
from qwed_a2a.verdict import EngineName, VerdictStatus


class GuardResult(NamedTuple):
    """Result of a guard for one payload."""

    passed: bool
    reason: str
    details: Mapping[str, Any] = {}
    """JSON values only, without payload content that could be a secret."""
    violation: bool = False
    """True if it breaks a security rule, which costs a registered sender trust; a wrong sum does not (DESIGN 3)."""


class UnsignedVerdict(NamedTuple):
    """Verdict on a message before it is stored and signed."""

    status: VerdictStatus
    engine: EngineName
    reason: str
    details: Mapping[str, Any] = {}
    violation: bool = False


Guard = Callable[[Mapping[str, Any], VerdictSource], Coroutine[Any, None, GuardResult]]
"""Checks one payload. It may await futures of the engine pool (`qwed.futures`) and nothing of an event loop, because
the same coroutine runs on a server's loop, in a thread, and in `A2AVerificationInterceptor.intercept`."""
