"""Codes that are known by what stands beside them: creditor references and SEPA creditor identifiers."""

from collections.abc import Callable

from qwed_finance._iso.mod97 import Check, examine_creditor, examine_reference
from qwed_finance._iso.node import Findings, Node


def references(root: Node, _family: str, found: Findings) -> None:
    """Every `CdtrRefInf` and every party that is named under the scheme `SEPA`."""
    for node in root.below():
        if node.name == "CdtrRefInf":
            _reference(node, found)
        elif node.name == "Othr" and node.at("SchmeNm/Prtry") == "SEPA":
            _checked(node.find("Id"), examine_creditor, "creditor_identifier", found)


def _reference(node: Node, found: Findings) -> None:
    kind, issuer, text = node.at("Tp/CdOrPrtry/Cd"), node.at("Tp/Issr"), node.at("Ref") or ""
    # Other issuers have structured references of their own under the same code.
    if kind == "SCOR" and (issuer == "ISO" or (issuer is None and text[:2] == "RF" and text[2:4].isdigit())):
        _checked(node.find("Ref"), examine_reference, "creditor_reference", found)


def _checked(node: Node | None, examine: Callable[[str], Check], rule: str, found: Findings) -> None:
    if node is None:
        return
    check = examine(node.text)
    if not check.holds:
        found.fail(node, rule, check.says, *check.by_hand)
