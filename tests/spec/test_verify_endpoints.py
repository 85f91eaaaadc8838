"""INTERFACES 2: the engine endpoints over HTTP, each with true, false and malformed claims."""

import base64
from typing import Any

import httpx
import pytest

from tests.spec.conftest import SpecServer
from tests.spec.sections import spec

TRUE: dict[str, dict[str, Any]] = {
    "math": {"expression": "0.1 + 0.2 = 0.3"},
    "logic": {"query": "(AND (GT x 1) (LT x 3))"},
    "code": {"code": "print(sum(range(10)))"},
    "sql": {"query": "SELECT name FROM customers WHERE id = 7"},
    "fact": {"claim": "The plant opened in 1998", "context": "The plant opened in 1998. It closed in 2004."},
    "stats": {"query": "rows = 2", "content_base64": base64.b64encode(b"a,b\n1,2\n3,4\n").decode()},
    "consensus": {"query": "2+2 = 4", "verification_mode": "high"},
}
FALSE: dict[str, dict[str, Any]] = {
    "math": {"expression": "2+2 = 5"},
    "logic": {"premises": ["(IMPLIES p q)", "q"], "conclusion": "p"},
    "code": {"code": "import os\nos.system('id')"},
    "sql": {"query": "SELECT * FROM users WHERE name = '' OR 1=1 --'"},
    "fact": {"claim": "The plant opened in 1999", "context": "The plant opened in 1998. It closed in 2004."},
    "stats": {"query": "rows = 3", "content_base64": base64.b64encode(b"a,b\n1,2\n3,4\n").decode()},
    "consensus": {"query": "2+2 = 5"},
}
MEMBERS = {
    "status", "verified", "is_valid", "engine", "result", "message", "checks", "attestation", "proof_ref", "latency_ms"
}  # fmt: skip


def found(api: httpx.Client, engine: str, body: dict[str, Any]) -> dict[str, Any]:
    response = api.post(f"/verify/{engine}", json=body)
    assert response.status_code == 200, response.text
    read: dict[str, Any] = response.json()
    assert set(read) == MEMBERS
    return read


@spec("B")
@pytest.mark.parametrize("engine", TRUE)
def test_what_holds_is_verified(api: httpx.Client, engine: str) -> None:
    answer = found(api, engine, TRUE[engine])
    assert (answer["status"], answer["verified"], answer["is_valid"]) == ("VERIFIED", True, True), answer
    assert answer["engine"] == engine
    assert answer["checks"]
    assert all(check["passed"] for check in answer["checks"])
    assert answer["proof_ref"].startswith("sha256:")
    assert len(answer["proof_ref"]) == 71


@spec("B")
@pytest.mark.parametrize("engine", FALSE)
def test_what_does_not_hold_is_not(api: httpx.Client, engine: str) -> None:
    answer = found(api, engine, FALSE[engine])
    assert answer["status"] in ("FAILED", "BLOCKED"), answer
    assert (answer["verified"], answer["is_valid"]) == (False, False)
    assert answer["message"]
    assert not all(check["passed"] for check in answer["checks"])


@spec("B")
def test_a_bare_expression_is_computed_and_claims_nothing(api: httpx.Client) -> None:
    answer = found(api, "math", {"expression": "2^10"})
    assert (answer["status"], answer["is_valid"], answer["result"]["value"]) == ("SIMPLIFIED", False, "1024")


@spec("B")
def test_a_false_sum_comes_with_the_right_one(api: httpx.Client) -> None:
    result = found(api, "math", FALSE["math"])["result"]
    assert (result["expected"], result["repair"]) == ("4", {"query": "2+2 = 4"})


@spec("B")
def test_the_same_question_has_the_same_proof_and_another_one_another(api: httpx.Client) -> None:
    first, again = (found(api, "math", {"expression": "3*4 = 12"}) for _ in range(2))
    other = found(api, "math", {"expression": "3*5 = 15"})
    assert first["proof_ref"] == again["proof_ref"] != other["proof_ref"]


@spec("B")
@pytest.mark.parametrize("code", ["open('a').read()", "import socket\nsocket.create_connection(('h', 1))"])
def test_code_that_stands_alone_must_be_pure_computation(api: httpx.Client, code: str) -> None:
    assert found(api, "code", {"code": code})["status"] == "BLOCKED"


@spec("B")
@pytest.mark.parametrize("query", ["DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1)", "DROP TABLE t"])
def test_a_query_that_stands_alone_must_only_read_unless_it_is_said_otherwise(api: httpx.Client, query: str) -> None:
    assert found(api, "sql", {"query": query})["status"] == "BLOCKED"
    assert found(api, "sql", {"query": query, "allow_mutation": True})["status"] == "VERIFIED"


