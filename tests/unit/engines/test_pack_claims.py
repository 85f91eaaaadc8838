"""Claims sent to the engines of the packs, with the parameters that the sender would like."""

from typing import Any

import pytest

from qwed.engines import finance, legal, tax, ucp
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.model import Status, Verdict
from tests.support.case_tables import each, rows

ENGINES = {"finance": finance, "legal": legal, "tax": tax, "ucp": ucp}
CAP = {"contract_value": 1_000_000, "cap_percentage": 100, "claimed_cap": 1_000_050, "tolerance_percent": 100}
DEADLINE = {"signing_date": "2026-01-15", "term": "30 days", "claimed_deadline": "2026-02-16", "tolerance_days": 30}
PAYMENT = {"principal": 200_000, "annual_rate": 0.065, "months": 360, "llm_output": 1264, "precision": 0}
CART = {
    "currency": "USD",
    "status": "incomplete",
    "line_items": [{"id": "a", "quantity": 1, "price": 10}],
    "totals": [{"type": "subtotal", "amount": 10}, {"type": "total", "amount": 10}],
    "gift": True,
}


def ask(engine: str, operation: str, values: dict[str, Any], *tolerances: str) -> Verdict:
    parameters = {"operation": operation, **values}
    return ENGINES[engine].verify(EngineRequest(parameters=parameters, policy=DataPolicy(tolerances=tolerances)))


@each("row", rows("pack_claims_false.jsonl"))
def test_a_wrong_claim_is_never_verified(row):
    verdict = ask(row["engine"], row["operation"], row["values"])
    assert verdict.status is not Status.VERIFIED, verdict.message


@each("row", rows("pack_claims_true.jsonl"))
def test_a_right_claim_is_verified(row):
    verdict = ask(row["engine"], row["operation"], row["values"])
    assert verdict.status is Status.VERIFIED, verdict.message


@pytest.mark.parametrize(
    ("engine", "operation", "values", "entry"),
    [
        ("legal", "liability_cap", CAP, "tolerance_percent=0.01"),
        ("legal", "deadline", DEADLINE, "tolerance_days=2"),
        ("finance", "monthly_payment", PAYMENT, "precision=0"),
        ("ucp", "checkout", {"checkout": CART, "strict_mode": False}, "strict_mode=false"),
    ],
)
def test_a_request_loosens_its_judgement_as_far_as_the_permissions_say(engine, operation, values, entry):
    name = entry.partition("=")[0]
    refused = ask(engine, operation, values)
    assert refused.status is not Status.VERIFIED
    assert f"`{name}` is " in refused.message
    assert refused.result["notes"]
    assert ask(engine, operation, values, entry).status is Status.VERIFIED
