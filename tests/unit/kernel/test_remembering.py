"""What is decided of an action is remembered where it depends on the action alone, and not where it has its day."""

import pytest

import qwed
from tests.spec.asking import Json

TAX = {"operation": "sales_tax", "amount": "100.00", "rate": "0.0825", "claimed_tax": "8.25"}


@pytest.mark.parametrize(
    ("action", "remembered"),
    [
        ({"type": "calculate", "query": "6 * 7 = 42"}, True),
        ({"type": "verify_tax", "parameters": TAX}, False),
        ({"type": "verify_tax", "parameters": {**TAX, "claimed_tax": "8.52"}}, False),
        ({"type": "verify_tax", "parameters": {}}, False),
    ],
    ids=["a sum", "a tax", "a wrong tax", "nothing asked"],
)
def test_a_judgement_of_a_pack_is_not_remembered(action: Json, remembered: bool) -> None:
    with qwed.open() as gate:
        agent = gate.register_agent(name="a", principal_id="u").agent_id
        for step in (1, 2):
            gate.verify_action(agent, action, {"conversation_id": "c", "step_number": step})
        assert bool(gate.services.judgements._kept) is remembered
