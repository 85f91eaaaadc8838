"""TaxVerifier: the checks of the tax pack for one jurisdiction."""

from typing import Any

from qwed_tax.gst import GstResult, verify_gst
from qwed_tax.india_crypto import IndiaCryptoResult, verify_india_crypto
from qwed_tax.sales_tax import SalesTaxResult, verify_sales_tax
from qwed_tax.us_payroll import PayrollResult, verify_us_payroll


class TaxVerifier:
    """Checks claimed taxes against dated tables. No method raises.

    `jurisdiction` is the default country of GST, by code or English name. Payroll and state rates are always those of
    the US, and virtual digital assets those of India.
    """

    def __init__(self, jurisdiction: Any = "US") -> None:
        self.jurisdiction = jurisdiction

    def verify_us_payroll(self, gross_pay: Any = None, claims: Any = None, **values: Any) -> PayrollResult:
        """Check FICA, federal withholding and net pay of one payment against the tables of its year."""
        return verify_us_payroll(gross_pay, claims, **values)

    def verify_sales_tax(
        self,
        amount: Any = None,
        rate: Any = None,
        claimed_tax: Any = None,
        *,
        place: Any = None,
        date: Any = None,
        currency: Any = "USD",
    ) -> SalesTaxResult:
        """Check that the tax is `rate` of `amount`, and with `place` that the rate is one of the state."""
        return verify_sales_tax(amount, rate, claimed_tax, place=place, date=date, currency=currency)

    def verify_india_crypto(
        self, losses: Any = None, gains: Any = None, claimed_tax: Any = None, **claims: Any
    ) -> IndiaCryptoResult:
        """Check the claimed tax on gains, without set-off of losses."""
        return verify_india_crypto(losses, gains, claimed_tax, **claims)

    def verify_gst(
        self, amount: Any = None, rate_percent: Any = None, claimed_tax: Any = None, **values: Any
    ) -> GstResult:
        """Check that the tax is the rate of the amount and that the jurisdiction has this rate on that day."""
        return verify_gst(amount, rate_percent, claimed_tax, **{"jurisdiction": self.jurisdiction, **values})
