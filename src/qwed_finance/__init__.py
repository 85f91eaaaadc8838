"""Checks of interest, loans, cash flows and payment messages by exact recomputation."""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed_finance.finance_verifier import FinanceVerifier
    from qwed_finance.iso import ISOGuard

# Each class is imported on first use, and its third-party libraries on its first check.
_HOME = {
    "FinanceVerifier": "qwed_finance.finance_verifier",
    "ISOGuard": "qwed_finance.iso",
}

__all__ = ["FinanceVerifier", "ISOGuard"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
