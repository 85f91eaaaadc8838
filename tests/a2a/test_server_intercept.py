"""Messages over HTTP (DESIGN 4.14, INTERFACES 6): authentication, verdicts, and their proofs."""

import re
from typing import Any

import httpx
import pytest

from qwed.ledger.verifier import leaf_hash, public_keys, read_head, read_leaf, verify_inclusion
from qwed_a2a import EngineName, VerdictStatus, verify_attestation
from qwed_sdk import verify_attestation as verify_action
from qwed_sdk import verify_message_attestation
from tests.support.a2a_messages import HONEST, WRONG
from tests.support.a2a_senders import Json, OrganisationClient, create_organisation, error_of, outcome_of
from tests.support.server import Server

GUARD_OF = {
    "financial_transaction": "finance_guard",
    "logic_assertion": "logic_guard",
    "code_execution": "code_guard",
    "data_query": "passthrough",
    "general": "passthrough",
}
UNPROVEN = (401, "QWED-AUTH-002")


@pytest.fixture(scope="module")
def organisation(server: Server, stranger: httpx.Client) -> OrganisationClient:
    return create_organisation(stranger, server.owner_key)


@pytest.fixture(scope="module")
def agent(organisation: OrganisationClient) -> Json:
    return organisation.register_agent()


def jwks_of(organisation: OrganisationClient) -> Json:
    jwks: Json = organisation.ask("GET", "/.well-known/jwks.json", role="").json()
    return jwks


# Answers


def test_the_server_makes_the_trace_id_by_itself_another_for_each_message(organisation: OrganisationClient) -> None:
    first, second = organisation.verdict(), organisation.verdict()
    assert re.fullmatch(r"a2a_[0-9a-f]{12}", first["audit_trace_id"])
    assert first["audit_trace_id"] != second["audit_trace_id"]


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_message_of_any_type_is_forwarded_by_its_guard(organisation: OrganisationClient, kind: str) -> None:
    assert outcome_of(organisation.verdict(payload=HONEST[kind], kind=kind)) == ("forwarded", GUARD_OF[kind])


@pytest.mark.parametrize("kind", WRONG)
def test_what_a_guard_finds_wrong_is_blocked_and_still_200(organisation: OrganisationClient, kind: str) -> None:
    verdict = organisation.verdict(payload=WRONG[kind], kind=kind)
    assert outcome_of(verdict) == ("blocked", GUARD_OF[kind])
    assert verdict["reason"]


def test_a_verdict_has_exactly_the_members_that_are_documented(organisation: OrganisationClient) -> None:
    verdict = organisation.verdict()
    assert sorted(verdict) == [
        "activity_id",
        "attestation_jwt",
        "audit_trace_id",
        "details",
        "engine_used",
        "reason",
        "status",
        "verified_at",
    ]
    assert verdict["status"] in set(VerdictStatus)
    assert verdict["engine_used"] in set(EngineName)


# Authentication


def test_a_token_proves_its_own_agent_and_no_other_name(organisation: OrganisationClient, agent: Json) -> None:
    other = organisation.register_agent()
    token = agent["agent_token"]
    assert outcome_of(organisation.verdict(agent["agent_id"], token=token)) == ("forwarded", "passthrough")
    for name in (other["agent_id"], "buyer", "agent_" + "0" * 24):
        assert error_of(organisation.send(name, token=token)) == UNPROVEN


@pytest.mark.parametrize("role", ["member", "approver"])
def test_a_key_that_is_no_owners_speaks_for_nobody_who_is_registered_or_trusted(
    organisation: OrganisationClient, agent: Json, role: str
) -> None:
    organisation.ask("PUT", "/a2a/trusted", {"agent_id": "ledger"})
    assert error_of(organisation.send(agent["agent_id"], role=role)) == UNPROVEN
    assert error_of(organisation.send("ledger", role=role)) == UNPROVEN
    assert outcome_of(organisation.verdict("a passer-by", role=role)) == ("forwarded", "passthrough")


def test_an_owners_key_proves_any_name(organisation: OrganisationClient, agent: Json) -> None:
    assert outcome_of(organisation.verdict(agent["agent_id"], role="owner")) == ("forwarded", "passthrough")


