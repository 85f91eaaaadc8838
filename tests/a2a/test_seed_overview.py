"""Overview and verification pipeline (seed 002): a message from its schema to its verdict."""

import asyncio
import hashlib
import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from qwed.engines.verdict_cache import VerdictCache
from qwed.ledger.keyring import Keyring
from qwed_a2a import (
    A2AVerificationInterceptor,
    AgentMessage,
    InterceptorConfig,
    PayloadType,
    TrustBoundary,
    verify_attestation,
)
from qwed_a2a.attestation import ephemeral_keyring
from tests.support.a2a_messages import AT, HONEST, TRACE, WRONG, message, outcome_of, verdict_on
from tests.support.fault_injection import RecordingProxy
from tests.support.manual_clock import ManualClock
from tests.support.shared_engine_workers import shared_verdicts

KEYS = ephemeral_keyring()
ENGINES = shared_verdicts()


def interceptor(
    boundary: TrustBoundary | None = None, signer: Keyring | None = KEYS, engines: VerdictCache = ENGINES, **config: Any
) -> A2AVerificationInterceptor:
    return A2AVerificationInterceptor(InterceptorConfig(**config), boundary, signer, engines=engines)


# Overview


@pytest.mark.parametrize("kind", HONEST)
def test_every_message_gets_a_signed_verdict_before_it_is_sent_on(kind: str) -> None:
    subject = interceptor()
    verdict = verdict_on(subject, message(kind=kind))
    assert (verdict.status, verdict.forwarded, verdict["audit_trace_id"]) == ("forwarded", True, TRACE)
    valid, claims = verify_attestation(verdict.attestation_jwt or "", subject.jwks(), now=AT.timestamp())
    assert (valid, claims["qwed_a2a"]["engine"]) == (True, verdict.engine_used)


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_refused_says_why_and_is_signed_too(kind: str) -> None:
    subject = interceptor()
    verdict = verdict_on(subject, message(WRONG[kind], kind))
    assert (verdict.status, verdict.forwarded) == ("blocked", False)
    assert verdict.reason
    valid, claims = verify_attestation(verdict.attestation_jwt or "", subject.jwks(), now=AT.timestamp())
    assert (valid, claims["qwed_a2a"]["verdict"]) == (True, "blocked")


def test_the_trace_id_is_required() -> None:
    assert (
        inspect.signature(A2AVerificationInterceptor.intercept).parameters["trace_id"].default
        is inspect.Parameter.empty
    )
    with pytest.raises(TypeError, match="trace_id"):
        asyncio.run(interceptor().intercept(message()))  # type: ignore[call-arg]


@pytest.mark.parametrize("trace_id", ["", "x" * 257, "a\nb", "a\x7f", "\ud800", None, 7, b"trace"])
def test_a_trace_id_that_is_none_is_refused_before_anything_happens(trace_id: Any) -> None:
    subject = interceptor()
    with pytest.raises(ValueError, match=r"^`trace_id` must be a text of 1 to 256 characters"):
        verdict_on(subject, message(), trace_id)
    assert subject.metrics.snapshot()["total_intercepts"] == 0


@pytest.mark.parametrize("kind", HONEST)
def test_for_a_trace_id_the_verdict_and_its_attestation_are_the_same_every_time(kind: str) -> None:
    for sent in [message(kind=kind), *([message(WRONG[kind], kind)] if kind in WRONG else [])]:
        first, again = verdict_on(interceptor(), sent), verdict_on(interceptor(), sent)
        assert first == again
        assert first.to_dict() == again.to_dict()
        assert first.attestation_jwt == again.attestation_jwt
        assert verdict_on(interceptor(), sent, "trace-2").attestation_jwt != first.attestation_jwt


def test_the_order_of_members_makes_no_difference() -> None:
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert verdict_on(interceptor(), message(one)) == verdict_on(interceptor(), message(other))


