"""INTERFACES 2 and 8: `/verify` with a `type`, over HTTP: every engine, and the checks of the packs by their names."""

import json
from typing import Any

import httpx
import pytest

from qwed.kernel.verification.request import ENGINE_INPUTS
from tests.conftest import AgentConversation
from tests.spec.requests import Json
from tests.spec.sections import spec
from tests.spec.test_verify_endpoints import FALSE, MEMBERS, TRUE
from tests.support.case_tables import DATA
from tests.support.polling import until

DEADLINE = {"signing_date": "2026-01-15", "term": "30 business days", "claimed_deadline": "2026-03-02"}
LOAN = {"principal": 250_000, "annual_rate": "0.065", "months": 360, "llm_output": "$1,580.17"}
CHECKOUT = {
    "currency": "USD",
    "status": "ready_for_complete",
    "line_items": [{"id": "a", "quantity": 2, "price": "10.00"}],
    "totals": [
        {"type": "subtotal", "amount": "20.00"},
        {"type": "tax", "amount": "1.65"},
        {"type": "total", "amount": "21.65"},
    ],
}
HOLDS: dict[str, Json] = {
    "legal": {"operation": "deadline", "params": DEADLINE},
    "finance": {"operation": "monthly_payment", "params": LOAN},
    "ucp": {"operation": "checkout", "params": {"checkout": CHECKOUT}},
    "tax": {"operation": "sales_tax", "params": {"amount": 100, "rate": "0.0825", "claimed_tax": "8.25"}},
}
DOES_NOT: dict[str, Json] = {
    "legal": {"operation": "deadline", "params": {**DEADLINE, "claimed_deadline": "2026-02-14"}},
    "finance": {"operation": "monthly_payment", "params": {**LOAN, "llm_output": 1580.71}},
    "ucp": {"operation": "checkout", "params": {"checkout": {**CHECKOUT, "totals": CHECKOUT["totals"][:2]}}},
    "tax": {"operation": "sales_tax", "params": {"amount": 100, "rate": "0.0825", "claimed_tax": 8.52}},
}


def found(api: httpx.Client, body: Json) -> Json:
    response = api.post("/verify", json=body)
    assert response.status_code == 200, response.text
    read: Json = response.json()
    assert set(read) == MEMBERS
    return read


@spec("B")
@pytest.mark.parametrize("pack", HOLDS)
def test_what_holds_is_verified_with_its_rule_and_how_to_do_it_by_hand(api: httpx.Client, pack: str) -> None:
    answer = found(api, {"type": pack, **HOLDS[pack]})
    assert (answer["status"], answer["verified"], answer["engine"]) == ("VERIFIED", True, pack), answer
    assert answer["result"]["operation"] == HOLDS[pack]["operation"]
    assert answer["result"]["rule"]
    assert answer["result"]["by_hand"]
    assert "routed" not in answer["result"]
    assert answer["checks"] == [{"name": HOLDS[pack]["operation"], "passed": True}]


@spec("B")
@pytest.mark.parametrize("pack", DOES_NOT)
def test_what_does_not_hold_fails_with_the_same(api: httpx.Client, pack: str) -> None:
    answer = found(api, {"type": pack, **DOES_NOT[pack]})
    assert (answer["status"], answer["verified"]) == ("FAILED", False), answer
    assert answer["result"]["by_hand"]


@spec("B")
def test_the_computed_deadline_is_told(api: httpx.Client) -> None:
    answer = found(api, {"type": "legal", **DOES_NOT["legal"]})
    assert answer["result"]["computed_deadline"] == "2026-03-02"


@spec("B")
def test_a_place_nobody_has_a_calendar_of_is_inconclusive_with_those_there_are(api: httpx.Client) -> None:
    answer = found(api, {"type": "legal", "operation": "deadline", "params": {**DEADLINE, "country": "Atlantis"}})
    assert (answer["status"], answer["result"]["status"]) == ("INCONCLUSIVE", "UNVERIFIABLE")
    assert {"US", "DE", "GB"} <= set(answer["result"]["known"])


@spec("B")
@pytest.mark.parametrize("engine", sorted({*TRUE, *FALSE}))
def test_every_other_engine_may_be_named_too(api: httpx.Client, engine: str) -> None:
    for body in (TRUE[engine], FALSE[engine]):
        named = ENGINE_INPUTS[engine].texts[0]
        asked = {"query" if name == named else name: value for name, value in body.items()}
        answer = found(api, {"type": engine, **asked})
        direct = api.post(f"/verify/{engine}", json=body).json()
        assert (answer["status"], answer["engine"]) == (direct["status"], engine)
        assert answer["proof_ref"] == direct["proof_ref"]


