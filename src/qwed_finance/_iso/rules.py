"""Table of rules: the name in a result, the text and its source."""

from collections.abc import Callable
from types import MappingProxyType

from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.payments import check_initiation, check_interbank
from qwed_finance._iso.references import check_references
from qwed_finance._iso.statements import check_statements
from qwed_finance._iso.statuses import check_status_report

Rule = Callable[[Element, str, MessageIssues], None]
_GUIDE = "message definition report of ISO 20022"

RULES = MappingProxyType(
    {
        "xml": "XML 1.0 in UTF-8, without document type, entity, instruction or CDATA (ISO 20022-4)",
        "namespace": "the namespace of the message that it is (ISO 20022-4, 5.3)",
        "structure": "the elements of the message, in order, as often as allowed (ISO 20022 schema)",
        "value": "values of their types (ISO 20022 schema)",
        "iban": "IBAN of a registered country, remainder 1 modulo 97 (ISO 13616-1)",
        "bic": "BIC of a country that exists (ISO 9362)",
        "lei": "LEI with remainder 1 modulo 97 (ISO 17442)",
        "country": "country of ISO 3166-1, or XK",
        "currency": "currency of ISO 4217",
        "decimals": f"no more decimals than the currency has (ISO 4217; CurrencyAmount, {_GUIDE})",
        "amount": "what is paid is more than zero",
        "count": f"a number of transactions or entries is how many there are ({_GUIDE})",
        "control_sum": f"a control sum is the sum of the amounts, whatever their currencies ({_GUIDE})",
        "settlement_sum": f"the total that is settled is the sum of the settlement amounts ({_GUIDE})",
        "settlement_currency": f"and has their currency ({_GUIDE})",
        "group_return": f"a return of the whole group lists no transactions ({_GUIDE})",
        "unique": f"an identification tells one thing from another within the message ({_GUIDE})",
        "levels": f"given for the group or for the transaction ({_GUIDE}); a warning",
        "sepa": "service level SEPA: EUR, at most 999999999.99 (EPC implementation guidelines)",
        "balance": "opening balance and booked entries come to the closing balance",
        "summary": f"the summary counts and adds the entries ({_GUIDE})",
        "details": "the details of an entry come to its amount where there are no charges",
        "period": "a period does not end before it begins",
        "status": "status of the external code sets of ISO 20022",
        "group_status": f"GroupStatusAcceptedRule, -PendingRule, -RejectedRule, -ReceivedRule ({_GUIDE})",
        "creditor_reference": "creditor reference with remainder 1 modulo 97 (ISO 11649)",
        "creditor_identifier": "SEPA creditor identifier with remainder 1 modulo 97 (EPC262-08)",
        "schema": "the schema file that was given",
    }
)

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
