"""Guards of the packs in the sandbox, called through a real server (seed 004, Tool mapping)."""

from collections.abc import Iterator

import pytest

from tests.seeds.blocks import block
from tests.support.mcp_sessions import Session, stdio, text

DONE = "\n\nExecution completed successfully."
MAPPING: dict[str, tuple[str, list[str]]] = {
    "verify_banking_compliance": (
        """from qwed_finance import FinanceVerifier
verifier = FinanceVerifier(precision=2)
for claim in ("$1,580.17", "$1,580.71"):
    result = verifier.verify_monthly_payment(250000, 0.065, 360, claim)
    print(result.verified, result["computed_value"])
""",
        ["True 1580.17", "False 1580.17"],
    ),
    "verify_iso_20022": (
        """from qwed_finance import ISOGuard
message = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08"><FIToFICstmrCdtTrf/></Document>'
result = ISOGuard().verify_payment_message(message, msg_type="pacs.008")
print(result.verified, bool(result.message))
bomb = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">]><Document>&a;</Document>'
print(ISOGuard().verify_payment_message(bomb).verified)
""",
        ["False True", "False"],
    ),
    "verify_commerce_transaction": (
        """import json
from qwed_ucp import UCPVerifier
cart = {
    "currency": "USD",
    "status": "ready_for_complete",
    "line_items": [{"id": "a", "quantity": 2, "price": 10.5}],
    "totals": [{"type": "subtotal", "amount": 21}, {"type": "total", "amount": 21}],
}
result = UCPVerifier(strict_mode=True).verify_checkout(json.dumps(cart))
print(result.verified, all(guard["verified"] for guard in result.guards))
cart["totals"][1]["amount"] = 21.01
print(UCPVerifier().verify_checkout(cart)["verified"])
""",
        ["True True", "False"],
    ),
    "verify_legal_deadline": (
        """from qwed_legal import DeadlineGuard
for country, state in (("US", None), ("DE", "BY"), ("GB", "ENG")):
    result = DeadlineGuard(country=country, state=state).verify("2026-01-15", "30 days", "2026-02-14")
    print(country, result.verified, result.computed_deadline)
""",
        ["US True 2026-02-14", "DE True 2026-02-14", "GB True 2026-02-14"],
    ),
    "verify_legal_citation": (
        """from qwed_legal import CitationGuard
guard = CitationGuard()
for citation in ("347 U.S. 483 (1954)", "347 X.Y.Z. 483 (1954)", "[2020] UKSC 1"):
    print(guard.verify(citation).valid)
""",
        ["True", "False", "True"],
    ),
    "verify_legal_liability": (
        """from qwed_legal import LiabilityGuard
result = LiabilityGuard(tolerance_percent=0.01).verify_cap(1000000, 150, 1500000)
print("capped" if result.verified else result.message)
""",
        ["capped"],
    ),
    "verify_legal_jurisdiction": (
        """from qwed_legal import JurisdictionGuard
guard = JurisdictionGuard()
for law in ("New York", "Atlantis"):
    result = guard.verify_choice_of_law(["US", "DE"], law)
    print(result.verified, len(result.conflicts or ()), bool(result.known))
print(guard.check_convention_applicability(["US", "DE"], "CISG").verified)
""",
        ["True 0 False", "False 0 True", "True"],
    ),
    "verify_legal_statute": (
        """from qwed_legal import StatuteOfLimitationsGuard
result = StatuteOfLimitationsGuard().verify("breach_of_contract", "California", "2022-01-12", "2025-06-01")
print(result.verified, result.expiration_date)
""",
        ["True 2026-01-12"],
    ),
    "TaxVerifier": (
        """from qwed_tax import TaxVerifier
verifier = TaxVerifier(jurisdiction="US")
print([verifier.verify_sales_tax(100, 0.0825, claimed).verified for claimed in (8.25, 8.26)])
""",
        ["[True, False]"],
    ),
    "FairnessGuard": (
        """from qwed_legal import FairnessGuard
def model(prompt):
    return "approve" if "income 50000" in prompt else "deny"
result = FairnessGuard(model).verify_decision_fairness("He has an income 50000", "approve", {"He": "She"})
print(result.verified)
""",
        ["True"],
    ),
}


@pytest.fixture(scope="module")
def confined() -> Iterator[Session]:
    """Session with the default sandbox."""
    with stdio(QWED_MCP_TRUSTED_CODE_EXECUTION="true") as session:
        yield session


@pytest.mark.parametrize("tool", MAPPING)
def test_the_replacement_of_a_deprecated_tool_answers_inside_the_sandbox(confined: Session, tool: str) -> None:
    code, printed = MAPPING[tool]
    answer = confined.run(code)
    assert text(answer) == "STDOUT:\n" + "\n".join(printed) + DONE
    assert not answer.is_error


def test_the_deadline_of_the_document_is_answered_inside_the_sandbox(confined: Session) -> None:
    output = text(confined.run(block("mcp_deadline")))
    assert output == f"STDOUT:\nVerified: False\nComputed deadline: 2026-03-02{DONE}"


def test_the_provenance_of_the_document_is_answered_inside_the_sandbox(confined: Session) -> None:
    output = text(confined.run(block("mcp_provenance")))
    assert output.startswith("STDOUT:\nVerified: True\nChecks passed: ")
    assert output.endswith(DONE)


def test_the_legal_guard_of_the_document_runs_in_the_background(confined: Session) -> None:
    ended = confined.wait_ended(confined.submit(block("mcp_legal")))
    assert text(ended) == f"Status: success\n\nResult:\nSTDOUT:\nAll checks passed{DONE}"
    assert not ended.is_error


REFUSED = {
    "a model that starts a process": """import os
from qwed_legal import FairnessGuard
FairnessGuard(lambda prompt: os.popen(prompt).read()).verify_decision_fairness("id", "a", {"he": "she"})
""",
    "a model that is eval": """from qwed_legal import FairnessGuard
FairnessGuard(eval).verify_decision_fairness("1", "a", {"he": "she"})
""",
    "schemas of the host": """from qwed_finance import ISOGuard
print(ISOGuard(schemas="/etc").verify_payment_message("<Document/>"))
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_abuse_of_a_guard_is_blocked_before_it_runs(confined: Session, name: str) -> None:
    answer = confined.run(REFUSED[name])
    assert answer.is_error
    assert text(answer).startswith("BLOCKED: QWED blocked python execution: ")