def test_a_trusted_sender_bypasses_the_guards_once_it_is_proven_and_not_before(
    organisation: OrganisationClient,
) -> None:
    trusted, wrong = organisation.register_agent(), {"payload": WRONG["code_execution"], "kind": "code_execution"}
    name, token = trusted["agent_id"], trusted["agent_token"]
    assert outcome_of(organisation.verdict(name, token=token, **wrong)) == ("blocked", "code_guard")
    organisation.ask("PUT", "/a2a/trusted", {"agent_id": name})
    assert outcome_of(organisation.verdict(name, token=token, **wrong)) == ("forwarded", "bypass")
    assert outcome_of(organisation.verdict(name, role="owner", **wrong)) == ("forwarded", "bypass")
    assert error_of(organisation.send(name, role="member", **wrong)) == UNPROVEN
    # Another spelling is not trusted, but it must be proven because it could be mistaken for the trusted name.
    assert error_of(organisation.send(name.upper(), role="member", **wrong)) == UNPROVEN
    assert outcome_of(organisation.verdict(name.upper(), role="owner", **wrong)) == ("blocked", "code_guard")
    organisation.ask("DELETE", "/a2a/trusted", {"agent_id": name})
    assert outcome_of(organisation.verdict(name, token=token, **wrong)) == ("blocked", "code_guard")


def test_whoever_shows_nothing_or_something_made_up_is_told_nothing(organisation: OrganisationClient) -> None:
    for body in ({}, {"sender_agent_id": "buyer", "receiver_agent_id": "seller", "payload": {}}):
        assert error_of(organisation.ask("POST", "/a2a/intercept", body, role="")) == (401, "QWED-AUTH-001")
    made_up = {"X-API-Key": "qwed_live_" + "0" * 52}
    response = organisation.client.post("/a2a/intercept", json={}, headers=made_up)
    assert error_of(response) == UNPROVEN


def test_an_agent_of_another_organisation_is_nobody_here(
    server: Server, organisation: OrganisationClient, agent: Json
) -> None:
    elsewhere = create_organisation(organisation.client, server.owner_key)
    own = organisation.verdict(agent["agent_id"], token=agent["agent_token"])
    assert outcome_of(elsewhere.verdict(agent["agent_id"], role="member")) == ("forwarded", "passthrough")
    [newest] = organisation.ask("GET", f"/agents/{agent['agent_id']}/activity?limit=1").json()["activities"]
    assert newest["activity_id"] == own["activity_id"]
    both = {"X-API-Key": elsewhere.keys["owner"], "Authorization": f"Bearer {agent['agent_token']}"}
    body = {"sender_agent_id": agent["agent_id"], "receiver_agent_id": "seller", "payload": {}}
    response = organisation.client.post("/a2a/intercept", json=body, headers=both)
    assert error_of(response) == UNPROVEN


def test_the_header_that_names_the_agent_must_agree_with_the_body(
    organisation: OrganisationClient, agent: Json
) -> None:
    body = {"sender_agent_id": agent["agent_id"], "receiver_agent_id": "seller", "payload": {}}
    authorization = {"Authorization": f"Bearer {agent['agent_token']}"}
    for named, expected in ((agent["agent_id"], 200), ("another", 400)):
        headers = authorization | {"QWED-Agent-Id": named}
        response = organisation.client.post("/a2a/intercept", json=body, headers=headers)
        assert response.status_code == expected, response.text


# Errors before a verdict


