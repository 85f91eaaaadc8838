"""Spec 7.1 and DESIGN 7: a leaf is RFC 8785 canonical JSON, byte for byte."""

import hashlib
import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ledger.leaf import Leaf, decode, encode, leaf_hash
from qwed.words import canonical

steady = settings(derandomize=True, database=None, deadline=None, max_examples=300)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
maybe = st.none() | text
whole = st.integers(0, 2**70)
OPTIONAL = ("action_hash", "action_type", "attestation_id", "conversation_id", "engine", "error", "policy_hash")
MORE = ("risk_level", "status", "sub")

leaves = st.builds(
    Leaf,
    activity_id=text,
    agent_id=text,
    by=text,
    decision=text,
    latency_us=whole,
    time_ms=whole,
    v=st.just(1),
    cost_micros=whole,
    tokens=whole,
    step_number=st.none() | whole,
    **dict.fromkeys(OPTIONAL + MORE, maybe),
)


@steady
@given(leaves)
def test_a_leaf_encodes_straight_to_canonical_json(leaf: Leaf) -> None:
    assert _bytes(encode(leaf)) == canonical(_members(leaf))


@steady
@given(leaves)
def test_a_leaf_reads_back_as_itself(leaf: Leaf) -> None:
    assert decode(encode(leaf)) == leaf


def _bytes(encoded: bytes | str) -> bytes:
    return encoded.encode() if isinstance(encoded, str) else encoded


def _members(leaf: Leaf) -> dict[str, Any]:
    """Its fields without those that say nothing."""
    defaults: dict[str, Any] = {field.name: field.default for field in msgspec.structs.fields(Leaf)}
    every = {name: getattr(leaf, name) for name in Leaf.__struct_fields__}
    return {name: value for name, value in every.items() if value != defaults[name]}


def test_the_fields_stand_in_the_order_of_their_names() -> None:
    assert list(Leaf.__struct_fields__) == sorted(Leaf.__struct_fields__)


def test_a_leaf_is_hashed_as_a_leaf_and_not_as_a_node() -> None:
    data = b'{"v":1}'
    assert leaf_hash(data) == hashlib.sha256(b"\x00" + data).digest()
    assert leaf_hash(data) != hashlib.sha256(data).digest()


def test_a_leaf_with_nothing_to_say_says_only_what_it_must() -> None:
    leaf = Leaf(activity_id="act_1", agent_id="agent_1", by="key_1", decision="DENIED", latency_us=5, time_ms=6, v=1)
    assert json.loads(encode(leaf)) == {
        "activity_id": "act_1",
        "agent_id": "agent_1",
        "by": "key_1",
        "decision": "DENIED",
        "latency_us": 5,
        "time_ms": 6,
        "v": 1,
    }