@spec("B")
def test_the_shape_of_a_query_does_not_matter_where_its_engine_is_named(api: httpx.Client) -> None:
    assert found(api, {"query": "SELECT 1"})["engine"] == "sql"
    assert found(api, {"query": "SELECT 1", "type": "math"})["engine"] == "math"
    assert found(api, {"query": "2+2 = 4", "type": None})["result"]["routed"]["engine"] == "math"


BESIDE = (
    "unknown field `term`: known are query, type, operation, params, options; "
    "if it is a value of the check, put it in `params`"
)
REFUSED: list[tuple[Json, str, str]] = [
    ({"type": "magic", "query": "1"}, "QWED-REQ-003", "unknown type `magic`: known are math, logic"),
    ({"type": "shell", "query": "ls"}, "QWED-REQ-003", "unknown type `shell`"),
    ({"type": "LEGAL", "operation": "deadline"}, "QWED-REQ-003", "legal, finance, ucp, tax"),
    ({"type": 7, "query": "1"}, "QWED-REQ-003", "unknown type `7`"),
    ({"type": ["legal"]}, "QWED-REQ-003", "unknown type"),
    ({"type": "math"}, "QWED-REQ-004", "`query` is required"),
    ({"type": "fact", "query": "it is so"}, "QWED-REQ-004", "`context` is required"),
    ({"type": "sql", "query": "SELECT 1", "operation": "read"}, "QWED-REQ-001", "unknown field `operation`"),
    ({"type": "legal", "operation": "deadline", "term": "1 day"}, "QWED-REQ-001", BESIDE),
    ({"terms": 1}, "QWED-REQ-001", "unknown field `terms`: known are query, type, operation, "),
    ({"type": "legal", "operation": ["deadline"]}, "QWED-REQ-001", "`operation` must be a text"),
    ({"type": "legal", "operation": "deadline", "params": {"operation": "deadline"}}, "QWED-REQ-001", "send it once"),
    ({"type": "legal", "operation": "deadline", "params": [1]}, "QWED-REQ-001", "in `params`"),
    ({"type": "legal", "operation": "deadline", "query": 7}, "QWED-REQ-001", "`query` must be a text"),
    ({"type": "ucp", "operation": "checkout", "query": {}}, "QWED-REQ-001", "with a client, as `checkout=`"),
    ({"type": "legal", "operation": "deadline", "options": {"hurry": 1}}, "QWED-REQ-005", "hurry"),
    ({"operation": "deadline"}, "QWED-REQ-004", "`query` is required"),
]