@pytest.mark.parametrize(
    ("changed", "code", "named"),
    [
        ({"payload": "text"}, "QWED-REQ-001", "`payload`"),
        ({"payload_type": "GENERAL"}, "QWED-REQ-001", "`payload_type`"),
        ({"sender_agent_id": "a\u0007b"}, "QWED-REQ-001", "`sender_agent_id`"),
        ({"receiver_agent_id": "x" * 257}, "QWED-REQ-001", "`receiver_agent_id`"),
        ({"timestamp": "yesterday"}, "QWED-REQ-001", "`timestamp`"),
        ({"trace_id": "mine"}, "QWED-REQ-001", "`trace_id`"),
        ({"metadata": {"step_number": 1}}, "QWED-AGENT-CTX-001", "conversation_id"),
        ({"metadata": {"conversation_id": "c", "step_number": 0}}, "QWED-AGENT-CTX-002", "step_number"),
    ],
)
def test_a_message_that_is_none_is_400_and_names_the_field(
    organisation: OrganisationClient, changed: dict[str, Any], code: str, named: str
) -> None:
    body = {"sender_agent_id": "buyer", "receiver_agent_id": "seller", "payload": {"text": "tulip"}, **changed}
    response = organisation.ask("POST", "/a2a/intercept", body)
    assert error_of(response) == (400, code)
    assert named in response.json()["error"]["message"]
    assert "tulip" not in response.text


def test_a_payload_that_is_no_json_is_400(organisation: OrganisationClient) -> None:
    text = '{"sender_agent_id": "a", "receiver_agent_id": "b", "payload": {"x": NaN}}'
    headers = {"X-API-Key": organisation.keys["owner"]}
    response = organisation.client.post("/a2a/intercept", content=text, headers=headers)
    assert error_of(response) == (400, "QWED-AGENT-STATE-004")


def test_a_payload_of_exactly_the_limit_is_taken_and_a_byte_more_is_413(organisation: OrganisationClient) -> None:
    room = 1_048_576 - len('{"text":""}')
    assert outcome_of(organisation.verdict(payload={"text": "x" * room})) == ("forwarded", "passthrough")
    larger = organisation.send(payload={"text": "x" * (room + 1)})
    assert error_of(larger) == (413, "QWED-REQ-002")
    assert "payload is larger than 1048576 bytes" in larger.json()["error"]["message"]
    envelope = organisation.send(payload={"text": "x" * (room + 70_000)})
    assert error_of(envelope) == (413, "QWED-REQ-002")


# Registered agents


def test_a_suspended_agent_sends_nothing(organisation: OrganisationClient) -> None:
    stopped = organisation.register_agent()
    organisation.ask("POST", f"/agents/{stopped['agent_id']}/suspend", {"reason": "for the test"})
    verdict = organisation.verdict(stopped["agent_id"], token=stopped["agent_token"])
    assert outcome_of(verdict) == ("blocked", "trust_boundary")
    assert verdict["details"]["code"] == "QWED-AGENT-003"


def test_a_message_is_one_request_of_its_senders_budget(organisation: OrganisationClient) -> None:
    poor = organisation.register_agent(budget={"max_requests_per_hour": 2})
    sent = [organisation.verdict(poor["agent_id"], token=poor["agent_token"]) for _ in range(3)]
    assert [verdict["status"] for verdict in sent] == ["forwarded", "forwarded", "blocked"]
    assert sent[2]["details"]["code"] == "QWED-AGENT-BUDGET-002"
    budget = organisation.ask("GET", f"/agents/{poor['agent_id']}/budget").json()
    assert (budget["requests"]["current_hour"], budget["cost"]["current_daily_usd"]) == (2, 0)


def test_a_step_that_was_taken_is_not_taken_again(organisation: OrganisationClient) -> None:
    sender = organisation.register_agent()
    metadata = {"conversation_id": "a sale", "step_number": 1}
    sent = [organisation.verdict(sender["agent_id"], token=sender["agent_token"], metadata=metadata) for _ in range(2)]
    assert [verdict["details"].get("code") for verdict in sent] == [None, "QWED-AGENT-LOOP-002"]


def test_two_agents_that_only_repeat_themselves_to_each_other_are_stopped(organisation: OrganisationClient) -> None:
    ping, pong = organisation.register_agent(), organisation.register_agent()
    codes = []
    for turn in range(8):
        sender, receiver = (ping, pong) if turn % 2 == 0 else (pong, ping)
        verdict = organisation.verdict(
            sender["agent_id"],
            receiver["agent_id"],
            {"text": "after you" if turn % 2 else "no, after you"},
            token=sender["agent_token"],
            metadata={"conversation_id": "at the door"},
        )
        codes.append(verdict["details"].get("code"))
    assert "QWED-AGENT-LOOP-004" in codes
    assert codes[:4] == [None] * 4


