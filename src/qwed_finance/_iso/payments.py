"""Rules of messages that move money: pain.001, pain.008, pacs.008, pacs.004."""

from collections.abc import Iterable
from decimal import Decimal

from qwed_finance._iso.node import MOST_FINDINGS, Findings, Node
from qwed_finance._iso.sums import number, same_count, same_sum

_IDS = {"pain.001": (), "pain.008": (), "pacs.008": ("PmtId/TxId", "PmtId/UETR"), "pacs.004": ("RtrId",)}
_ADVISED = {
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
"""The amount of a transaction, by message; the first that is there."""
_SEPA_MOST = Decimal("999999999.99")


def initiation(root: Node, family: str, found: Findings) -> None:
    """pain.001 and pain.008: what the group header and each payment information say of the transactions."""
    inner = "CdtTrfTxInf" if family == "pain.001" else "DrctDbtTxInf"
    header = root.need("GrpHdr")
    every = list(root.all(f"PmtInf/{inner}"))
    _totals(header, every, family, f"the transactions `{inner}` of the message", found)
    for batch in root.all("PmtInf"):
        own = list(batch.all(inner))
        _totals(batch, own, family, f"the transactions `{inner}` of this payment information", found)
        _sepa(batch, own, family, found)
    unique(root.all("PmtInf/PmtInfId"), found)
    _transactions(every, family, found)


def interbank(root: Node, family: str, found: Findings) -> None:
    """pacs.008 and pacs.004: counts, sums, and the total that is settled between the banks."""
    inner = "CdtTrfTxInf" if family == "pacs.008" else "TxInf"
    header = root.need("GrpHdr")
    every = list(root.all(inner))
    whole = header.at("GrpRtr") in ("true", "1")
    if whole and every:
        found.fail(header, "group_return", "a return of the whole group (`GrpRtr`) lists no transactions (`TxInf`)")
    if not whole:
        _totals(header, every, family, f"the transactions `{inner}`", found)
        for name in ("TtlIntrBkSttlmAmt", "TtlRtrdIntrBkSttlmAmt"):
            _settled(header.find(name), every, family, found)
    _transactions(every, family, found)
    _levels(header, every, found)


def _totals(header: Node, every: list[Node], family: str, of: str, found: Findings) -> None:
    same_count(header.find("NbOfTxs"), len(every), of, found)
    amounts = [number(each) for each in (amount(node, family) for node in every) if each is not None]
    if len(amounts) == len(every):
        same_sum(header.find("CtrlSum"), amounts, f"the amounts of {of}", found, "control_sum")


def _settled(claim: Node | None, every: list[Node], family: str, found: Findings) -> None:
    if claim is None:
        return
    amounts = [each for each in (amount(node, family) for node in every) if each is not None]
    currency = claim.attributes.get("Ccy")
    for each in amounts:
        if each.attributes.get("Ccy") != currency:
            other = each.attributes.get("Ccy")
            found.fail(each, "settlement_currency", f"`{claim.name}` is in `{currency}`, this amount in `{other}`")
            return
    same_sum(claim, list(map(number, amounts)), f"the amounts `{_AMOUNTS[family][0]}`", found, "settlement_sum")


def amount(transaction: Node, family: str) -> Node | None:
    """The amount of a transaction that totals count."""
    return next((found for found in map(transaction.find, _AMOUNTS[family]) if found is not None), None)


def _transactions(every: list[Node], family: str, found: Findings) -> None:
    for each in every:
        worth = amount(each, family)
        if worth is not None and number(worth) == 0:
            found.fail(worth, "amount", "a payment of nothing is none, write an amount above zero")
    for path in _IDS[family]:
        unique((node for each in every for node in each.all(path)), found)
    for path in _ADVISED[family]:
        unique((node for each in every for node in each.all(path)), found, advised=True)


def unique(nodes: Iterable[Node], found: Findings, advised: bool = False) -> None:
    """Whether identifications that must tell one thing from another do."""
    first: dict[str, Node] = {}
    for node in nodes:
        before = first.setdefault(node.text, node)
        if before is not node and not found.full and len(found.warnings) < MOST_FINDINGS:
            note = found.warn if advised else found.fail
            note(node, "unique", f"`{node.name}` `{node.text[:40]}` stands at {found.path(before)} too")


def _sepa(batch: Node, own: list[Node], family: str, found: Findings) -> None:
    usual = batch.at("PmtTpInf/SvcLvl/Cd")
    for each in own:
        worth = amount(each, family)
        if worth is None or (each.at("PmtTpInf/SvcLvl/Cd") or usual) != "SEPA":
            continue
        if worth.attributes.get("Ccy") != "EUR" or number(worth) > _SEPA_MOST:
            found.fail(worth, "sepa", f"a SEPA payment is in EUR and at most {_SEPA_MOST}, this one is {worth.text}")


def _levels(header: Node, every: list[Node], found: Findings) -> None:
    for name in ("InstgAgt", "InstdAgt", "PmtTpInf", "IntrBkSttlmDt"):
        below = [each for each in every if each.find(name) is not None]
        if header.find(name) is not None and below:
            found.warn(below[0], "levels", f"`{name}` stands in the group header and in a transaction, one is enough")
        if name == "IntrBkSttlmDt" and header.find(name) is None and len(below) < len(every):
            found.warn(header, "levels", "`IntrBkSttlmDt` stands neither in the group header nor in every transaction")
