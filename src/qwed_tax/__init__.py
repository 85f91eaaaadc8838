"""Payroll, sales tax, GST and crypto gains, by dated tables that name their sources."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily

if TYPE_CHECKING:
    from qwed_tax.verifier import TaxVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "TaxVerifier": "qwed_tax.verifier",
}

__all__ = ["TaxVerifier"]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
