"""Ruling 4.25: a constant WHERE is no WHERE, and a transaction block is one action."""

import pytest

from tests.spec.conftest import Keyholders
from tests.spec.requests import Json, said
from tests.spec.sections import spec

WRITE = "UPDATE orders SET status = 'paid' WHERE id = 1"


def _sql(query: str) -> Json:
    return {"type": "execute_sql", "query": query}


def _answers(keyholders: Keyholders, query: str) -> list[str]:
    """Return the decision at each trust level."""
    return [said(keyholders.create_agent(trust_level=level)(_sql(query), 1))[0] for level in range(4)]


@spec("2.2")
def test_a_leading_constant_is_no_injection(keyholders: Keyholders) -> None:
    for query in ("SELECT id FROM orders WHERE 1=1 AND status = 'new'", "SELECT id FROM orders WHERE 1=1"):
        assert _answers(keyholders, query) == ["PENDING", "APPROVED", "APPROVED", "APPROVED"]


@spec("2.2")
def test_a_where_that_is_only_a_tautology_is_no_where(keyholders: Keyholders) -> None:
    for query in ("DELETE FROM orders WHERE 1=1", "UPDATE orders SET status = 'x' WHERE 1=1"):
        answer = keyholders.create_agent(trust_level=3)(_sql(query), 1)
        assert answer["verification"]["risk_level"] == "critical"
        assert _answers(keyholders, query) == ["DENIED", "DENIED", "DENIED", "APPROVED"]


@spec("2.2")
def test_a_tautology_that_widens_is_refused_at_every_trust_level(keyholders: Keyholders) -> None:
    for query in ("SELECT id FROM orders WHERE id = 1 OR 1=1", "DELETE FROM orders WHERE id = 1 OR 1=1"):
        assert _answers(keyholders, query) == ["DENIED"] * 4


@spec("2.2")
def test_a_transaction_block_is_one_action_with_the_effects_of_its_statements(keyholders: Keyholders) -> None:
    block = f"BEGIN; {WRITE}; INSERT INTO audit (id) VALUES (1); COMMIT"
    answer = keyholders.create_agent(trust_level=3)(_sql(block), 1)
    assert (answer["decision"], answer["verified_query"]) == ("APPROVED", block)
    assert [effect["target"] for effect in answer["verification"]["effects"]] == ["orders", "audit"]
    assert _answers(keyholders, block) == ["DENIED", "DENIED", "PENDING", "APPROVED"]


@spec("2.2")
def test_a_block_uses_one_step(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=3)
    block = f"BEGIN; {WRITE}; COMMIT"
    assert [said(ask(_sql(block), step))[1] for step in (1, 1)] == [None, "QWED-AGENT-LOOP-002"]


@spec("2.2")
@pytest.mark.parametrize(
    "query",
    [f"{WRITE}; COMMIT", f"SELECT 1; {WRITE}", f"BEGIN; {WRITE}", f"BEGIN; {WRITE}; COMMIT; DROP TABLE orders"],
)
def test_other_stacked_statements_stay_refused(keyholders: Keyholders, query: str) -> None:
    assert _answers(keyholders, query) == ["DENIED"] * 4


@spec("2.2")
def test_each_statement_of_a_block_keeps_to_the_permissions(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=3, permissions={"allowed_tables": ["orders"]})
    answer = ask(_sql(f"BEGIN; {WRITE}; SELECT id FROM secrets; COMMIT"), 1)
    assert (said(answer)[0], answer["error"]["check"]) == ("DENIED", "tables_allowed")
    assert "corrected" not in answer or answer["corrected"] is None
