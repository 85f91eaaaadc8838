"""Interest, loans, cash flows and payment messages, computed again exactly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed_finance.iso import ISOGuard
    from qwed_finance.verifier import FinanceVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "FinanceVerifier": "qwed_finance.verifier",
    "ISOGuard": "qwed_finance.iso",
}

__all__ = ["FinanceVerifier", "ISOGuard"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `qwed_finance` has no `{name}`")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]