# Proofs


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("kind", ["general", "code_execution"])
def test_a_verdict_stands_in_the_log_and_both_are_proven_without_the_server(
    organisation: OrganisationClient, registered: bool, kind: str
) -> None:
    sender = organisation.register_agent()["agent_id"] if registered else "a passer-by"
    payload = WRONG.get(kind, HONEST[kind])
    verdict = organisation.verdict(sender, payload=payload, kind=kind)
    jwks = jwks_of(organisation)
    valid, claims = verify_attestation(verdict["attestation_jwt"], jwks)
    assert valid
    assert (claims["jti"], claims["qwed_a2a"]["verdict"]) == (verdict["audit_trace_id"], verdict["status"])
    assert claims["qwed_a2a"]["activity_id"] == verdict["activity_id"]
    proof = organisation.ask("GET", f"/audit/proof/inclusion?activity_id={verdict['activity_id']}").json()
    entry = organisation.ask("GET", f"/audit/entries?from_index={proof['index']}&limit=1").json()["entries"][0]
    leaf = read_leaf(entry["leaf"])
    assert leaf["about"] == verdict["audit_trace_id"]
    head = read_head(proof["head"], public_keys(jwks))
    path = [bytes.fromhex(node) for node in proof["path"]]
    assert verify_inclusion(leaf_hash(entry["leaf"].encode()), proof["index"], proof["size"], path, head.root)
    if registered:
        assert leaf["decision"] == ("APPROVED" if verdict["status"] == "forwarded" else "DENIED")


def test_the_light_client_checks_it_too_and_takes_it_for_no_permission(organisation: OrganisationClient) -> None:
    verdict = organisation.verdict(payload=WRONG["code_execution"], kind="code_execution")
    jwks, token = jwks_of(organisation), verdict["attestation_jwt"]
    valid, claims = verify_message_attestation(token, jwks=jwks)
    assert (valid, claims["qwed_a2a"]["verdict"]) == (True, "blocked")
    valid, why = verify_action(token, jwks=jwks)
    assert (valid, why["error"]["code"]) == (False, "QWED-ATT-001")
    assert "verify_message_attestation" in why["error"]["message"]


def test_the_server_holds_the_attestation_of_a_message_against_its_log(organisation: OrganisationClient) -> None:
    for verdict in (
        organisation.verdict(),
        organisation.verdict(payload=WRONG["code_execution"], kind="code_execution"),
    ):
        checked = organisation.ask("POST", "/attestation/verify", {"jwt": verdict["attestation_jwt"]}, role="").json()
        assert (checked["valid"], checked["error"]) == (True, None)
        assert checked["claims"]["qwed_a2a"]["verdict"] == verdict["status"]


# Metrics


def test_the_numbers_are_those_of_the_callers_organisation(server: Server, stranger: httpx.Client) -> None:
    ours, theirs = (create_organisation(stranger, server.owner_key) for _ in range(2))
    ours.verdict()
    ours.verdict(payload=WRONG["code_execution"], kind="code_execution")
    ours.send(payload="no message at all")
    counted = ours.ask("GET", "/a2a/metrics", role="member").json()
    assert counted.pop("average_latency_ms") > 0
    assert counted == {
        "total_intercepts": 2,
        "total_forwarded": 1,
        "total_blocked": 1,
        "total_errors": 0,
        "block_rate": 0.5,
        "by_engine": {"code_guard": 1, "passthrough": 1},
    }
    assert theirs.ask("GET", "/a2a/metrics").json()["total_intercepts"] == 0
    exposition = stranger.get("/metrics", headers={"X-API-Key": server.owner_key}).text
    assert re.search(r'qwed_a2a_messages_total\{engine="code_guard",verdict="blocked"\} [1-9]', exposition)


def test_health_needs_no_key_and_names_the_guards(organisation: OrganisationClient) -> None:
    health = organisation.ask("GET", "/a2a/health", role="").json()
    assert (health["status"], health["guards"]) == ("ok", ["finance_guard", "logic_guard", "code_guard"])
