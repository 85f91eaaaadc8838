"""Rules of payment messages: pain.001, pain.008, pacs.008, pacs.004."""

from collections.abc import Iterable
from decimal import Decimal

from qwed_finance._iso.node import MAX_ISSUES, Element, MessageIssues
from qwed_finance._iso.sums import check_count, check_sum, decimal_of

_UNIQUE_IDS = {"pain.001": (), "pain.008": (), "pacs.008": ("PmtId/TxId", "PmtId/UETR"), "pacs.004": ("RtrId",)}
_ADVISED_UNIQUE_IDS = {
    "pain.001": ("PmtId/InstrId", "PmtId/UETR"),
    "pain.008": ("PmtId/InstrId", "PmtId/UETR"),
    "pacs.008": ("PmtId/InstrId",),
    "pacs.004": (),
}
_AMOUNTS = {
    "pain.001": ("Amt/InstdAmt", "Amt/EqvtAmt/Amt"),
    "pain.008": ("InstdAmt",),
    "pacs.008": ("IntrBkSttlmAmt",),
    "pacs.004": ("RtrdIntrBkSttlmAmt",),
}
"""Paths of a transaction's amount by message; the first that exists counts."""
_SEPA_MAX = Decimal("999999999.99")


def check_initiation(root: Element, family: str, issues: MessageIssues) -> None:
    """Check pain.001 and pain.008: totals of the group header and of each payment information."""
    inner = "CdtTrfTxInf" if family == "pain.001" else "DrctDbtTxInf"
    header = root.require("GrpHdr")
    every = list(root.all(f"PmtInf/{inner}"))
    _check_totals(header, every, family, f"the transactions `{inner}` of the message", issues)
    for batch in root.all("PmtInf"):
        own = list(batch.all(inner))
        _check_totals(batch, own, family, f"the transactions `{inner}` of this payment information", issues)
        _check_sepa(batch, own, family, issues)
    check_unique(root.all("PmtInf/PmtInfId"), issues)
    _check_transactions(every, family, issues)


def check_interbank(root: Element, family: str, issues: MessageIssues) -> None:
    """Check pacs.008 and pacs.004: counts, sums, and the total settled between the banks."""
    inner = "CdtTrfTxInf" if family == "pacs.008" else "TxInf"
    header = root.require("GrpHdr")
    every = list(root.all(inner))
    whole = header.text_at("GrpRtr") in ("true", "1")
    if whole and every:
        issues.fail(header, "group_return", "a return of the whole group (`GrpRtr`) lists no transactions (`TxInf`)")
    if not whole:
        _check_totals(header, every, family, f"the transactions `{inner}`", issues)
        for name in ("TtlIntrBkSttlmAmt", "TtlRtrdIntrBkSttlmAmt"):
            _check_settlement_total(header.find(name), every, family, issues)
    _check_transactions(every, family, issues)
    _check_levels(header, every, issues)


def _check_totals(header: Element, every: list[Element], family: str, description: str, issues: MessageIssues) -> None:
    check_count(header.find("NbOfTxs"), len(every), description, issues)
    amounts = [decimal_of(element) for element in (find_amount(node, family) for node in every) if element is not None]
    if len(amounts) == len(every):
        check_sum(header.find("CtrlSum"), amounts, f"the amounts of {description}", issues, "control_sum")


def _check_settlement_total(claim: Element | None, every: list[Element], family: str, issues: MessageIssues) -> None:
    if claim is None:
        return
    amounts = [amount for amount in (find_amount(node, family) for node in every) if amount is not None]
    currency = claim.attributes.get("Ccy")
    for amount in amounts:
        if amount.attributes.get("Ccy") != currency:
            other = amount.attributes.get("Ccy")
            issues.fail(amount, "settlement_currency", f"`{claim.name}` is in `{currency}`, this amount in `{other}`")
            return
    check_sum(claim, list(map(decimal_of, amounts)), f"the amounts `{_AMOUNTS[family][0]}`", issues, "settlement_sum")


def find_amount(transaction: Element, family: str) -> Element | None:
    """Return the amount of a transaction that totals count, or None."""
    return next((element for element in map(transaction.find, _AMOUNTS[family]) if element is not None), None)


def _check_transactions(every: list[Element], family: str, issues: MessageIssues) -> None:
    for transaction in every:
        amount = find_amount(transaction, family)
        if amount is not None and decimal_of(amount) == 0:
            issues.fail(amount, "amount", "the amount of a payment must be above zero")
    for path in _UNIQUE_IDS[family]:
        check_unique((node for transaction in every for node in transaction.all(path)), issues)
    for path in _ADVISED_UNIQUE_IDS[family]:
        check_unique((node for transaction in every for node in transaction.all(path)), issues, advised=True)


def check_unique(nodes: Iterable[Element], issues: MessageIssues, advised: bool = False) -> None:
    """Report identifications that occur more than once."""
    first: dict[str, Element] = {}
    for node in nodes:
        earlier = first.setdefault(node.text, node)
        if earlier is not node and not issues.is_full and len(issues.warnings) < MAX_ISSUES:
            note = issues.warn if advised else issues.fail
            note(node, "unique", f"`{node.name}` `{node.text[:40]}` stands at {issues.path(earlier)} too")


def _check_sepa(batch: Element, own: list[Element], family: str, issues: MessageIssues) -> None:
    default_level = batch.text_at("PmtTpInf/SvcLvl/Cd")
    for transaction in own:
        amount = find_amount(transaction, family)
        if amount is None or (transaction.text_at("PmtTpInf/SvcLvl/Cd") or default_level) != "SEPA":
            continue
        if amount.attributes.get("Ccy") != "EUR" or decimal_of(amount) > _SEPA_MAX:
            issues.fail(amount, "sepa", f"a SEPA payment is in EUR and at most {_SEPA_MAX}, this one is {amount.text}")


def _check_levels(header: Element, every: list[Element], issues: MessageIssues) -> None:
    for name in ("InstgAgt", "InstdAgt", "PmtTpInf", "IntrBkSttlmDt"):
        transactions = [transaction for transaction in every if transaction.find(name) is not None]
        if header.find(name) is not None and transactions:
            issues.warn(
                transactions[0], "levels", f"`{name}` stands in the group header and in a transaction, one is enough"
            )
        if name == "IntrBkSttlmDt" and header.find(name) is None and len(transactions) < len(every):
            issues.warn(header, "levels", "`IntrBkSttlmDt` stands neither in the group header nor in every transaction")
