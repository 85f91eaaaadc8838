"""Rules of pain.002 and pacs.002: statuses of the group, of payments and of transactions, and counts."""

import re
from collections.abc import Iterator

from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.sums import decimal_of, sum_exact

STATUSES = frozenset(
    re.findall(r"\w+", "ACCC ACCP ACFC ACIS ACPD ACSC ACSP ACTC ACWC ACWP BLCK CANC CPUC PATC PART PDNG PRES RCVD RJCT")
)
"""ExternalPaymentGroupStatus1Code and ExternalPaymentTransactionStatus1Code of the external code sets."""
_ACCEPTED = frozenset(("ACTC", "ACCP", "ACSP", "ACSC", "ACWC"))
_STATUS_ELEMENTS = ("GrpSts", "PmtInfSts", "TxSts")


def check_status_report(root: Element, _family: str, issues: MessageIssues) -> None:
    """Check the statuses against each other, and the counts against the original ones."""
    for node in root.iter_tree():
        if node.name in (*_STATUS_ELEMENTS, "DtldSts") and not node.children and node.text not in STATUSES:
            known = ", ".join(sorted(STATUSES))
            issues.fail(node, "status", f"`{node.text[:10]}` is not a status of the external code set: {known}")
    groups = list(root.all("OrgnlGrpInfAndSts"))
    if len(groups) == 1:
        _check_group_status(groups[0].text_at("GrpSts"), _transactions(root), issues)
        _check_counts(groups[0], list(_transactions(root)), issues)
    for payment in root.all("OrgnlPmtInfAndSts"):
        own = list(payment.all("TxInfAndSts"))
        _check_group_status(payment.text_at("PmtInfSts"), iter(own), issues)
        _check_counts(payment, own, issues)


def _transactions(root: Element) -> Iterator[Element]:
    yield from root.all("TxInfAndSts")
    yield from root.all("OrgnlPmtInfAndSts/TxInfAndSts")


def _check_group_status(group: str | None, transactions: Iterator[Element], issues: MessageIssues) -> None:
    """Check GroupStatusAcceptedRule and the related rules of the message definitions."""
    for transaction in transactions:
        status = transaction.find("TxSts")
        if status is None or group is None:
            continue
        if group in _ACCEPTED | {"PDNG"} and status.text == "RJCT":
            issues.fail(status, "group_status", f"the group is `{group}`: no transaction of it is `RJCT`")
        if group == "RCVD":
            issues.fail(status, "group_status", "the group is `RCVD`: no transaction of it has a status yet")
        if group == "RJCT" and status.text != "RJCT":
            issues.fail(status, "group_status", f"the group is `RJCT`: a transaction of it is not `{status.text}`")


def _check_counts(group: Element, transactions: list[Element], issues: MessageIssues) -> None:
    original = group.find("OrgnlNbOfTxs")
    details = [*group.all("NbOfTxsPerSts/DtldNbOfTxs"), *group.all("NbOfTxsPerSts/NbOfTxs")]
    if original is None:
        return
    if details and sum(int(element.text) for element in details) > int(original.text):
        added = " + ".join(element.text for element in details)
        issues.fail(
            original,
            "count",
            f"`OrgnlNbOfTxs` says {original.text}, the statuses count more",
            f"{added} > {original.text}",
        )
    if len(transactions) > int(original.text):
        issues.fail(
            original, "count", f"`OrgnlNbOfTxs` says {original.text}, {len(transactions)} transactions are reported"
        )
    control, sums = group.find("OrgnlCtrlSum"), [*group.all("NbOfTxsPerSts/DtldCtrlSum")]
    if control is not None and sums and sum_exact(map(decimal_of, sums)) > decimal_of(control):
        issues.fail(control, "control_sum", f"`OrgnlCtrlSum` says {control.text}, the sums of the statuses are more")