@spec("B")
@pytest.mark.parametrize(("body", "code", "said"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_is_no_question_is_refused_by_name(api: httpx.Client, body: Json, code: str, said: str) -> None:
    response = api.post("/verify", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, code)
    assert said in error["message"]


BLOCKED: list[tuple[Json, str]] = [
    ({"type": "legal"}, "`operation` is required: known are"),
    ({"type": "legal", "operation": "divorce"}, "unknown operation `divorce`: known are"),
    ({"type": "tax", "operation": "deadline"}, "unknown operation `deadline`: known are"),
    (
        {"type": "legal", "operation": "deadline", "params": {"trem": "1 day"}},
        "`deadline` takes no `trem`: did you mean `term`? it",
    ),
    (
        {"type": "legal", "operation": "deadline", "params": {"term": "1 day"}},
        "`signing_date` and `claimed_deadline` are required",
    ),
    ({"type": "legal", "operation": "deadline", "query": "9 days", "params": DEADLINE}, "both are given"),
    ({"type": "ucp", "operation": "cart", "params": {"id": "1", "totals": []}}, "put all of that under `cart`"),
    ({"type": "tax", **HOLDS["tax"], "query": "9 days"}, "reads no `query`"),
]


@spec("B")
@pytest.mark.parametrize(("body", "said"), BLOCKED, ids=lambda value: str(value)[:50])
def test_what_cannot_be_asked_is_blocked_with_what_can(api: httpx.Client, body: Json, said: str) -> None:
    answer = found(api, body)
    assert (answer["status"], answer["verified"]) == ("BLOCKED", False)
    assert said in answer["message"]
    assert answer["result"]["operations"]


@spec("B")
def test_a_statement_is_about_the_type_the_operation_and_every_value(api: httpx.Client) -> None:
    asked = {"type": "legal", **HOLDS["legal"], "options": {"include_attestation": True}}
    subjects = set()
    for body in (
        asked,
        {**asked, "params": {**DEADLINE, "country": "US"}},
        {**asked, "params": {**DEADLINE, "tolerance_days": 1}},
        {"type": "tax", **HOLDS["tax"], "options": {"include_attestation": True}},
    ):
        answer = found(api, body)
        assert answer["status"] == "VERIFIED", answer
        told = api.post("/attestation/verify", json={"jwt": answer["attestation"]}).json()
        assert (told["valid"], told["claims"]["qwed"]["result"]["engine"]) == (True, body["type"])
        subjects.add(told["claims"]["sub"])
    assert len(subjects) == 4
    inside = {"type": "legal", "params": {**DEADLINE, "operation": "deadline"}, "options": asked["options"]}
    again = api.post("/attestation/verify", json={"jwt": found(api, inside)["attestation"]}).json()
    assert again["claims"]["sub"] in subjects


SECRET = "sk_live_" + "51H8x" * 5


@spec("B")
def test_a_secret_among_the_values_is_neither_said_back_nor_signed(api: httpx.Client) -> None:
    values = {**DEADLINE, "term": f"30 days {SECRET}"}
    answer = api.post("/verify", json={"type": "legal", "operation": "deadline", "params": values})
    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert answer.json()["proof_ref"] is None
    options = {"include_attestation": True}
    refused = api.post("/verify", json={"type": "legal", "operation": "deadline", "params": values, "options": options})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "QWED-REQ-001")
    named = api.post("/verify", json={"type": "legal", "operation": SECRET, "params": {SECRET: 1}})
    assert SECRET not in named.text


@spec("B")
def test_the_same_question_has_the_same_proof_every_time(api: httpx.Client) -> None:
    first, again = (found(api, {"type": "tax", **HOLDS["tax"]}) for _ in range(2))
    assert first["proof_ref"] == again["proof_ref"] is not None


SALARIES = (DATA / "iso20022" / "pain.001.001.09-salaries.xml").read_text()
ENVELOPE = {"version": "2026-01-11", "capabilities": []}


@spec("B")
def test_a_message_and_a_checkout_find_their_pack_by_themselves(api: httpx.Client) -> None:
    message = found(api, {"query": SALARIES})
    assert (message["status"], message["engine"]) == ("VERIFIED", "finance"), message
    assert message["result"]["routed"] == {"engine": "finance", "why": "an ISO 20022 document, pain.001"}
    assert found(api, {"query": SALARIES.replace("<NbOfTxs>", "<NbOfTxs>1", 1)})["status"] == "FAILED"
    named = {"type": "finance", "operation": "payment_message", "query": SALARIES, "params": {"msg_type": "pain.001"}}
    assert found(api, named)["status"] == "VERIFIED"
    checkout = found(api, {"query": json.dumps({"ucp": ENVELOPE, **CHECKOUT})})
    assert checkout["engine"] == "ucp"
    assert checkout["result"]["operation"] == "checkout"


@spec("B")
def test_items_of_a_batch_name_their_checks(api: httpx.Client) -> None:
    items: list[Any] = [{"type": pack, **body} for table in (HOLDS, DOES_NOT) for pack, body in table.items()]
    items.append({"type": "legal", "params": {"operation": "deadline", **DEADLINE}})
    items.append({"type": "legal", "operation": "divorce"})
    job = api.post("/verify/batch", json={"items": items}).json()
    path = f"/verify/batch/{job['job_id']}"
    job = until(lambda: said if (said := api.get(path).json())["status"] not in ("pending", "processing") else None)
    statuses = [item["result"]["status"] for item in job["items"]]
    assert statuses == ["VERIFIED"] * 4 + ["FAILED"] * 4 + ["VERIFIED", "BLOCKED"]
    assert [item["type"] for item in job["items"][:4]] == [*HOLDS]


@spec("B")
def test_an_item_that_cannot_be_asked_is_named(api: httpx.Client) -> None:
    response = api.post("/verify/batch", json={"items": [{"type": "legal", "operation": 7}]})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "QWED-REQ-001")
    assert response.json()["error"]["message"].startswith("item 0: ")


@spec("2.2")
@pytest.mark.parametrize("pack", HOLDS)
def test_an_agent_asks_the_same_as_an_action(ask: AgentConversation, pack: str) -> None:
    for step, (body, decision) in enumerate(((HOLDS[pack], "APPROVED"), (DOES_NOT[pack], "DENIED")), 1):
        parameters = {"operation": body["operation"], **body["params"]}
        answer = ask({"type": f"verify_{pack}", "parameters": parameters}, step)
        assert answer["decision"] == decision, answer
        assert (answer["verification"]["engine"], answer["verification"]["risk_level"]) == (pack, "low")


@spec("2.2")
@pytest.mark.parametrize("pack", HOLDS)
def test_an_action_that_asks_nothing_is_denied_with_what_can_be_asked(ask: AgentConversation, pack: str) -> None:
    answer = ask({"type": f"verify_{pack}", "query": "is it so?"}, 1)
    assert (answer["decision"], answer["error"]["code"]) == ("DENIED", "QWED-AGENT-005")
    assert "`operation` is required" in answer["error"]["message"]
