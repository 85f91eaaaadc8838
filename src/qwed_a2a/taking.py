"""A message that came in over HTTP: refused by the field that is wrong, and never with what was sent in the words."""

from typing import Any, NamedTuple

from pydantic import ValidationError

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.request import LONGEST_NAME, is_subject
from qwed.words import ErrorCode
from qwed_a2a.message import LONGEST_ID, AgentMessage, PayloadType

_NAME = f"must be a text of 1 to {LONGEST_ID} characters without control characters"
_MUST = {
    "sender_agent_id": _NAME,
    "receiver_agent_id": _NAME,
    "payload_type": f"must be one of {', '.join(PayloadType)}",
    "payload": "must be an object",
    "timestamp": "must be a time with its time zone, such as 2026-01-15T10:00:00Z",
    "metadata": "must be an object",
}


class Place(NamedTuple):
    """Where in which conversation; without one, loops are not looked for."""

    conversation_id: str | None = None
    step_number: int | None = None


def take_message(raw: Any) -> AgentMessage | Problem:
    """The message in a body, or what is wrong with it."""
    wrong = refuse_body(raw, tuple(_MUST))
    if wrong is not None:
        return wrong
    said = {name: value for name, value in raw.items() if name != "timestamp" or value is not None}
    # Pydantic would take a number for a time.
    if not isinstance(said.get("timestamp", ""), str):
        return _misfit("timestamp")
    try:
        return AgentMessage.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        if first["type"] == "missing":
            return problem(ErrorCode.MISSING_FIELD, f"`{name}` is required")
        return _misfit(name)


def _misfit(name: str) -> Problem:
    return problem(ErrorCode.MALFORMED, f"`{name}` {_MUST.get(name, 'is not as it must be')}")


def place_of(message: AgentMessage) -> Place | Problem:
    """The conversation and the step that the metadata name, or what is wrong with them."""
    said = message.metadata or {}
    conversation_id, step_number = said.get("conversation_id"), said.get("step_number")
    if conversation_id is None and step_number is None:
        return Place()
    if not isinstance(conversation_id, str) or not is_subject(conversation_id):
        must = f"`metadata.conversation_id` must be 1 to {LONGEST_NAME} printable characters"
        return problem(ErrorCode.MISSING_CONTEXT, must)
    # `type` and not `isinstance`: true is an int in Python, and no step number
    if step_number is not None and (type(step_number) is not int or step_number < 1):
        return problem(ErrorCode.INVALID_STEP, "`metadata.step_number` must be an integer from 1")
    return Place(conversation_id, step_number)
