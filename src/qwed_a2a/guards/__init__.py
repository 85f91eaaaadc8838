"""Guards: pure checks of one payload each, and the table that maps payload types to guards."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple

from qwed_a2a.message import PayloadType
from qwed_a2a.results import Guard
from qwed_a2a.verdict import EngineName


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
