"""Parser for messages received over HTTP; errors name the wrong field and never quote what was sent."""

from typing import Any, NamedTuple

from pydantic import ValidationError

from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import MAX_NAME_LENGTH, is_subject
from qwed.kernel.request_schema import unknown_field
from qwed.model import ErrorCode
from qwed_a2a.message import MAX_ID_LENGTH, AgentMessage, PayloadType

_ID_RULE = f"must be a text of 1 to {MAX_ID_LENGTH} characters without control characters"
_FIELD_RULES = {
    "sender_agent_id": _ID_RULE,
    "receiver_agent_id": _ID_RULE,
    "payload_type": f"must be one of {', '.join(PayloadType)}",
    "payload": "must be an object",
    "timestamp": "must be a time with its time zone, such as 2026-01-15T10:00:00Z",
    "metadata": "must be an object",
}


class MessageStep(NamedTuple):
    """Conversation and step number; without them the loop check is skipped."""

    conversation_id: str | None = None
    step_number: int | None = None


def parse_message(raw: Any) -> AgentMessage | Problem:
    """Return the message in a body, or the problem with it."""
    refusal = unknown_field(raw, tuple(_FIELD_RULES))
    if refusal is not None:
        return refusal
    members = {name: value for name, value in raw.items() if name != "timestamp" or value is not None}
    # Pydantic would accept a number as a time.
    if not isinstance(members.get("timestamp", ""), str):
        return _invalid_field("timestamp")
    try:
        return AgentMessage.model_validate(members)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        if first["type"] == "missing":
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
        return _invalid_field(name)


def _invalid_field(name: str) -> Problem:
    return problem(ErrorCode.MALFORMED, f"`{name}` {_FIELD_RULES.get(name, 'is invalid')}")


def conversation_step_of(message: AgentMessage) -> MessageStep | Problem:
    """Return the conversation and step in the metadata, or the problem with them."""
    metadata = message.metadata or {}
    conversation_id, step_number = metadata.get("conversation_id"), metadata.get("step_number")
    if conversation_id is None and step_number is None:
        return MessageStep()
    if not isinstance(conversation_id, str) or not is_subject(conversation_id):
        must = f"`metadata.conversation_id` must be 1 to {MAX_NAME_LENGTH} printable characters"
        return problem(ErrorCode.MISSING_CONTEXT, must)
    # `type` and not `isinstance`: True is an int in Python, but not a step number
    if step_number is not None and (type(step_number) is not int or step_number < 1):
        return problem(ErrorCode.INVALID_STEP, "`metadata.step_number` must be an integer from 1")
    return MessageStep(conversation_id, step_number)
