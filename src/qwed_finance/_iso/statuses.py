"""Rules of pain.002 and pacs.002: statuses of the group, of payments and of transactions, and what was counted."""

import re
from collections.abc import Iterator

from qwed_finance._iso.node import Findings, Node
from qwed_finance._iso.sums import number, total

STATUSES = frozenset(
    re.findall(r"\w+", "ACCC ACCP ACFC ACIS ACPD ACSC ACSP ACTC ACWC ACWP BLCK CANC CPUC PATC PART PDNG PRES RCVD RJCT")
)
"""ExternalPaymentGroupStatus1Code and ExternalPaymentTransactionStatus1Code of the external code sets."""
_ACCEPTED = frozenset(("ACTC", "ACCP", "ACSP", "ACSC", "ACWC"))
_PLACES = ("GrpSts", "PmtInfSts", "TxSts")


def status_report(root: Node, _family: str, found: Findings) -> None:
    """The statuses, one against the other, and the counts against the original ones."""
    for node in root.below():
        if node.name in (*_PLACES, "DtldSts") and not node.children and node.text not in STATUSES:
            known = ", ".join(sorted(STATUSES))
            found.fail(node, "status", f"`{node.text[:10]}` is no status of the external code set: {known}")
    groups = list(root.all("OrgnlGrpInfAndSts"))
    if len(groups) == 1:
        _agrees(groups[0].at("GrpSts"), _transactions(root), found)
        _counts(groups[0], list(_transactions(root)), found)
    for payment in root.all("OrgnlPmtInfAndSts"):
        own = list(payment.all("TxInfAndSts"))
        _agrees(payment.at("PmtInfSts"), iter(own), found)
        _counts(payment, own, found)


def _transactions(root: Node) -> Iterator[Node]:
    yield from root.all("TxInfAndSts")
    yield from root.all("OrgnlPmtInfAndSts/TxInfAndSts")


def _agrees(group: str | None, transactions: Iterator[Node], found: Findings) -> None:
    """GroupStatusAcceptedRule and its sisters of the message definitions."""
    for each in transactions:
        status = each.find("TxSts")
        if status is None or group is None:
            continue
        if group in _ACCEPTED | {"PDNG"} and status.text == "RJCT":
            found.fail(status, "group_status", f"the group is `{group}`: no transaction of it is `RJCT`")
        if group == "RCVD":
            found.fail(status, "group_status", "the group is `RCVD`: no transaction of it has a status yet")
        if group == "RJCT" and status.text != "RJCT":
            found.fail(status, "group_status", f"the group is `RJCT`: a transaction of it is not `{status.text}`")


def _counts(group: Node, transactions: list[Node], found: Findings) -> None:
    original = group.find("OrgnlNbOfTxs")
    details = [*group.all("NbOfTxsPerSts/DtldNbOfTxs"), *group.all("NbOfTxsPerSts/NbOfTxs")]
    if original is None:
        return
    if details and sum(int(each.text) for each in details) > int(original.text):
        added = " + ".join(each.text for each in details)
        found.fail(
            original,
            "count",
            f"`OrgnlNbOfTxs` says {original.text}, the statuses count more",
            f"{added} > {original.text}",
        )
    if len(transactions) > int(original.text):
        found.fail(
            original, "count", f"`OrgnlNbOfTxs` says {original.text}, {len(transactions)} transactions are reported"
        )
    control, sums = group.find("OrgnlCtrlSum"), [*group.all("NbOfTxsPerSts/DtldCtrlSum")]
    if control is not None and sums and total(map(number, sums)) > number(control):
        found.fail(control, "control_sum", f"`OrgnlCtrlSum` says {control.text}, the sums of the statuses are more")
