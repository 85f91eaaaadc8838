"""Assigns a conversation and a step to a message, and the fingerprints for loop detection.

The state of a conversation is the last message of the other side: the same message after an unchanged answer is no
progress. That state is observed by the server, so no statement of the agent about its state is needed.
"""

import hashlib
import re

from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.message import InterceptedMessage
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.request import Context, read_context
from qwed.kernel.services import Services
from qwed.model import CanonicalJsonError, ErrorCode, canonical
from qwed.model.ids import new_id
from qwed.model.unicode_normal import INVISIBLE_CHARACTERS
from qwed.store.conversation import ConversationStep

_INVISIBLE = re.compile(rf"\\[nrtfb]|\\u00[01][0-9a-f]|[\s\x7f-\x9f{INVISIBLE_CHARACTERS}]+")
"""White space and invisible characters in JSON, literal and escaped."""
_BACKSLASH, _ONE = r"\\", "\0"
"""An escaped backslash is not part of an escaped blank; a null never occurs literally in JSON."""


def assign_step(case: Case, services: Services) -> Case | Answer:
    """Return the case with its step; a message without a conversation is standalone and never a loop."""
    message = _message_of(case)
    if message.conversation_id is None:
        alone = Context(conversation_id=new_id("alone"), step_number=1)
        return replace(case, context=alone, step=ConversationStep(1, "", standalone=True))
    number = message.step_number
    members = {"conversation_id": message.conversation_id, "step_number": 1 if number is None else number}
    context = read_context(members, state_required=False)
    if isinstance(context, Answer):
        return context
    try:
        fingerprint = fingerprint_of(message, services)
    except CanonicalJsonError as error:
        return denied(ErrorCode.NOT_DETERMINISTIC, f"the payload is not deterministic JSON: {error}")
    answer = _answer_to(case, message, services)
    state_fingerprint = services.vault.fingerprint(f"{fingerprint}|{answer}")
    step = ConversationStep(
        context.step_number, fingerprint, state_fingerprint, auto_numbered=number is None, state_observed=True
    )
    return replace(case, context=context, step=step)


def fingerprint_of(message: InterceptedMessage, services: Services) -> str:
    """Return the fingerprint of payload and receiver, ignoring case and spacing; raise NotCanonical if impossible."""
    text = canonical(message.payload).decode().replace(_BACKSLASH, _ONE)
    plain = _INVISIBLE.sub("", text.casefold())
    identity = canonical([fold_name(message.receiver), message.kind, hashlib.sha256(plain.encode()).hexdigest()])
    return services.vault.fingerprint(identity.decode())


def _answer_to(case: Case, message: InterceptedMessage, services: Services) -> str:
    """Return the fingerprint of the receiver's last message in this conversation; empty if it is unregistered."""
    receiver = services.store.find_agent(fold_name(message.receiver))
    if receiver is None or receiver.organisation_id != case.agent.organisation_id:
        return ""
    return services.store.last_fingerprint(receiver.agent_id, services.vault.fingerprint(message.conversation_id or ""))


def _message_of(case: Case) -> InterceptedMessage:
    if case.message is None:
        raise RuntimeError("the case has no message")
    return case.message
