"""Rules of creditor references and SEPA creditor identifiers, which neighbouring elements identify."""

from collections.abc import Callable

from qwed_finance._iso.mod97 import CodeCheck, examine_creditor, examine_reference
from qwed_finance._iso.node import Element, MessageIssues


def check_references(root: Element, _family: str, issues: MessageIssues) -> None:
    """Check every `CdtrRefInf` and every party identified under the scheme `SEPA`."""
    for node in root.iter_tree():
        if node.name == "CdtrRefInf":
            _check_reference(node, issues)
        elif node.name == "Othr" and node.text_at("SchmeNm/Prtry") == "SEPA":
            _check_code(node.find("Id"), examine_creditor, "creditor_identifier", issues)


def _check_reference(node: Element, issues: MessageIssues) -> None:
    kind, issuer, text = node.text_at("Tp/CdOrPrtry/Cd"), node.text_at("Tp/Issr"), node.text_at("Ref") or ""
    # Other issuers use their own structured references under the same code.
    if kind == "SCOR" and (issuer == "ISO" or (issuer is None and text[:2] == "RF" and text[2:4].isdigit())):
        _check_code(node.find("Ref"), examine_reference, "creditor_reference", issues)


def _check_code(node: Element | None, examine: Callable[[str], CodeCheck], rule: str, issues: MessageIssues) -> None:
    if node is None:
        return
    check = examine(node.text)
    if not check.holds:
        issues.fail(node, rule, check.message, *check.by_hand)
