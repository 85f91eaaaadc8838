"""Tax pack: payroll, sales tax, GST and crypto gains, by dated tables with sources."""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed_tax.tax_verifier import TaxVerifier

# Imported on first use.
_HOME = {
    "TaxVerifier": "qwed_tax.tax_verifier",
}

__all__ = ["TaxVerifier"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