def test_an_attestation_names_the_payload_the_agents_and_the_trace_id() -> None:
    verdict = verdict_on(interceptor(), message({"text": "hi"}))
    claims = verify_attestation(verdict.attestation_jwt or "", interceptor().jwks(), now=AT.timestamp())[1]
    assert claims["sub"] == "sha256:" + hashlib.sha256(b'{"text":"hi"}').hexdigest()
    assert (claims["jti"], claims["iat"], claims["exp"]) == (TRACE, AT.timestamp(), AT.timestamp() + 86_400)
    assert (claims["qwed_a2a"]["sender"], claims["qwed_a2a"]["receiver"]) == ("buyer", "seller")


def test_with_a_clock_its_time_is_the_verdicts() -> None:
    hand = ManualClock()
    verdict = verdict_on(A2AVerificationInterceptor(signer=KEYS, clock=hand.clock()))
    assert verdict.verified_at == datetime.fromtimestamp(hand.now, UTC)
    assert verdict_on(A2AVerificationInterceptor(signer=KEYS)).verified_at == AT


def test_without_a_signer_the_process_has_a_key_of_its_own() -> None:
    one, other = A2AVerificationInterceptor(), A2AVerificationInterceptor()
    verdict = verdict_on(one)
    assert verify_attestation(verdict.attestation_jwt or "", one.jwks(), now=AT.timestamp())[0]
    assert not verify_attestation(verdict.attestation_jwt or "", other.jwks(), now=AT.timestamp())[0]


# Schema Validation


@pytest.mark.parametrize("field", ["sender_agent_id", "receiver_agent_id"])
@pytest.mark.parametrize("name", ["", "x" * 257, "a\x00", "a\nb", "\x1b[31m", "a\x7f", "a\u0085", None, 7])
def test_an_agent_id_out_of_its_bounds_is_refused(field: str, name: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        message(**{field: name})


@pytest.mark.parametrize("field", ["sender_agent_id", "receiver_agent_id"])
@pytest.mark.parametrize("name", ["a", "x" * 256, "did:qwed:agent:1", "\u00e9\u4e00 \U0001f600"])
def test_an_agent_id_within_its_bounds_is_taken(field: str, name: Any) -> None:
    assert getattr(message(**{field: name}), field) == name


@pytest.mark.parametrize("payload", [None, [], "text", 7])
def test_the_payload_must_be_an_object(payload: Any) -> None:
    with pytest.raises(ValidationError, match="payload"):
        AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload=payload)


def test_the_payload_is_required() -> None:
    with pytest.raises(ValidationError, match=r"payload\n  Field required"):
        AgentMessage(sender_agent_id="a", receiver_agent_id="b")  # type: ignore[call-arg]


def test_the_payload_type_is_general_where_none_is_given() -> None:
    assert message().payload_type is PayloadType.GENERAL


@pytest.mark.parametrize("kind", ["money", "GENERAL", "", None, 1])
def test_an_unknown_payload_type_is_refused(kind: Any) -> None:
    with pytest.raises(ValidationError, match="payload_type"):
        message(payload_type=kind)


def test_timestamps_are_in_utc() -> None:
    local_time = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2, minutes=30)))
    assert message(timestamp=local_time).timestamp == AT
    assert message(timestamp=local_time).timestamp.tzinfo is UTC
    assert AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload={}).timestamp.tzinfo is UTC


def test_a_timestamp_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timestamp"):
        message(timestamp=datetime(2026, 3, 1))  # noqa: DTZ001


def test_a_member_that_no_message_has_is_refused() -> None:
    with pytest.raises(ValidationError, match="proven"):
        message(proven=True)


def test_a_message_stays_as_it_was_validated() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        message().sender_agent_id = "another"


# Trust Boundary


def test_the_boundary_is_asked_before_any_engine() -> None:
    boundary, engines_spy = TrustBoundary(), RecordingProxy(ENGINES)
    boundary.block_agent("buyer")
    for kind in WRONG:
        verdict = verdict_on(interceptor(boundary, engines=engines_spy), message(WRONG[kind], kind))  # type: ignore[arg-type]
        assert outcome_of(verdict) == ("blocked", "trust_boundary")
    assert engines_spy.called == []


@pytest.mark.parametrize(("blocked", "side"), [("buyer", "sender"), ("seller", "receiver")])
def test_an_agent_of_the_global_blocklist_sends_and_receives_nothing(blocked: str, side: str) -> None:
    boundary = TrustBoundary()
    boundary.block_agent(blocked)
    verdict = verdict_on(interceptor(boundary))
    assert (outcome_of(verdict), verdict.reason) == (("blocked", "trust_boundary"), f"the {side} is blocked")


