"""Rules of camt.053 and camt.054: balances, entries, their details and the summary."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from qwed.model.decimals import EXACT, format_decimal
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.sums import check_count, check_sum, decimal_of, format_sum, sum_exact

_OPENING = ("OPBD", "PRCD")
_CLOSING = "CLBD"


def check_statements(root: Element, _family: str, issues: MessageIssues) -> None:
    """Check every statement or notification of the message."""
    for statement in (*root.all("Stmt"), *root.all("Ntfctn")):
        is_complete = _is_complete(statement, root)
        if is_complete:
            _check_balances(statement, issues)
            _check_summary(statement, issues)
        _check_period(statement, issues)
        for entry in statement.all("Ntry"):
            _check_details(entry, issues)


def _is_complete(statement: Element, root: Element) -> bool:
    """Return True if the whole statement is here: one page, not a partial copy."""
    for page in (statement.find("StmtPgntn"), statement.find("NtfctnPgntn"), root.find("GrpHdr/MsgPgntn")):
        if page is not None and (page.text_at("LastPgInd") not in ("true", "1") or int(page.text_at("PgNb") or 0) != 1):
            return False
    return True


def signed_amount(node: Element) -> Decimal:
    """Return the amount with the sign of its `CdtDbtInd`; for a reversal that is how it was booked, not what it
    reverses."""
    value = decimal_of(node) if node.name == "Amt" else decimal_of(_amount_of(node))
    mark = (
        node.parent.text_at("CdtDbtInd")
        if node.name == "Amt" and node.parent is not None
        else node.text_at("CdtDbtInd")
    )
    return EXACT.minus(value) if mark == "DBIT" else value


def _amount_of(node: Element) -> Element:
    return node.require("Amt")


def _currency(node: Element) -> str:
    return _amount_of(node).attributes.get("Ccy", "")


def is_booked(entry: Element) -> bool:
    """Return True if the entry changes the booked balance; the status is a code, or contains one in newer versions."""
    status = entry.find("Sts")
    return status is not None and (status.text_at("Cd") or status.text) == "BOOK"


def _check_balances(statement: Element, issues: MessageIssues) -> None:
    kinds: dict[str, dict[str, list[Element]]] = defaultdict(lambda: defaultdict(list))
    for element in statement.all("Bal"):
        kinds[_currency(element)][element.text_at("Tp/CdOrPrtry/Cd") or ""].append(element)
    entries = [element for element in statement.all("Ntry") if is_booked(element)]
    foreign = {_currency(element) for element in entries} - set(kinds)
    if not kinds:
        return
    if foreign or any(line.text_at("Incl") in ("true", "1") for line in statement.all("Bal/CdtLine")):
        issues.warn(statement, "balance", "entries in other currencies or credit lines: the balances are not added up")
        return
    for currency, balances in kinds.items():
        opening = next((balances[kind] for kind in _OPENING if balances[kind]), [])
        closing = balances[_CLOSING]
        if len(opening) == len(closing) == 1:
            _check_closing_balance(
                opening[0], closing[0], [element for element in entries if _currency(element) == currency], issues
            )


def _check_closing_balance(
    opening: Element, closing: Element, entries: Sequence[Element], issues: MessageIssues
) -> None:
    amounts = [signed_amount(opening), *map(signed_amount, entries)]
    exact, claimed = sum_exact(amounts), signed_amount(closing)
    step = (
        f"opening balance and booked entries: {format_sum(amounts)} = {format_decimal(exact)}; "
        f"closing balance {format_decimal(claimed)}"
    )
    if exact == claimed:
        issues.confirm(closing, step)
    else:
        off = format_decimal(EXACT.subtract(claimed, exact))
        issues.fail(
            closing,
            "balance",
            f"the closing balance is {format_decimal(claimed)}, {format_decimal(exact)} comes out (off by {off})",
            step,
        )


def _check_summary(statement: Element, issues: MessageIssues) -> None:
    summary = statement.find("TxsSummry")
    if summary is None:
        return
    every = list(statement.all("Ntry"))
    counted = every if all(map(is_booked, every)) else None
    if counted is None or len({_currency(entry) for entry in every}) > 1:
        issues.warn(
            summary, "summary", "entries that are not booked or in several currencies: the summary is not added up"
        )
        return
    sides = {"TtlNtries": every}
    sides |= {
        name: [entry for entry in every if entry.text_at("CdtDbtInd") == mark]
        for name, mark in (("TtlCdtNtries", "CRDT"), ("TtlDbtNtries", "DBIT"))
    }
    for name, entries in sides.items():
        side = summary.find(name)
        if side is not None:
            check_count(side.find("NbOfNtries"), len(entries), f"the entries for `{name}`", issues)
            amounts = [decimal_of(_amount_of(entry)) for entry in entries]
            check_sum(side.find("Sum"), amounts, f"the entries for `{name}`", issues, "summary")
    _check_net(summary.find("TtlNtries"), every, issues)


def _check_net(side: Element | None, every: Sequence[Element], issues: MessageIssues) -> None:
    if side is None:
        return
    claim = side.find("TtlNetNtry/Amt") or side.find("TtlNetNtryAmt")
    mark = side.text_at("TtlNetNtry/CdtDbtInd") or side.text_at("CdtDbtInd")
    if claim is None or mark is None:
        return
    amounts = list(map(signed_amount, every))
    exact, claimed = sum_exact(amounts), EXACT.minus(decimal_of(claim)) if mark == "DBIT" else decimal_of(claim)
    step = (
        f"add the entries with their signs: {format_sum(amounts)} = {format_decimal(exact)}; "
        f"the summary says {format_decimal(claimed)}"
    )
    if exact == claimed:
        issues.confirm(claim, step)
    else:
        issues.fail(
            claim, "summary", f"the net of the entries is {format_decimal(exact)}, not {format_decimal(claimed)}", step
        )


def _check_period(statement: Element, issues: MessageIssues) -> None:
    period = statement.find("FrToDt")
    first, last = (period.text_at("FrDtTm"), period.text_at("ToDtTm")) if period is not None else (None, None)
    # Timestamps of one length and one zone sort as text.
    if period is not None and first and last and first[19:] == last[19:] and first > last:
        issues.fail(period, "period", f"`FrDtTm` {first} is after `ToDtTm` {last}", f"compare {first} and {last}")


def _check_details(entry: Element, issues: MessageIssues) -> None:
    for batch in entry.all("NtryDtls"):
        count = len(list(batch.all("TxDtls")))
        if count:
            check_count(batch.find("Btch/NbOfTxs"), count, "the details `TxDtls` of this batch", issues)
    details = list(entry.all("NtryDtls/TxDtls"))
    charges = any(detail.find("Chrgs") is not None for detail in (entry, *details))
    amounts = [_detail_amount(detail, entry) for detail in details]
    if not details or charges or any(detail is None for detail in amounts):
        return
    exact, claimed = sum_exact(detail for detail in amounts if detail is not None), signed_amount(entry)
    terms = [detail for detail in amounts if detail is not None]
    step = f"add the details: {format_sum(terms)} = {format_decimal(exact)}; the entry is {format_decimal(claimed)}"
    if exact == claimed:
        issues.confirm(entry, step)
    else:
        issues.fail(
            entry,
            "details",
            f"the details come to {format_decimal(exact)}, the entry is {format_decimal(claimed)}",
            step,
        )


def _detail_amount(details: Element, entry: Element) -> Decimal | None:
    """Return the signed amount of one transaction in the currency of its entry, or None."""
    amount = details.find("Amt") or details.find("AmtDtls/TxAmt/Amt")
    if amount is None or amount.attributes.get("Ccy") != _currency(entry):
        return None
    mark = details.text_at("CdtDbtInd") or entry.text_at("CdtDbtInd")
    return EXACT.minus(decimal_of(amount)) if mark == "DBIT" else decimal_of(amount)
