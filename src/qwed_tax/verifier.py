"""TaxVerifier: the checks of this pack under one name, for one jurisdiction."""

from typing import Any

from qwed_tax.gst import GstResult, verify_gst
from qwed_tax.india_crypto import IndiaCryptoResult, verify_india_crypto
from qwed_tax.sales_tax import SalesTaxResult, verify_sales_tax
from qwed_tax.us_payroll import PayrollResult, verify_us_payroll


class TaxVerifier:
    """Checks claimed taxes against dated tables; none of its methods raises.

    `jurisdiction` is the country that GST is of where a call names none, by code or English name. Payroll and the
    rates of states are of the US and virtual digital assets of India, whatever it is.
    """

    def __init__(self, jurisdiction: Any = "US") -> None:
        self.jurisdiction = jurisdiction

    def verify_us_payroll(self, gross_pay: Any = None, claims: Any = None, **values: Any) -> PayrollResult:
        """Whether FICA, federal withholding and net of one payment are what the tables of its year come to."""
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
        """Whether the tax is `rate` of `amount`; with `place`, whether that rate is one of the state."""
        return verify_sales_tax(amount, rate, claimed_tax, place=place, date=date, currency=currency)

    def verify_india_crypto(
        self, losses: Any = None, gains: Any = None, claimed_tax: Any = None, **claims: Any
    ) -> IndiaCryptoResult:
        """What the gains are taxed with, of which no loss is set off; what is claimed must be that."""
        return verify_india_crypto(losses, gains, claimed_tax, **claims)

    def verify_gst(
        self, amount: Any = None, rate_percent: Any = None, claimed_tax: Any = None, **values: Any
    ) -> GstResult:
        """Whether the tax is the rate of the amount, and the rate one of the jurisdiction on that day."""
        return verify_gst(amount, rate_percent, claimed_tax, **{"jurisdiction": self.jurisdiction, **values})
