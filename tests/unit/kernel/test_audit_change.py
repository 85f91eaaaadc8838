"""Changes: a leaf without content, notices for subscribers, bounded texts."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from qwed.domain.change_parts import Webhook
from qwed.futures import run_in_thread
from qwed.gate import Gate, open_gate
from qwed.kernel.admin import webhook
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import GATE, NOTICES, Actor, agent_notices, build_change
from qwed.kernel.operations.admin_operations import ResolveRequest
from qwed.kernel.request_schema import MAX_TEXT_LENGTH, parse
from qwed.model import Event, canonical
from tests.support.manual_clock import NOON, ManualClock


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate(":memory:", clock=ManualClock().clock()) as opened:
        yield opened


def _listen(gate: Gate, *events: str) -> None:
    request = webhook.WebhookRequest("https://example.com/", events)
    stored = run_in_thread(webhook.set_webhook(request, Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
    assert isinstance(stored, Webhook)


@pytest.mark.parametrize("key_owner", ["the organisation's key", "a key of its own"])
def test_content_stays_out_of_the_leaf(gate: Gate, key_owner: str) -> None:
    """The content is sealed and stored separately, and the leaf commits to it."""
    organisation_id, vault = gate.organisation_id, gate.services.vault
    key = vault.key_for(organisation_id, "user_1") if key_owner == "a key of its own" else None
    content = {"reason": "personal", "x": None}
    change = build_change(
        Event.SUSPENDED, "key_1", organisation_id, NOON, gate.services, key=key, agent_id="agent_1", content=content
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


@pytest.mark.parametrize("content", [None, {}, {"reason": None}], ids=["none", "empty", "an empty reason"])
def test_a_change_without_content_has_no_payload_and_no_subject(gate: Gate, content: Any) -> None:
    change = build_change(Event.TOKEN_ROTATED, "key_1", gate.organisation_id, NOON, gate.services, content=content)
    assert (change.activity.payload, change.activity.subject_id) == ("{}", None)
    assert "commitment" not in msgspec.json.decode(change.activity.leaf)


def test_a_leaf_of_a_change_is_canonical(gate: Gate) -> None:
    change = build_change(
        Event.APPROVED,
        *("k", gate.organisation_id, NOON, gate.services),
        agent_id="a",
        about="act_1",
        cost_micros=7,
        tokens=1,
        attestation_id="att_1",
        content={"reason": "b"},
    )
    assert change.activity.leaf.encode() == canonical(msgspec.json.decode(change.activity.leaf))
    assert (change.activity.cost, change.activity.attestation_id) == (7, "att_1")


def test_notices_are_created_only_for_subscribed_events(gate: Gate) -> None:
    agent = gate.services.store.find_agent(gate.register_agent(name="a", principal_id="p")["agent_id"])
    assert agent is not None
    assert all(agent_notices(event, agent, "act_1", gate.services, NOON) == () for event in NOTICES)
    _listen(gate, "failed")
    notices_by_event = {event: agent_notices(event, agent, "act_1", gate.services, NOON) for event in NOTICES}
    assert [event for event, notices in notices_by_event.items() if notices] == ["failed"]
    [notice] = notices_by_event["failed"]
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
            {"reason": "x" * MAX_TEXT_LENGTH, "approver": "A. Person"},
            {"reason": "x" * MAX_TEXT_LENGTH, "approver": "A. Person"},
        ),
    ],
    ids=["short", "with nothing else", "long"],
)
def test_texts_are_read(raw: Any, read: dict[str, str]) -> None:
    assert parse(raw, ResolveRequest) == ResolveRequest(**read)


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
        {"reason": "x" * (MAX_TEXT_LENGTH + 1)},
        {"reason": "nul \x00"},
        {"reason": "because", "approver": ""},
        {"reason": "because", "role": "owner"},
    ],
    ids=lambda raw: str(raw)[:40],
)
def test_what_is_no_text_is_refused(raw: Any) -> None:
    assert isinstance(parse(raw, ResolveRequest), Problem)


def test_a_secret_in_a_reason_is_masked() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    read = parse({"reason": f"the key is {secret}"}, ResolveRequest)
    assert isinstance(read, ResolveRequest)
    assert secret not in read.reason
