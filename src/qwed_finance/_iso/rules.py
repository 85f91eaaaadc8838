"""Table of rules: the name in a result, the text and its source."""

from collections.abc import Callable
from types import MappingProxyType

from qwed.model.data_files import read_mapping
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.payments import check_initiation, check_interbank
from qwed_finance._iso.references import check_references
from qwed_finance._iso.statements import check_statements
from qwed_finance._iso.statuses import check_status_report

Rule = Callable[[Element, str, MessageIssues], None]
RULES = MappingProxyType(read_mapping(__file__, "rules.txt"))

_BY_FAMILY: dict[str, tuple[Rule, ...]] = {
    "pain.001": (check_initiation, check_references),
    "pain.008": (check_initiation, check_references),
    "pacs.008": (check_interbank, check_references),
    "pacs.004": (check_interbank, check_references),
    "pain.002": (check_status_report, check_references),
    "pacs.002": (check_status_report, check_references),
    "camt.053": (check_statements, check_references),
    "camt.054": (check_statements, check_references),
}


def apply_rules(root: Element, family: str, issues: MessageIssues) -> None:
    """Apply every rule between the elements of a message with a valid structure."""
    for rule in _BY_FAMILY[family]:
        rule(root, family, issues)
