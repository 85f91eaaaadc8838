"""What changes are made of: a leaf without content, notices for whoever asked, texts that are bounded."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from qwed.gate import Gate, open_gate
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import LONGEST_TEXT, read_fields
from qwed.kernel.change import GATE, NOTICES, Actor, change_of, notices_of
from qwed.kernel.people import webhook
from qwed.store.parts import Webhook
from qwed.waiting import in_thread
from qwed.words import Event, canonical
from tests.support.clock import NOON, HandClock


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate(":memory:", clock=HandClock().clock()) as opened:
        yield opened


def _listen(gate: Gate, *events: str) -> None:
    wish = webhook.Wish("https://example.com/", events)
    kept = in_thread(webhook.set_webhook(wish, Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
    assert isinstance(kept, Webhook)


@pytest.mark.parametrize("whose", ["the organisation's key", "a key of its own"])
def test_what_was_said_stays_out_of_the_leaf(gate: Gate, whose: str) -> None:
    """It is sealed beside it, and the leaf commits to it."""
    organisation_id, vault = gate.organisation_id, gate.services.vault
    key = vault.key_for(organisation_id, "user_1") if whose == "a key of its own" else None
    said = {"reason": "personal", "x": None}
    change = change_of(
        Event.SUSPENDED, "key_1", organisation_id, NOON, gate.services, key=key, agent_id="agent_1", said=said
    )
    activity = change.activity
    key = key or vault.key_for(organisation_id, organisation_id)
    text = '{"reason":"personal"}'
    assert msgspec.json.decode(activity.leaf) == {
        "activity_id": activity.activity_id,
        "agent_id": "agent_1",
        "by": "key_1",
        "commitment": key.commitment(activity.activity_id, text),
        "event": "suspended",
        "time_ms": int(NOON * 1000),
        "v": 2,
    }
    assert (activity.subject_id, key.open(activity.activity_id, activity.payload)) == (key.subject_id, text)
    assert (activity.event, activity.decision, activity.cost) == ("suspended", None, 0)


@pytest.mark.parametrize("said", [None, {}, {"reason": None}], ids=["none", "nothing", "a reason that is none"])
def test_where_nothing_was_said_there_is_nothing_to_seal_and_nobody_it_is_about(gate: Gate, said: Any) -> None:
    change = change_of(Event.TOKEN_ROTATED, "key_1", gate.organisation_id, NOON, gate.services, said=said)
    assert (change.activity.payload, change.activity.subject_id) == ("{}", None)
    assert "commitment" not in msgspec.json.decode(change.activity.leaf)


def test_a_leaf_of_a_change_is_canonical(gate: Gate) -> None:
    change = change_of(
        Event.APPROVED,
        *("k", gate.organisation_id, NOON, gate.services),
        agent_id="a",
        about="act_1",
        cost_micros=7,
        tokens=1,
        attestation_id="att_1",
        said={"reason": "b"},
    )
    assert change.activity.leaf.encode() == canonical(msgspec.json.decode(change.activity.leaf))
    assert (change.activity.cost, change.activity.attestation_id) == (7, "att_1")


def test_nobody_is_told_where_nobody_asked(gate: Gate) -> None:
    agent = gate.services.store.find_agent(gate.register_agent(name="a", principal_id="p")["agent_id"])
    assert agent is not None
    assert all(notices_of(event, agent, "act_1", gate.services, NOON) == () for event in NOTICES)
    _listen(gate, "failed")
    told = {event: notices_of(event, agent, "act_1", gate.services, NOON) for event in NOTICES}
    assert [event for event, notices in told.items() if notices] == ["failed"]
    [notice] = told["failed"]
    assert msgspec.json.decode(notice.body) == {
        "id": notice.notice_id,
        "event": "failed",
        "at": "2026-09-21T12:00:00Z",
        "organisation_id": gate.organisation_id,
        "agent_id": agent.agent_id,
        "principal_id": "p",
        "activity_id": "act_1",
    }


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ({"reason": "because"}, {"reason": "because"}),
        ({"reason": "because", "approver": None}, {"reason": "because"}),
        (
            {"reason": "x" * LONGEST_TEXT, "approver": "A. Person"},
            {"reason": "x" * LONGEST_TEXT, "approver": "A. Person"},
        ),
    ],
    ids=["short", "with nothing else", "long"],
)
def test_texts_are_read(raw: Any, read: dict[str, str]) -> None:
    assert read_fields(raw, ("reason",), ("approver",)) == read


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "reason",
        {},
        {"reason": None},
        {"reason": ""},
        {"reason": "  \n"},
        {"reason": 7},
        {"reason": ["because"]},
        {"reason": "x" * (LONGEST_TEXT + 1)},
        {"reason": "nul \x00"},
        {"reason": "because", "approver": ""},
        {"reason": "because", "role": "owner"},
    ],
    ids=lambda raw: str(raw)[:40],
)
def test_what_is_no_text_is_refused(raw: Any) -> None:
    assert isinstance(read_fields(raw, ("reason",), ("approver",)), Problem)


def test_a_secret_in_a_reason_is_masked() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    read = read_fields({"reason": f"the key is {secret}"}, ("reason",))
    assert isinstance(read, dict)
    assert secret not in read["reason"]