@spec("B")
def test_parameters_may_stand_beside_the_input_or_in_params(api: httpx.Client) -> None:
    ddl = "CREATE TABLE orders (id INT, total INT)"
    query = "SELECT nothing FROM orders"
    beside = found(api, "sql", {"query": query, "schema_ddl": ddl})
    inside = found(api, "sql", {"query": query, "params": {"schema_ddl": ddl}})
    assert beside["status"] == inside["status"] != "VERIFIED"
    assert beside["proof_ref"] == inside["proof_ref"]


@spec("B")
@pytest.mark.parametrize("engine", ["stats", "image"])
def test_a_file_may_come_in_a_form(api: httpx.Client, engine: str) -> None:
    claim = {"stats": ("query", "rows = 2"), "image": ("claim", "width = 1")}[engine]
    file = {
        "stats": b"a\n1\n2\n",
        "image": base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
    }[engine]
    answer = api.post(f"/verify/{engine}", data=dict([claim]), files={"file": ("any.name", file)})
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "VERIFIED", answer.text
    encoded = {claim[0]: claim[1], "content_base64": base64.b64encode(file).decode()}
    assert answer.json()["proof_ref"] == found(api, engine, encoded)["proof_ref"]


@spec("B")
def test_a_file_of_ten_mebibytes_is_taken_and_a_larger_one_is_not(api: httpx.Client) -> None:
    file = b"a\n" + b"1\n" * (5 << 20)
    most = 10 << 20
    taken = api.post("/verify/stats", data={"query": "rows = 1"}, files={"file": ("a.csv", file[:most])})
    assert taken.status_code == 200, taken.text
    refused = api.post("/verify/stats", data={"query": "rows = 1"}, files={"file": ("a.csv", file[: most + 1])})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "QWED-REQ-002")


