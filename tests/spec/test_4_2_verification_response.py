"""Spec 4.2, Verification Response; the attestation is checked by another implementation."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import KeySet

from tests.conftest import AgentConversation
from tests.spec.requests import DELETE, EMAIL, FALSE, SUM, WRITE, WRONG_SUM, Json, hash_of, said
from tests.spec.sections import spec

ATTESTED = {"require_attestation": True}


@pytest.fixture(scope="module")
def keys(stranger: httpx.Client) -> KeySet:
    return KeySet.import_key_set(stranger.get("/.well-known/jwks.json").json())


def claims_of(token: str, keys: KeySet) -> tuple[Json, Json]:
    """Return header and claims of a token after checking its signature."""
    read = jwt.decode(token, keys, algorithms=["ES256"])
    return read.header, read.claims


@spec("4.2")
def test_an_approval_has_these_parts(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 100, "max_requests_per_hour": 500})
    answer = ask(SUM, 1, options=ATTESTED)
    assert set(answer) == {
        "decision",
        "action_id",
        "verification",
        "verified_query",
        "attestation",
        "budget_remaining",
    }
    assert answer["action_id"].startswith("act_")
    assert answer["verified_query"] == "2+2"
    assert answer["budget_remaining"] == {"daily_cost_usd": 99.99, "hourly_requests": 499}
    assert set(answer["verification"]) >= {
        "status",
        "engine",
        "risk_level",
        "checks_passed",
        "checks_failed",
        "effects",
    }
    assert answer["verification"]["checks_failed"] == []


@spec("4.2")
def test_status_engine_and_risk_are_words_of_the_documents(ask: AgentConversation) -> None:
    found = ask(SUM, 1)["verification"]
    assert (found["status"], found["engine"], found["risk_level"]) == ("VERIFIED", "math", "low")
    assert {"agent_active", "within_budget", "trust_level_sufficient"} <= set(found["checks_passed"])


@spec("4.2")
def test_no_limit_is_shown_as_null(ask: AgentConversation) -> None:
    assert ask(SUM, 1)["budget_remaining"] == {"daily_cost_usd": None, "hourly_requests": None}


@spec("4.2")
def test_a_proven_read_names_the_three_checks_of_the_example(ask: AgentConversation) -> None:
    answer = ask({"type": "execute_sql", "query": "SELECT id, name FROM customers WHERE status = 'active'"}, 1)
    found = answer["verification"]
    assert said(answer) == ("APPROVED", None)
    assert (found["status"], found["engine"], found["risk_level"]) == ("VERIFIED", "sql", "low")
    assert {"no_destructive_operations", "no_sensitive_columns", "schema_valid"} <= set(found["checks_passed"])


@spec("4.2")
def test_a_denial_says_which_check_refused_and_whether_trying_again_can_help(ask: AgentConversation) -> None:
    answer = ask(FALSE, 1)
    error = answer["error"]
    assert error["check"] == "claim_holds"
    assert error["final"] is True
    assert answer["verification"]["checks_failed"] == ["claim_holds"]
    assert "verified_query" not in answer
    assert "attestation" not in answer


@spec("4.2")
def test_a_refusal_by_trust_names_the_failed_check_and_what_to_do(ask: AgentConversation) -> None:
    answer = ask(DELETE, 1)
    assert answer["error"]["check"] == "trust_level_sufficient"
    assert "trust_level_sufficient" in answer["verification"]["checks_failed"]
    assert "trust_level_sufficient" not in answer["verification"]["checks_passed"]
    assert answer["error"]["suggestion"]


@spec("4.2")
def test_an_answer_given_before_judgement_has_no_verification(ask: AgentConversation) -> None:
    ask(SUM, 1)
    replay = ask(SUM, 1)
    assert "verification" not in replay
    assert "attestation" not in replay


@spec("4.2")
def test_the_effects_say_what_the_action_would_do(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    assert ask(WRITE, 1)["verification"]["effects"] == [{"effect": "WRITE", "target": "reports/today.txt"}]
    assert ask(DELETE, 2)["verification"]["effects"] == [{"effect": "DELETE", "target": "reports/today.txt"}]
    assert [each["effect"] for each in ask(EMAIL, 3)["verification"]["effects"]] == ["COMMUNICATE"]


@spec("4.2")
def test_verified_query_is_there_where_the_action_has_a_query_and_may_be_executed(
    asking: Callable[..., AgentConversation],
) -> None:
    ask = asking(type="trusted")
    assert ask(SUM, 1)["verified_query"] == "2+2"
    assert ask(WRONG_SUM, 2)["verified_query"] == "2+2 = 4"
    assert "verified_query" not in ask(WRITE, 3)
    assert "verified_query" not in asking(trust_level=0)(SUM, 1)


@spec("4.2")
def test_the_attestation_is_signed_es256_by_a_key_of_the_jwks(keys: KeySet, ask: AgentConversation) -> None:
    header, _claims = claims_of(ask(SUM, 1, options=ATTESTED)["attestation"], keys)
    (key,) = keys.keys
    assert header == {"alg": "ES256", "kid": key.thumbprint(), "typ": "qwed-attestation+jwt"}


@spec("4.2")
def test_the_attestation_claims_what_was_decided(keys: KeySet, asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    answer = ask(WRITE, 1)
    _header, claims = claims_of(answer["attestation"], keys)
    assert set(claims) == {"iss", "sub", "iat", "exp", "jti", "qwed"}
    assert claims["iss"].startswith("did:qwed:node:")
    assert claims["sub"] == f"sha256:{hash_of(WRITE)}"
    assert claims["exp"] - claims["iat"] == 86_400
    assert claims["jti"].startswith("att_")
    said_there = claims["qwed"]
    assert said_there["version"] == "1.0"
    assert said_there["result"] == {"status": "VERIFIED", "verified": True, "engine": "path", "confidence": 1}
    assert (said_there["decision"], said_there["risk_level"]) == ("APPROVED", "high")
    assert (said_there["agent_id"], said_there["activity_id"]) == (ask.agent_id, answer["action_id"])
    assert len(said_there["policy_hash"]) == 64
    assert said_there["log"]["index"] == ask.activity()["activities"][0]["log_index"]


@spec("4.2")
def test_the_attestation_names_its_place_in_the_log(keys: KeySet, ask: AgentConversation) -> None:
    _header, claims = claims_of(ask(SUM, 1, options=ATTESTED)["attestation"], keys)
    place = claims["qwed"]["log"]
    assert set(place) == {"index", "size", "root"}
    assert 0 <= place["index"] < place["size"]
    assert re.fullmatch("[0-9a-f]{64}", place["root"])


@spec("4.2")
def test_the_subject_of_a_correction_is_what_may_be_executed(keys: KeySet, ask: AgentConversation) -> None:
    answer = ask(WRONG_SUM, 1, options=ATTESTED)
    _header, claims = claims_of(answer["attestation"], keys)
    assert claims["sub"] == f"sha256:{hash_of(answer['corrected'])}"
    assert claims["qwed"]["decision"] == "CORRECTED"


@spec("4.2")
def test_the_cost_is_no_part_of_what_an_attestation_names(keys: KeySet, ask: AgentConversation) -> None:
    plain = claims_of(ask(SUM, 1, options=ATTESTED)["attestation"], keys)[1]
    priced = claims_of(ask({**SUM, "cost": {"usd": 0.5}}, 2, options=ATTESTED)["attestation"], keys)[1]
    assert plain["sub"] == priced["sub"]
    assert plain["jti"] != priced["jti"]


@spec("4.2")
def test_another_policy_is_another_policy_hash(keys: KeySet, asking: Callable[..., AgentConversation]) -> None:
    def policy_of(**fields: Any) -> str:
        answer = asking(**fields)(SUM, 1, options=ATTESTED)
        policy: str = claims_of(answer["attestation"], keys)[1]["qwed"]["policy_hash"]
        return policy

    assert policy_of() == policy_of()
    assert len({policy_of(), policy_of(trust_level=2), policy_of(permissions={"allowed_engines": ["math"]})}) == 3


@spec("4.2", "5.3")
def test_a_tool_that_is_described_anew_is_another_policy_from_then_on(
    keys: KeySet, api: httpx.Client, asking: Callable[..., AgentConversation]
) -> None:
    ask = asking(type="trusted", permissions={"allowed_tools": ["press_button"]})
    call = {"type": "tool_call", "tool": "press_button", "parameters": {"which": 1}}

    def policy_under(step: int, **row: Any) -> str:
        assert api.put("/tools/press_button", json={"risk_level": "high", **row}).status_code == 200
        answer = ask(call, step, conversation=f"button {step}")
        policy: str = claims_of(answer["attestation"], keys)[1]["qwed"]["policy_hash"]
        return policy

    rows: list[Json] = [{}, {"sandbox_required": True}, {}]
    first, second, third = [policy_under(step, **row) for step, row in enumerate(rows, 1)]
    assert first == third != second


@spec("4.2")
def test_a_token_with_one_letter_changed_is_not_ours(keys: KeySet, ask: AgentConversation) -> None:
    token = ask(SUM, 1, options=ATTESTED)["attestation"]
    head, body, signature = token.split(".")
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    with pytest.raises(BadSignatureError):
        jwt.decode(f"{head}.{body}.{flipped}", keys, algorithms=["ES256"])


@spec("4.2")
def test_nothing_that_may_not_be_executed_is_attested(asking: Callable[..., AgentConversation]) -> None:
    for level, action in ((0, SUM), (1, EMAIL), (1, DELETE), (3, FALSE)):
        answer = asking(trust_level=level)(action, 1, options=ATTESTED)
        assert answer["decision"] in ("PENDING", "DENIED")
        assert "attestation" not in answer