def test_a_blocked_pair_exchanges_nothing_though_each_may_talk_to_others() -> None:
    boundary = TrustBoundary()
    boundary.block_pair("buyer", "seller")
    subject = interceptor(boundary)
    assert outcome_of(verdict_on(subject)) == ("blocked", "trust_boundary")
    assert verdict_on(subject, message(receiver_agent_id="another")).forwarded
    assert verdict_on(subject, message(sender_agent_id="another")).forwarded


def test_in_strict_mode_a_pair_exchanges_messages_only_where_its_sender_is_on_the_allowlist() -> None:
    boundary = TrustBoundary(strict_mode=True)
    subject = interceptor(boundary)
    assert outcome_of(verdict_on(subject)) == ("blocked", "trust_boundary")
    boundary.trust_agent("buyer")
    assert verdict_on(subject).forwarded
    boundary.revoke_agent("buyer")
    assert not verdict_on(subject).forwarded


def test_a_pair_that_sends_too_fast_is_refused_until_there_is_a_token_again() -> None:
    hand = ManualClock()
    subject = interceptor(TrustBoundary(clock=hand.clock()))
    verdicts = [outcome_of(verdict_on(subject)) for _ in range(61)]
    assert verdicts == [("forwarded", "passthrough")] * 60 + [("blocked", "trust_boundary")]
    assert verdict_on(subject, message(receiver_agent_id="another")).forwarded
    hand.advance(1.0)
    assert [verdict_on(subject).forwarded for _ in range(2)] == [True, False]


# Trusted Agent Bypass


@pytest.mark.parametrize("kind", WRONG)
def test_a_message_of_a_trusted_agent_is_forwarded_at_once_with_a_bypass_verdict(kind: str) -> None:
    engines_spy = RecordingProxy(ENGINES)
    subject = interceptor(engines=engines_spy, trusted_agents=["buyer"])  # type: ignore[arg-type]
    assert outcome_of(verdict_on(subject, message(WRONG[kind], kind))) == ("forwarded", "bypass")
    assert engines_spy.called == []


def test_only_the_sender_is_trusted_and_only_by_its_whole_name() -> None:
    sent = message(WRONG["code_execution"], "code_execution")
    for trusted in (["seller"], ["Buyer"], ["buy"], []):
        assert outcome_of(verdict_on(interceptor(trusted_agents=trusted), sent)) == ("blocked", "code_guard")


def test_a_trusted_agent_that_is_not_proven_is_verified_like_any_other() -> None:
    subject = interceptor(trusted_agents=["buyer"])
    sent = message(WRONG["code_execution"], "code_execution")
    assert outcome_of(verdict_on(subject, sent, proven=False)) == ("blocked", "code_guard")


def test_a_trusted_agent_that_is_blocked_or_too_fast_or_too_large_is_refused() -> None:
    boundary = TrustBoundary(1)
    subject = interceptor(boundary, trusted_agents=["buyer"], max_payload_size_bytes=1024)
    assert [outcome_of(verdict_on(subject)) for _ in range(2)] == [
        ("forwarded", "bypass"),
        ("blocked", "trust_boundary"),
    ]
    boundary.block_agent("buyer")
    assert outcome_of(verdict_on(subject)) == ("blocked", "trust_boundary")
    assert outcome_of(verdict_on(subject, message({"text": "x" * 1024}))) == ("blocked", "trust_boundary")


# Passthrough


@pytest.mark.parametrize("kind", ["general", "data_query"])
@pytest.mark.parametrize("payload", [{}, WRONG["code_execution"], WRONG["financial_transaction"]])
def test_general_messages_and_queries_are_forwarded_without_verification(kind: str, payload: dict[str, Any]) -> None:
    engines_spy = RecordingProxy(ENGINES)
    verdict = verdict_on(interceptor(engines=engines_spy), message(payload, kind))  # type: ignore[arg-type]
    assert outcome_of(verdict) == ("forwarded", "passthrough")
    assert engines_spy.called == []
