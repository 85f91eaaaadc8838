"""Finance guard: the total is recomputed exactly from its line items and compared with the claimed one.

A payload that cannot be verified is refused: a total without line items, an ambiguous number, or a further member that
could be read as money.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.engines.verdict_cache import VerdictSource
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.model.decimals import EXACT, format_decimal
from qwed_a2a.guards._finance.invoice import Invoice, InvoiceError, read_invoice

_ENGINE = EngineName.FINANCE_GUARD


async def check_finance(payload: Mapping[str, Any], _engines: VerdictSource) -> MessageVerdict:
    """Return a pass if the claimed total equals the sum of line items, tax and discount, else the reason."""
    try:
        invoice = read_invoice(payload)
    except InvoiceError as error:
        return MessageVerdict(False, _ENGINE, str(error))
    computed = invoice.computed
    difference = EXACT.subtract(invoice.claimed, computed)
    details = _details(invoice, computed, difference)
    refusal = _wrong_sign(invoice) or _mismatch(invoice, computed, difference)
    if refusal is not None:
        return MessageVerdict(False, _ENGINE, refusal, details)
    return MessageVerdict(True, _ENGINE, f"the total comes to {_calculation(invoice, computed)}, as claimed", details)


def _wrong_sign(invoice: Invoice) -> str | None:
    """Return the problem with a sign that reverses the direction of payment, or None."""
    if invoice.discount < 0:
        return "`discount` is negative, write what is added as a line item"
    if invoice.discount > 0 and invoice.discount > EXACT.add(invoice.subtotal, invoice.tax):
        return "`discount` is more than there is to pay, write a credit as line items with negative amounts"
    if (invoice.tax < 0 <= invoice.subtotal) or (invoice.tax > 0 > invoice.subtotal):
        return "`tax` has another sign than what is taxed, write tax that is withheld or paid back as a line item"
    return None


def _mismatch(invoice: Invoice, computed: Decimal, difference: Decimal) -> str | None:
    # Tolerated once for the total and never per line: many small deviations would add up.
    if invoice.allows(difference):
        return None
    claimed, total = format_decimal(invoice.claimed), _calculation(invoice, computed)
    return f"`claimed_total` is {claimed}, but the total comes to {total}"


def _calculation(invoice: Invoice, computed: Decimal) -> str:
    lines = "1 line item" if invoice.lines == 1 else f"{invoice.lines} line items"
    tax = f" + tax {format_decimal(invoice.tax)}" if invoice.tax else ""
    discount = f" - discount {format_decimal(invoice.discount)}" if invoice.discount else ""
    return f"{format_decimal(computed)} = {format_decimal(invoice.subtotal)} of {lines}{tax}{discount}"


def _details(invoice: Invoice, computed: Decimal, difference: Decimal) -> dict[str, Any]:
    return {
        "claimed_total": format_decimal(invoice.claimed),
        "computed_total": format_decimal(computed),
        "difference": format_decimal(difference),
        "tolerance": format_decimal(invoice.tolerance),
        "subtotal": format_decimal(invoice.subtotal),
        "tax": format_decimal(invoice.tax),
        "discount": format_decimal(invoice.discount),
        "line_items": invoice.lines,
        "currency": invoice.currency,
    }
