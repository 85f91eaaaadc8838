"""Payroll, sales tax, GST and crypto gains, by dated tables that name their sources."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed_tax.verifier import TaxVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "TaxVerifier": "qwed_tax.verifier",
}

__all__ = ["TaxVerifier"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `qwed_tax` has no `{name}`")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]
