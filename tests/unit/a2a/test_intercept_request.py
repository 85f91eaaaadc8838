"""Parser for messages over HTTP (INTERFACES 6): errors name the wrong field and do not quote the message."""

from typing import Any

import pytest

from qwed.kernel.answer import Problem
from qwed_a2a import AgentMessage, PayloadType
from qwed_a2a.intercept_request import MessageStep, conversation_step_of, parse_message

SECRET = "a word of the payload"
GOOD: dict[str, Any] = {"sender_agent_id": "alice", "receiver_agent_id": "bob", "payload": {"text": SECRET}}


def parse_changed(**changed: Any) -> AgentMessage | Problem:
    return parse_message({**GOOD, **changed})


def test_a_message_has_what_was_sent_and_defaults_for_the_rest() -> None:
    message = parse_changed()
    assert isinstance(message, AgentMessage)
    assert (message.payload_type, message.payload, message.metadata) == (PayloadType.GENERAL, {"text": SECRET}, None)
    assert message.timestamp.tzinfo is not None


@pytest.mark.parametrize("name", ["sender_agent_id", "receiver_agent_id", "payload"])
def test_a_field_that_is_missing_is_named(name: str) -> None:
    result = parse_message({key: value for key, value in GOOD.items() if key != name})
    assert isinstance(result, Problem)
    assert (result.code, result.message) == ("QWED-REQ-004", f"`{name}` is required")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sender_agent_id", ""),
        ("sender_agent_id", "x" * 257),
        ("sender_agent_id", "a\nb"),
        ("sender_agent_id", 7),
        ("receiver_agent_id", "a\x7f"),
        ("receiver_agent_id", None),
        ("payload", SECRET),
        ("payload", [SECRET]),
        ("payload_type", SECRET),
        ("payload_type", "GENERAL"),
        ("payload_type", None),
        ("timestamp", SECRET),
        ("timestamp", "2026-01-15T10:00:00"),
        ("timestamp", 1_700_000_000),
        ("timestamp", True),
        ("timestamp", "0001-01-01T00:00:00+14:00"),
        ("metadata", SECRET),
        ("metadata", [1]),
        (SECRET, 1),
    ],
)
def test_a_field_that_is_wrong_is_named_and_its_value_is_not_said_again(name: str, value: Any) -> None:
    result = parse_changed(**{name: value})
    assert isinstance(result, Problem)
    assert result.code == "QWED-REQ-001"
    assert f"`{name}`" in result.message
    assert name == SECRET or SECRET not in str(result)


@pytest.mark.parametrize("body", [None, [], "text", 7, [GOOD]])
def test_what_is_no_object_is_no_message(body: Any) -> None:
    result = parse_message(body)
    assert isinstance(result, Problem)
    assert result.message == "the body must be an object"


@pytest.mark.parametrize(
    ("metadata", "step"),
    [
        (None, MessageStep()),
        ({"note": 1}, MessageStep()),
        ({"conversation_id": "c"}, MessageStep("c")),
        ({"conversation_id": "c", "step_number": 3}, MessageStep("c", 3)),
    ],
)
def test_the_place_of_a_message_is_what_its_metadata_say(metadata: Any, step: MessageStep) -> None:
    message = parse_changed(metadata=metadata)
    assert isinstance(message, AgentMessage)
    assert conversation_step_of(message) == step


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"step_number": 1}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "", "step_number": 1}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": " "}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": 7}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "x" * 257}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "a\nb"}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "c", "step_number": 0}, "QWED-AGENT-CTX-002"),
        ({"conversation_id": "c", "step_number": True}, "QWED-AGENT-CTX-002"),
        ({"conversation_id": "c", "step_number": 1.0}, "QWED-AGENT-CTX-002"),
        ({"conversation_id": "c", "step_number": "1"}, "QWED-AGENT-CTX-002"),
    ],
)
def test_a_place_that_is_none_is_refused(metadata: Any, code: str) -> None:
    message = parse_changed(metadata=metadata)
    assert isinstance(message, AgentMessage)
    result = conversation_step_of(message)
    assert isinstance(result, Problem)
    assert result.code == code
