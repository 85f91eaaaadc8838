"""An assessment is cached if it depends on the action alone, and not if it depends on the date."""

from dataclasses import replace

import pytest

import qwed
from tests.spec.requests import Json

TAX = {"operation": "sales_tax", "amount": "100.00", "rate": "0.0825", "claimed_tax": "8.25"}
CAP = {"operation": "liability_cap", "contract_value": 1_000_000, "cap_percentage": 150, "claimed_cap": 1_500_000}


@pytest.mark.parametrize(
    ("action", "cached"),
    [
        ({"type": "calculate", "query": "6 * 7 = 42"}, True),
        ({"type": "verify_tax", "parameters": TAX}, True),
        ({"type": "verify_legal", "parameters": CAP}, False),
        ({"type": "verify_legal", "parameters": {**CAP, "claimed_cap": 1}}, False),
        ({"type": "verify_legal", "parameters": {}}, False),
    ],
    ids=["a sum", "a tax", "a cap", "a wrong cap", "nothing asked"],
)
def test_an_assessment_that_depends_on_the_date_is_not_cached(action: Json, cached: bool) -> None:
    with qwed.open() as gate:
        agent = gate.register_agent(name="a", principal_id="u").agent_id
        gate.verify_action(agent, action, {"conversation_id": "c", "step_number": 1})
        stages: list[str] = []
        gate.services = replace(gate.services, at_stage=stages.append)
        gate.verify_action(agent, action, {"conversation_id": "c", "step_number": 2})
        assert ("run_engine" not in stages) is cached
