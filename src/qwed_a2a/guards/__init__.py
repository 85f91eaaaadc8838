"""The guards: pure looks at one payload each, and which payload is looked at by which."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple

from qwed_a2a.finding import Guard
from qwed_a2a.message import PayloadType
from qwed_a2a.verdict import EngineName


class Row(NamedTuple):
    """Which switch of the configuration turns a guard on, as whom it speaks, and where it is."""

    switch: str
    engine: EngineName
    home: str
    name: str


GUARDS: Mapping[PayloadType, Row] = {
    PayloadType.FINANCIAL_TRANSACTION: Row(
        "enable_financial_verification", EngineName.FINANCE_GUARD, "qwed_a2a.guards.finance", "check_finance"
    ),
    PayloadType.LOGIC_ASSERTION: Row(
        "enable_logic_verification", EngineName.LOGIC_GUARD, "qwed_a2a.guards.logic", "check_logic"
    ),
    PayloadType.CODE_EXECUTION: Row(
        "enable_code_verification", EngineName.CODE_GUARD, "qwed_a2a.guards.code", "check_code"
    ),
}
"""What is not in it is passed through."""


@cache
def guard_of(row: Row) -> Guard:
    """The guard itself, imported when the first payload needs it."""
    guard: Guard = getattr(import_module(row.home), row.name)
    return guard
