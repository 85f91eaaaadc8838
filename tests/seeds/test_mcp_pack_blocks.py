"""Scripts of the MCP document that use the legal pack, run as printed, and the replacement of each deprecated tool."""

from qwed_finance import FinanceVerifier
from qwed_legal import CitationGuard, DeadlineGuard, LiabilityGuard
from qwed_ucp import UCPVerifier
from tests.seeds.blocks import Run
from tests.spec.sections import spec


@spec("2.2")
def test_the_deadline_is_computed(run: Run) -> None:
    assert run("mcp_deadline") == ["Verified: False", "Computed deadline: 2026-03-02"]


@spec("2.2")
def test_the_provenance_of_the_memo_is_verified(run: Run) -> None:
    verified, passed = run("mcp_provenance")
    assert verified == "Verified: True"
    assert all(name in passed for name in ("content_hash", "model_id", "generation_timestamp"))


@spec("2.2")
def test_the_legal_guard_is_there_for_a_long_run(run: Run) -> None:
    assert run("mcp_legal") == ["All checks passed"]


@spec("2.2")
def test_a_banking_scenario_is_verified_with_what_a_model_said_of_it() -> None:
    scenario = "Monthly payment on a loan of $250,000 at 6.5% for 30 years"
    assert FinanceVerifier().verify_banking_scenario(scenario=scenario, llm_output="$1,580.17").verified
    assert not FinanceVerifier().verify_banking_scenario(scenario=scenario, llm_output="$1,580.71").verified


@spec("2.2")
def test_a_cart_is_verified_as_json() -> None:
    cart = (
        '{"currency": "USD", "status": "ready_for_complete", "line_items": [{"id": "a", "quantity": 2, "price": 10.5}],'
        ' "totals": [{"type": "subtotal", "amount": 21}, {"type": "total", "amount": %s}]}'
    )
    assert UCPVerifier().verify_checkout(cart % "21.00").verified
    assert not UCPVerifier().verify_checkout(cart % "21.01").verified


@spec("2.2")
def test_a_deadline_is_verified_from_its_three_values() -> None:
    asked = {"signing_date": "2026-01-15", "term": "30 days"}
    assert DeadlineGuard().verify(**asked, claimed_deadline="2026-02-14").verified
    assert not DeadlineGuard().verify(**asked, claimed_deadline="2026-02-15").verified


@spec("2.2")
def test_a_citation_is_verified_in_its_form_and_its_validity() -> None:
    assert CitationGuard().verify(citation="Brown v. Board of Education, 347 U.S. 483 (1954)").valid
    assert not CitationGuard().verify(citation="347 X.Y.Z. 483 (1954)").valid
    assert not CitationGuard().verify(citation="Brown v. Board of Education, 347 U.S. 483 (1854)").valid


@spec("2.2")
def test_a_cap_is_verified_from_its_three_values() -> None:
    asked = {"contract_value": 1_000_000, "cap_percentage": 150}
    assert LiabilityGuard().verify_cap(**asked, claimed_cap=1_500_000).verified
    assert not LiabilityGuard().verify_cap(**asked, claimed_cap=1_050_000).verified
