"""Finance Guard: the total is computed again from its line items, exactly, and compared with the one that is claimed.

What cannot be verified is not forwarded: a total without lines, a number that reads in two ways, a member that could
be taken for money beside those that were checked.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.engines.verdicts import Asks
from qwed.words.exact import EXACT, shown
from qwed_a2a.finding import Finding
from qwed_a2a.guards._finance.invoice import Invoice, Unverifiable, read_invoice


async def check_finance(payload: Mapping[str, Any], _engines: Asks) -> Finding:
    """Whether the claimed total is what the line items, the tax and the discount come to."""
    try:
        invoice = read_invoice(payload)
    except Unverifiable as wrong:
        return Finding(False, str(wrong))
    computed = invoice.computed
    difference = EXACT.subtract(invoice.claimed, computed)
    details = _details(invoice, computed, difference)
    refusal = _wrong_sign(invoice) or _mismatch(invoice, computed, difference)
    if refusal is not None:
        return Finding(False, refusal, details)
    return Finding(True, f"the total comes to {_sum(invoice, computed)}, as claimed", details)


def _wrong_sign(invoice: Invoice) -> str | None:
    """Signs with which money would flow another way than its name says."""
    if invoice.discount < 0:
        return "`discount` is negative, write what is added as a line item"
    if invoice.discount > 0 and invoice.discount > EXACT.add(invoice.subtotal, invoice.tax):
        return "`discount` is more than there is to pay, write a credit as line items with negative amounts"
    if (invoice.tax < 0 <= invoice.subtotal) or (invoice.tax > 0 > invoice.subtotal):
        return "`tax` has another sign than what is taxed, write tax that is withheld or paid back as a line item"
    return None


def _mismatch(invoice: Invoice, computed: Decimal, difference: Decimal) -> str | None:
    # Once for the whole and never by line: many lines that are each off by less would add up.
    if invoice.allows(difference):
        return None
    return f"`claimed_total` is {shown(invoice.claimed)}, but the total comes to {_sum(invoice, computed)}"


def _sum(invoice: Invoice, computed: Decimal) -> str:
    lines = "1 line item" if invoice.lines == 1 else f"{invoice.lines} line items"
    tax = f" + tax {shown(invoice.tax)}" if invoice.tax else ""
    discount = f" - discount {shown(invoice.discount)}" if invoice.discount else ""
    return f"{shown(computed)} = {shown(invoice.subtotal)} of {lines}{tax}{discount}"


def _details(invoice: Invoice, computed: Decimal, difference: Decimal) -> dict[str, Any]:
    return {
        "claimed_total": shown(invoice.claimed),
        "computed_total": shown(computed),
        "difference": shown(difference),
        "tolerance": shown(invoice.tolerance),
        "subtotal": shown(invoice.subtotal),
        "tax": shown(invoice.tax),
        "discount": shown(invoice.discount),
        "line_items": invoice.lines,
        "currency": invoice.currency,
    }
