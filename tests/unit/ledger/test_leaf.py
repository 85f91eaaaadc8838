"""Spec 7.1 and DESIGN 7: a leaf is RFC 8785 canonical JSON, byte for byte, and has no room for content."""

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ledger.leaf import VERSION, Leaf, decode, encode
from qwed.ledger.verifier import leaf_hash
from qwed.model import canonical

steady = settings(derandomize=True, database=None, deadline=None, max_examples=100)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
maybe = st.none() | text
whole = st.integers(0, 2**70)
OF_VERSION_1 = ("action_hash", "conversation_id", "result_hash", "sub")
"""Fields of leaves before content was sealed: each could be compared with a guess."""
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("activity_id", "by"), text),
    **dict.fromkeys(("about", "action_type", "agent_id", "attestation_id", "commitment", "decision"), maybe),
    **dict.fromkeys(("engine", "error", "event", "policy_hash", "risk_level", "status"), maybe),
    **dict.fromkeys(("policy", "policy_rule", "policy_set"), maybe),
    **dict.fromkeys(("fields", "policies"), st.lists(text, max_size=3).map(tuple)),
    **dict.fromkeys(OF_VERSION_1, maybe),
    **dict.fromkeys(("cost_micros", "latency_us", "repeats", "time_ms", "tokens"), whole),
    **dict.fromkeys(("level_after", "level_before", "policy_version", "step_number"), st.none() | whole),
    "self_approved": st.booleans(),
    "success": st.none() | st.booleans(),
    "v": st.sampled_from([1, VERSION]),
}
leaves = st.builds(Leaf, **FIELDS)


@steady
@given(leaves)
def test_a_leaf_encodes_straight_to_canonical_json(leaf: Leaf) -> None:
    assert encode(leaf) == canonical(_members(leaf))


@steady
@given(leaves)
def test_a_leaf_reads_back_as_itself(leaf: Leaf) -> None:
    assert decode(encode(leaf)) == decode(encode(leaf).decode()) == leaf


def _members(leaf: Leaf) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    defaults: dict[str, Any] = {field.name: field.default for field in msgspec.structs.fields(Leaf)}
    every = {name: getattr(leaf, name) for name in Leaf.__struct_fields__}
    return {name: value for name, value in every.items() if value != defaults[name]}


def test_the_fields_stand_in_the_order_of_their_names_and_all_are_tried_here() -> None:
    assert list(Leaf.__struct_fields__) == sorted(FIELDS)


def test_a_leaf_is_hashed_as_a_leaf_and_not_as_a_node() -> None:
    data = b'{"v":1}'
    assert leaf_hash(data) == hashlib.sha256(b"\x00" + data).digest()
    assert leaf_hash(data) != hashlib.sha256(data).digest()


def test_a_leaf_with_nothing_to_say_says_only_what_it_must() -> None:
    leaf = Leaf(activity_id="act_1", agent_id="agent_1", by="key_1", decision="DENIED", latency_us=5, time_ms=6, v=2)
    assert json.loads(encode(leaf)) == {
        "activity_id": "act_1",
        "agent_id": "agent_1",
        "by": "key_1",
        "decision": "DENIED",
        "latency_us": 5,
        "time_ms": 6,
        "v": 2,
    }


def test_a_leaf_of_version_1_is_read_with_all_it_said() -> None:
    stored = (
        '{"action_hash":"a","activity_id":"act_1","agent_id":"agent_1","by":"key_1","conversation_id":"c",'
        '"decision":"APPROVED","latency_us":5,"step_number":1,"sub":"sha256:a","time_ms":6,"v":1}'
    )
    leaf = decode(stored)
    assert (leaf.v, leaf.action_hash, leaf.conversation_id, leaf.sub, leaf.commitment) == (
        1,
        "a",
        "c",
        "sha256:a",
        None,
    )
    assert encode(leaf) == stored.encode()


@pytest.mark.parametrize("kept", ["", "{}", "[]", '{"v":2}', "{", '{"activity_id":1,"by":"k","time_ms":1,"v":2}'])
def test_what_is_no_leaf_is_not_read_as_one(kept: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(kept)
