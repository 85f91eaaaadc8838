"""Ruling 4.12: a repair is verified before it is offered; the engine endpoints only report it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from qwed.engines.verdict_cache import VerdictRequest
from qwed.gate import Gate
from qwed.model import Status, Verdict
from tests.conftest import AgentConversation
from tests.spec.requests import Json, said
from tests.spec.sections import spec
from tests.support.fault_injection import ReplacingProxy
from tests.support.gate_factory import open_gate

CLAIM: Json = {"type": "verify_logic", "query": "a wrong formula"}
WRONG = Verdict(
    status=Status.FAILED, engine="logic", checks_failed=("claim_holds",), corrected={"query": "a repaired formula"}
)


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


def _decided(gate: Gate, again: Verdict) -> tuple[Json, list[str]]:
    """Return the answer for a repair that the engine judges like this, and the requests the engine received."""
    asked: list[str] = []

    def ask(question: VerdictRequest) -> Verdict:
        asked.append(question.request.query)
        return WRONG if question.request.query == CLAIM["query"] else again

    engines: Any = ReplacingProxy(gate.services.engines, ask=ask)
    gate.services = replace(gate.services, engines=engines)
    agent = gate.register_agent(name="a", principal_id="u", trust_level=3).agent_id
    return dict(gate.verify_action(agent, CLAIM, {"conversation_id": "c", "step_number": 1})), asked


@spec("4.3", "2.3")
def test_a_repair_is_asked_about_before_it_is_offered(gate: Gate) -> None:
    answer, asked = _decided(gate, Verdict(status=Status.VERIFIED, engine="logic"))
    assert asked == ["a wrong formula", "a repaired formula"]
    assert said(answer) == ("CORRECTED", None)
    assert (answer["corrected"], answer["verified_query"]) == ({**CLAIM, "query": asked[1]}, asked[1])


@spec("4.3", "2.3")
@pytest.mark.parametrize(
    "again",
    [
        *(Verdict(status=status, engine="logic") for status in Status if status not in ("VERIFIED", "SIMPLIFIED")),
        Verdict(status=Status.VERIFIED, engine="logic", corrected={"query": "yet another"}),
        Verdict(status=Status.FAILED, engine="logic", corrected={"query": "a wrong formula"}),
    ],
    ids=lambda verdict: f"{verdict.status} {verdict.corrected}",
)
def test_a_repair_that_does_not_verify_itself_is_none(gate: Gate, again: Verdict) -> None:
    answer, asked = _decided(gate, again)
    assert len(asked) == 2
    assert said(answer) == ("DENIED", "QWED-AGENT-005")
    assert "corrected" not in {name for name, value in answer.items() if value is not None}


SCHEMA = "CREATE TABLE users (id INT, name TEXT, password TEXT)"
REPAIRED: list[tuple[str, Json, Json]] = [
    ("math", {"expression": "2+2 = 5"}, {"query": "2+2 = 4"}),
    ("sql", {"query": "SELECT id, password FROM users", "schema_ddl": SCHEMA}, {"query": "SELECT id FROM users"}),
    ("sql", {"query": "SELECT * FROM users", "schema_ddl": SCHEMA}, {"query": "SELECT id, name FROM users"}),
]


@spec("4.3", "B")
@pytest.mark.parametrize(("engine", "body", "repair"), REPAIRED, ids=lambda value: str(value)[:40])
def test_an_endpoint_answers_failed_and_tells_of_the_repair(
    api: httpx.Client, engine: str, body: Json, repair: Json
) -> None:
    found = api.post(f"/verify/{engine}", json=body).json()
    assert (found["status"], found["verified"], found["result"]["repair"]) == ("FAILED", False, repair)


@spec("4.3", "B")
def test_an_endpoint_tells_of_no_repair_where_there_is_none(api: httpx.Client) -> None:
    for engine, body in (("math", {"expression": "x = x + 1"}), ("logic", {"query": "(AND p (NOT p))"})):
        found = api.post(f"/verify/{engine}", json=body).json()
        assert (found["status"], "repair" in found["result"]) == ("FAILED", False)


NARROWER: list[tuple[Json, str, str]] = [
    ({"schema_ddl": SCHEMA}, "SELECT id, password FROM users", "SELECT id FROM users"),
    ({"schema_ddl": SCHEMA}, "SELECT * FROM users", "SELECT id, name FROM users"),
    ({"schema_ddl": SCHEMA, "allowed_columns": ["id"]}, "SELECT * FROM users", "SELECT id FROM users"),
    ({"max_rows": 5}, "SELECT id FROM users", "SELECT id FROM users LIMIT 5"),
    ({"max_rows": 5}, "SELECT id FROM users LIMIT 50", "SELECT id FROM users LIMIT 5"),
]


@spec("4.3")
@pytest.mark.parametrize(("permissions", "query", "narrower"), NARROWER, ids=lambda value: str(value)[:50])
def test_a_query_is_narrowed_in_each_way_and_only_where_it_is_too_wide(
    asking: Callable[..., AgentConversation], permissions: Json, query: str, narrower: str
) -> None:
    ask = asking(permissions=permissions)
    answers = [ask({"type": "execute_sql", "query": text}, step) for step, text in enumerate((query, narrower), 1)]
    assert [(each["decision"], each["verified_query"]) for each in answers] == [
        ("CORRECTED", narrower),
        ("APPROVED", narrower),
    ]
