"""Every message gets a verdict, the same one each time, and its attestation verifies."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from qwed.model import CanonicalJsonError, sha256_of
from qwed_a2a import A2AVerificationInterceptor, AgentMessage, InterceptorConfig, TrustBoundary, verify_attestation
from qwed_a2a.attestation import ephemeral_keyring
from qwed_a2a.digest import digest_of
from qwed_a2a.intercept_request import parse_message
from qwed_a2a.strict_schema import StrictSchemaError, parse
from tests.support.a2a_messages import AT, message
from tests.support.shared_engine_workers import shared_verdicts

KEYS = ephemeral_keyring()
JWKS = {"keys": KEYS.public_jwks()}
KINDS = some.sampled_from(["general", "data_query", "financial_transaction", "code_execution"])
TEXT = "aZ0_ ()=+.,'\"\\{}\u00e9\u4e00"
"""Small alphabet: generating all of Unicode takes Hypothesis seconds."""
NAMES = some.text("aB-. '\"\\\u00e9\u202e\u4e00\U0001f600", min_size=1, max_size=20)
LEAVES = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.floats(),
    some.text(TEXT, max_size=20),
    some.text("\x00\n\x85\ud800\udfff", max_size=3),
    some.binary(max_size=3),
    some.sets(some.integers(), max_size=2),
    some.decimals(),
)
KEYED = some.one_of(
    some.sampled_from(
        ["data", "claimed_total", "line_items", "amount", "quantity", "tax", "currency", "code", "language"]
    ),
    some.text(TEXT, max_size=5),
    some.integers(),
)
ANYTHING = some.recursive(
    LEAVES,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(KEYED, inner, max_size=4),
    max_leaves=12,
)
PAYLOADS = some.dictionaries(some.text(TEXT, max_size=5) | some.sampled_from(["data", "code"]), ANYTHING, max_size=4)


def interceptor(**config: Any) -> A2AVerificationInterceptor:
    interceptor_of_config = InterceptorConfig(max_payload_size_bytes=1024, **config)
    return A2AVerificationInterceptor(interceptor_of_config, TrustBoundary(None), KEYS, engines=shared_verdicts())


def check(sent: AgentMessage, trace_id: str) -> None:
    """Require the same verdict from two independent interceptors, and a valid signature."""
    first, again = (asyncio.run(interceptor().intercept(sent, trace_id)) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    json.dumps(first.to_dict(), allow_nan=False).encode()
    valid, claims = verify_attestation(first.attestation_jwt or "", JWKS, now=AT.timestamp())
    assert valid, claims
    assert (claims["jti"], claims["qwed_a2a"]["verdict"]) == (trace_id, first.status)
    assert (claims["sub"] == "unread") <= (first.status == "blocked")


@settings(max_examples=20, deadline=None)
@given(PAYLOADS, KINDS, NAMES, NAMES, NAMES)
def test_every_message_has_one_verdict(payload: Any, kind: str, sender: Any, receiver: Any, trace_id: str) -> None:
    check(message(payload, kind, sender_agent_id=sender, receiver_agent_id=receiver), trace_id)


@pytest.mark.drill
@settings(max_examples=2_000, deadline=None)
@given(PAYLOADS, KINDS, NAMES, NAMES, NAMES)
def test_every_one_of_very_many_messages_has_one_verdict(
    payload: Any, kind: str, sender: Any, receiver: Any, trace_id: str
) -> None:
    check(message(payload, kind, sender_agent_id=sender, receiver_agent_id=receiver), trace_id)


@settings(max_examples=30, deadline=None)
@given(PAYLOADS)
def test_a_payload_is_known_by_its_canonical_hash_or_by_none(payload: Any) -> None:
    found = digest_of(payload, 1_000_000)
    if isinstance(found, str):
        assert found == sha256_of(payload)
    else:
        # If a payload has several errors, the two functions may report different ones.
        assert found.reason.startswith("the payload is not JSON: ")
        with pytest.raises(CanonicalJsonError):
            sha256_of(payload)


BODIES = some.one_of(
    some.binary(max_size=60),
    some.text(some.sampled_from('{}[]",:0aNI\\u \ud800'), max_size=40).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    ),
    some.fixed_dictionaries(
        {},
        optional={
            "sender_agent_id": LEAVES,
            "receiver_agent_id": NAMES,
            "payload": ANYTHING,
            "timestamp": some.floats() | some.integers() | some.datetimes().map(str),
            "metadata": ANYTHING,
        },
    ).map(lambda value: json.dumps(value, default=str, skipkeys=True).encode()),
)


@settings(max_examples=40, deadline=None)
@given(BODIES)
def test_every_body_is_a_message_or_says_why_not(body: bytes) -> None:
    try:
        found = parse_message(parse(body))
        said = found.sender_agent_id if isinstance(found, AgentMessage) else found.message
    except StrictSchemaError as wrong:
        said = str(wrong)
    assert said
