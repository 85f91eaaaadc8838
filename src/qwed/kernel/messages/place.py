"""Where a message stands in its conversation, and what would be a loop there.

The state of a conversation is what the other side said last in it: the same message on an unchanged answer is no
progress, and a changed answer is. That we saw ourselves, so nothing an agent says about its state is needed.
"""

import hashlib
import re

from qwed.guards.tool_approval import folded
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.messages.message import Message
from qwed.kernel.request import Context, read_context
from qwed.kernel.services import Services
from qwed.store.conversation import Step
from qwed.words import ErrorCode, NotCanonical, canonical
from qwed.words.ids import new_id
from qwed.words.normal import UNSEEN

_UNSEEN = re.compile(rf"\\[nrtfb]|\\u00[01][0-9a-f]|[\s\x7f-\x9f{UNSEEN}]+")
"""In JSON: blanks, and what nobody sees, as they are and as they are escaped."""
_BACKSLASH, _ONE = r"\\", "\0"
"""An escaped backslash is no part of a blank; a null never stands in JSON as it is."""


def place_message(case: Case, services: Services) -> Case | Answer:
    """The case with its place; without a conversation the message stands alone, and nothing is a loop."""
    message = _message_of(case)
    if message.conversation_id is None:
        alone = Context(conversation_id=new_id("alone"), step_number=1)
        return replace(case, context=alone, step=Step(1, "", alone=True))
    number = message.step_number
    stated = {"conversation_id": message.conversation_id, "step_number": 1 if number is None else number}
    context = read_context(stated, state_required=False)
    if isinstance(context, Answer):
        return context
    try:
        said = fingerprint_of(message, services)
    except NotCanonical as error:
        return denied(ErrorCode.NOT_DETERMINISTIC, f"the payload is not deterministic JSON: {error}")
    heard = _answer_to(case, message, services)
    bound = services.vault.fingerprint(f"{said}|{heard}")
    step = Step(context.step_number, said, bound, allotted=number is None, witnessed=True)
    return replace(case, context=context, step=step)


def fingerprint_of(message: Message, services: Services) -> str:
    """What a message says to whom, whatever its case and spacing; NotCanonical where that cannot be told."""
    text = canonical(message.payload).decode().replace(_BACKSLASH, _ONE)
    plain = _UNSEEN.sub("", text.casefold())
    told = canonical([folded(message.receiver), message.kind, hashlib.sha256(plain.encode()).hexdigest()])
    return services.vault.fingerprint(told.decode())


def _answer_to(case: Case, message: Message, services: Services) -> str:
    """What the receiver said last in this conversation; of one that is not registered here nothing is known."""
    receiver = services.store.find_agent(folded(message.receiver))
    if receiver is None or receiver.organisation_id != case.agent.organisation_id:
        return ""
    return services.store.last_said(receiver.agent_id, services.vault.fingerprint(message.conversation_id or ""))


def _message_of(case: Case) -> Message:
    if case.message is None:
        raise RuntimeError("no message is carried")
    return case.message
