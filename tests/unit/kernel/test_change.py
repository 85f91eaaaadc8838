"""What changes are made of: a leaf without content, notices for whoever asked, texts that are bounded."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from qwed.gate import Gate, open_gate
from qwed.kernel import webhook
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import LONGEST_TEXT, read_fields
from qwed.kernel.change import GATE, NOTICES, Actor, change_of, notices_of
from qwed.store.parts import Webhook
from qwed.waiting import in_thread
from qwed.words import Event
from tests.support.clock import NOON, HandClock


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate(":memory:", clock=HandClock().clock()) as opened:
        yield opened


def _listen(gate: Gate, *events: str) -> None:
    wish = webhook.Wish("https://example.com/", events)
    kept = in_thread(webhook.set_webhook(wish, Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
    assert isinstance(kept, Webhook)


def test_what_was_said_stays_out_of_the_leaf() -> None:
    change = change_of(
        Event.SUSPENDED, "key_1", "org_1", NOON, agent_id="agent_1", said={"reason": "personal", "x": None}
    )
    leaf = msgspec.json.decode(change.activity.leaf)
    assert leaf == {
        "activity_id": change.activity.activity_id,
        "agent_id": "agent_1",
        "by": "key_1",
        "event": "suspended",
        "time_ms": int(NOON * 1000),
        "v": 1,
    }
    assert msgspec.json.decode(change.activity.payload) == {"reason": "personal"}
    assert (change.activity.event, change.activity.decision, change.activity.cost) == ("suspended", None, 0)


def test_a_leaf_of_a_change_is_canonical() -> None:
    change = change_of(
        Event.APPROVED, "k", "o", NOON, agent_id="a", about="act_1", cost_micros=7, tokens=1, attestation_id="att_1"
    )
    members = list(msgspec.json.decode(change.activity.leaf))
    assert members == sorted(members)
    assert (change.activity.cost, change.activity.attested) == (7, True)


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
