"""How far a request may loosen the judgement of its own claim: the agent's permissions and the setting say so."""

import pytest

from tests.support.gate_factory import open_gate

SUM = {"expression": "2+2 = 5", "tolerance": 1_000_000}
DEADLINE = {
    "signing_date": "2026-01-15",
    "term": "30 days",
    "claimed_deadline": "2026-02-16",
    "tolerance_days": 30,
}


@pytest.mark.parametrize(
    ("tolerances", "status"), [((), "FAILED"), (("tolerance=0.5",), "FAILED"), (("tolerance=1",), "VERIFIED")]
)
def test_a_request_without_an_agent_is_bounded_by_the_setting(tolerances: tuple[str, ...], status: str) -> None:
    with open_gate(tolerances=tolerances) as gate:
        assert gate.verify_math(**SUM).status == status


@pytest.mark.parametrize(("tolerances", "status"), [(None, "FAILED"), (["tolerance_days=2"], "VERIFIED")])
def test_a_request_of_an_agent_is_bounded_by_its_permissions(tolerances: list[str] | None, status: str) -> None:
    with open_gate(tolerances=("tolerance_days=30",)) as gate:
        agent = gate.register_agent(name="a", principal_id="p", permissions={"tolerances": tolerances}).agent_id
        action = {"type": "verify_legal", "parameters": {"operation": "deadline", **DEADLINE}}
        answer = gate.verify_action(agent, action, {"conversation_id": "c", "step_number": 1})
        assert answer.verification["status"] == status
