"""Guards: pure checks of one payload each, and the table that maps payload types to guards."""

from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from qwed.engines.verdict_cache import VerdictSource
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed_a2a.message import PayloadType

Guard = Callable[[Mapping[str, Any], VerdictSource], Coroutine[Any, None, MessageVerdict]]
"""Checks one payload. It may await futures of the engine pool (`qwed.futures`) and nothing of an event loop, because
the same coroutine runs on a server's loop, in a thread, and in `A2AVerificationInterceptor.intercept`."""


class GuardEntry(NamedTuple):
    """Configuration switch, engine name and location of one guard."""

    switch: str
    engine: EngineName
    module: str
    function: str


GUARDS: Mapping[PayloadType, GuardEntry] = {
    PayloadType.FINANCIAL_TRANSACTION: GuardEntry(
        "enable_financial_verification", EngineName.FINANCE_GUARD, "qwed_a2a.guards.finance", "check_finance"
    ),
    PayloadType.LOGIC_ASSERTION: GuardEntry(
        "enable_logic_verification", EngineName.LOGIC_GUARD, "qwed_a2a.guards.logic", "check_logic"
    ),
    PayloadType.CODE_EXECUTION: GuardEntry(
        "enable_code_verification", EngineName.CODE_GUARD, "qwed_a2a.guards.code", "check_code"
    ),
}
"""Payload types that are not in the table pass through."""


@cache
def load_guard(entry: GuardEntry) -> Guard:
    """Return the guard, imported when the first payload needs it."""
    guard: Guard = getattr(import_module(entry.module), entry.function)
    return guard