BAD: list[tuple[str, Any, int, str]] = [
    ("math", {}, 400, "QWED-REQ-004"),
    ("math", [], 400, "QWED-REQ-001"),
    ("math", {"expression": 4}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "query": "1"}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "surprise": 1}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "params": {"surprise": 1}}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "params": []}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "tolerance": 1, "params": {"tolerance": 1}}, 400, "QWED-REQ-001"),
    ("math", {"expression": "1", "options": {"timeout_ms": 999}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": {"timeout_ms": 60_001}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": {"timeout_ms": True}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": {"timeout_ms": "5000"}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": {"include_attestation": 1}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": {"hurry": True}}, 400, "QWED-REQ-005"),
    ("math", {"expression": "1", "options": []}, 400, "QWED-REQ-005"),
    ("sql", {"query": "SELECT 1", "allow_mutation": "yes"}, 400, "QWED-REQ-001"),
    ("sql", {"query": "SELECT 1", "params": {"allow_mutation": 1}}, 400, "QWED-REQ-001"),
    ("logic", {"premises": ["p"]}, 400, "QWED-REQ-004"),
    ("fact", {"claim": "so"}, 400, "QWED-REQ-004"),
    ("stats", {"query": "rows = 1"}, 400, "QWED-REQ-004"),
    ("image", {"claim": "width = 1"}, 400, "QWED-REQ-004"),
]


@spec("B")
@pytest.mark.parametrize(("engine", "body", "status", "code"), BAD, ids=lambda value: ascii(value)[:40])
def test_what_is_no_question_is_refused_by_name(
    api: httpx.Client, engine: str, body: Any, status: int, code: str
) -> None:
    response = api.post(f"/verify/{engine}", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


@spec("B")
def test_a_statement_is_signed_and_logged_where_it_is_asked_for(api: httpx.Client) -> None:
    asked = {"expression": "7*6 = 42", "options": {"include_attestation": True, "timeout_ms": 60_000}}
    answer = found(api, "math", asked)
    _, claims, _ = (part + "=" * (-len(part) % 4) for part in answer["attestation"].split("."))
    assert b'"status":"VERIFIED"' in base64.urlsafe_b64decode(claims)
    newest = api.get("/changes?limit=1").json()["changes"][0]
    assert newest["event"] == "claim_attested"
    assert newest["attestation_id"].encode() in base64.urlsafe_b64decode(claims)


@spec("B")
def test_nothing_is_signed_about_a_secret(api: httpx.Client) -> None:
    secret = "ghp_" + "x9Y8z7W6v5U4t3S2r1Q0" * 2
    asked = {"query": f"SELECT '{secret}'", "options": {"include_attestation": True}}
    response = api.post("/verify/sql", json=asked)
    assert response.status_code == 400
    assert secret not in response.text


@spec("B")
@pytest.mark.parametrize("path", ["/verify", "/verify/math", "/verify/batch"])
def test_a_token_is_for_its_own_affairs_and_a_stranger_for_none(spec_server: SpecServer, path: str) -> None:
    token = spec_server.suspended["agent_token"]
    with spec_server.client(token=token) as agent, spec_server.client() as nobody:
        assert agent.post(path, json={}).json()["error"]["code"] == "QWED-AUTH-003"
        assert nobody.post(path, json={}).json()["error"]["code"] == "QWED-AUTH-001"


@spec("B")
def test_any_input_finds_its_engine_and_says_why(api: httpx.Client) -> None:
    answer = api.post("/verify", json={"query": "2+2 = 4"}).json()
    assert (answer["status"], answer["engine"]) == ("VERIFIED", "math")
    assert answer["result"]["routed"]["engine"] == "math"
    assert answer["result"]["routed"]["why"]


@spec("B")
def test_a_parameter_may_say_which_engine_is_meant(api: httpx.Client) -> None:
    asked = {"query": "The plant opened in 1998", "params": {"context": "The plant opened in 1998."}}
    answer = api.post("/verify", json=asked).json()
    assert (answer["engine"], answer["status"]) == ("fact", "VERIFIED"), answer


@spec("B")
def test_prose_is_unknown_and_says_what_to_do(api: httpx.Client) -> None:
    answer = api.post("/verify", json={"query": "is it going to rain?"}).json()
    assert (answer["status"], answer["verified"]) == ("UNKNOWN", False)
    assert "QWED_LLM_BASE_URL" in answer["message"]
    assert "/verify/math" in answer["message"]


@spec("B")
def test_a_secret_in_a_question_is_not_said_back(api: httpx.Client) -> None:
    secret = "AKIA" + "Q3EG7RKD4L2MX5TB"
    answer = api.post("/verify/math", json={"expression": f"{secret} = 1"})
    assert secret not in answer.json()["message"]


@spec("B")
def test_what_was_found_tells_no_secret_either(api: httpx.Client) -> None:
    secret = "ghp_" + "m1N2o3P4q5R6s7T8u9V0" * 2
    answers = (
        api.post("/verify/code", json={"code": f"open('/tmp/{secret}')"}),
        api.post("/verify/logic", json={"query": f"(EQ {secret} 1)"}),
        api.post("/verify/fact", json={"claim": "It is old", "context": f"The token {secret} is old."}),
    )
    for answer in answers:
        assert answer.status_code == 200
        assert secret not in answer.text


@spec("B")
def test_nothing_is_signed_about_a_secret_beside_the_question(api: httpx.Client) -> None:
    secret = "ghp_" + "b9Y8z7W6v5U4t3S2r1Q0" * 2
    for parameters in ({"context": f"The token is {secret}."}, {"params": {"context": f"password = '{secret}'"}}):
        asked = {"claim": "The plant opened in 1998", **parameters, "options": {"include_attestation": True}}
        response = api.post("/verify/fact", json=asked)
        assert response.status_code == 400
        assert secret not in response.text


@spec("B")
def test_a_claim_about_a_file_is_signed(api: httpx.Client) -> None:
    asked = {**TRUE["stats"], "options": {"include_attestation": True}}
    assert found(api, "stats", asked)["attestation"]


@spec("B")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": "1 = 1", "content_base64": "YQ=="}, "QWED-REQ-001"),
        ({"query": "rows = 2", "params": {"content_base64": "YQ=="}}, "QWED-REQ-001"),
        ({"query": "1 = 1", "language": "python", "tolerance": 1}, "QWED-REQ-001"),
        ({"query": "is it going to rain?", "language": "python", "tolerance": 1}, "QWED-REQ-001"),
        ({"query": "rows = 2", "format": "csv"}, "QWED-REQ-004"),
    ],
)
def test_a_parameter_that_nobody_would_read_is_refused(api: httpx.Client, body: dict[str, Any], code: str) -> None:
    response = api.post("/verify", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code), response.text


@spec("B")
def test_methods_that_agree_again_prove_the_same(api: httpx.Client, spec_server: SpecServer) -> None:
    asked = {"query": "sqrt(2)*sqrt(3) = sqrt(6)", "verification_mode": "maximum"}
    with spec_server.client("foreign") as elsewhere:
        assert found(api, "consensus", asked)["proof_ref"] == found(elsewhere, "consensus", asked)["proof_ref"]


@spec("B")
@pytest.mark.parametrize("path", ["/verify/stats", "/verify/image"])
def test_nothing_but_a_file_may_be_large(api: httpx.Client, path: str) -> None:
    claim = {"/verify/stats": "query", "/verify/image": "claim"}[path]
    response = api.post(path, json={claim: "\n," * (1 << 20), "content_base64": "YQ=="})
    assert (response.status_code, response.json()["error"]["code"]) == (413, "QWED-REQ-002")
