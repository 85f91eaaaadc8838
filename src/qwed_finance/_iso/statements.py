"""Rules of camt.053 and camt.054: balances, entries, their details and the summary."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from qwed.words.exact import EXACT, shown
from qwed_finance._iso.node import Findings, Node
from qwed_finance._iso.sums import number, same_count, same_sum, total, written

_OPENING = ("OPBD", "PRCD")
_CLOSING = "CLBD"


def statement(root: Node, _family: str, found: Findings) -> None:
    """Every statement or notification of the message."""
    for each in (*root.all("Stmt"), *root.all("Ntfctn")):
        whole = _whole(each, root)
        if whole:
            _balances(each, found)
            _summary(each, found)
        _period(each, found)
        for entry in each.all("Ntry"):
            _details(entry, found)


def _whole(statement: Node, root: Node) -> bool:
    """Whether all of the statement is here: one page, not a copy of a part."""
    for page in (statement.find("StmtPgntn"), statement.find("NtfctnPgntn"), root.find("GrpHdr/MsgPgntn")):
        if page is not None and (page.at("LastPgInd") not in ("true", "1") or int(page.at("PgNb") or 0) != 1):
            return False
    return True


def signed(node: Node) -> Decimal:
    """An amount with the sign of its `CdtDbtInd`; a reversal says there how it was booked, not what it reverses."""
    value = number(node) if node.name == "Amt" else number(_amount(node))
    mark = node.parent.at("CdtDbtInd") if node.name == "Amt" and node.parent is not None else node.at("CdtDbtInd")
    return EXACT.minus(value) if mark == "DBIT" else value


def _amount(node: Node) -> Node:
    return node.need("Amt")


def _currency(node: Node) -> str:
    return _amount(node).attributes.get("Ccy", "")


def booked(entry: Node) -> bool:
    """Whether an entry changes the booked balance; the status is a code, or holds one in newer versions."""
    status = entry.find("Sts")
    return status is not None and (status.at("Cd") or status.text) == "BOOK"


def _balances(statement: Node, found: Findings) -> None:
    kinds: dict[str, dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for each in statement.all("Bal"):
        kinds[_currency(each)][each.at("Tp/CdOrPrtry/Cd") or ""].append(each)
    entries = [each for each in statement.all("Ntry") if booked(each)]
    foreign = {_currency(each) for each in entries} - set(kinds)
    if not kinds:
        return
    if foreign or any(line.at("Incl") in ("true", "1") for line in statement.all("Bal/CdtLine")):
        found.warn(statement, "balance", "entries in other currencies or credit lines: the balances are not added up")
        return
    for currency, balances in kinds.items():
        opening = next((balances[kind] for kind in _OPENING if balances[kind]), [])
        closing = balances[_CLOSING]
        if len(opening) == len(closing) == 1:
            _closes(opening[0], closing[0], [each for each in entries if _currency(each) == currency], found)


def _closes(opening: Node, closing: Node, entries: Sequence[Node], found: Findings) -> None:
    amounts = [signed(opening), *map(signed, entries)]
    exact, claimed = total(amounts), signed(closing)
    step = f"opening balance and booked entries: {written(amounts)} = {shown(exact)}; closing balance {shown(claimed)}"
    if exact == claimed:
        found.hold(closing, step)
    else:
        off = shown(EXACT.subtract(claimed, exact))
        found.fail(
            closing,
            "balance",
            f"the closing balance is {shown(claimed)}, {shown(exact)} comes out (off by {off})",
            step,
        )


def _summary(statement: Node, found: Findings) -> None:
    summary = statement.find("TxsSummry")
    if summary is None:
        return
    every = list(statement.all("Ntry"))
    counted = every if all(map(booked, every)) else None
    if counted is None or len({_currency(each) for each in every}) > 1:
        found.warn(
            summary, "summary", "entries that are not booked or in several currencies: the summary is not added up"
        )
        return
    sides = {"TtlNtries": every}
    sides |= {
        name: [each for each in every if each.at("CdtDbtInd") == mark]
        for name, mark in (("TtlCdtNtries", "CRDT"), ("TtlDbtNtries", "DBIT"))
    }
    for name, entries in sides.items():
        side = summary.find(name)
        if side is not None:
            same_count(side.find("NbOfNtries"), len(entries), f"the entries for `{name}`", found)
            amounts = [number(_amount(each)) for each in entries]
            same_sum(side.find("Sum"), amounts, f"the entries for `{name}`", found, "summary")
    _net(summary.find("TtlNtries"), every, found)


def _net(side: Node | None, every: Sequence[Node], found: Findings) -> None:
    if side is None:
        return
    claim = side.find("TtlNetNtry/Amt") or side.find("TtlNetNtryAmt")
    mark = side.at("TtlNetNtry/CdtDbtInd") or side.at("CdtDbtInd")
    if claim is None or mark is None:
        return
    amounts = list(map(signed, every))
    exact, claimed = total(amounts), EXACT.minus(number(claim)) if mark == "DBIT" else number(claim)
    step = f"add the entries with their signs: {written(amounts)} = {shown(exact)}; the summary says {shown(claimed)}"
    if exact == claimed:
        found.hold(claim, step)
    else:
        found.fail(claim, "summary", f"the net of the entries is {shown(exact)}, not {shown(claimed)}", step)


def _period(statement: Node, found: Findings) -> None:
    period = statement.find("FrToDt")
    first, last = (period.at("FrDtTm"), period.at("ToDtTm")) if period is not None else (None, None)
    # Texts of one length and one zone sort as the moments do.
    if period is not None and first and last and first[19:] == last[19:] and first > last:
        found.fail(period, "period", f"`FrDtTm` {first} is after `ToDtTm` {last}", f"compare {first} and {last}")


def _details(entry: Node, found: Findings) -> None:
    for batch in entry.all("NtryDtls"):
        many = len(list(batch.all("TxDtls")))
        if many:
            same_count(batch.find("Btch/NbOfTxs"), many, "the details `TxDtls` of this batch", found)
    details = list(entry.all("NtryDtls/TxDtls"))
    charges = any(each.find("Chrgs") is not None for each in (entry, *details))
    amounts = [_detail(each, entry) for each in details]
    if not details or charges or any(each is None for each in amounts):
        return
    exact, claimed = total(each for each in amounts if each is not None), signed(entry)
    terms = [each for each in amounts if each is not None]
    step = f"add the details: {written(terms)} = {shown(exact)}; the entry is {shown(claimed)}"
    if exact == claimed:
        found.hold(entry, step)
    else:
        found.fail(entry, "details", f"the details come to {shown(exact)}, the entry is {shown(claimed)}", step)


def _detail(details: Node, entry: Node) -> Decimal | None:
    """The amount of one transaction in the currency of its entry, with its sign."""
    found = details.find("Amt") or details.find("AmtDtls/TxAmt/Amt")
    if found is None or found.attributes.get("Ccy") != _currency(entry):
        return None
    mark = details.at("CdtDbtInd") or entry.at("CdtDbtInd")
    return EXACT.minus(number(found)) if mark == "DBIT" else number(found)
