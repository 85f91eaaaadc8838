"""Assigns a conversation and a step to a message, and the fingerprints for loop detection.

The state of a conversation is the last message of the other side: the same message after an unchanged answer is no
progress. That state is observed by the server, so no statement of the agent about its state is needed.
"""

import hashlib
import re

from qwed.domain.conversation import ConversationStep
from qwed.domain.snapshot import Snapshot
from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.message import InterceptedMessage
from qwed.kernel.answer import Answer
from qwed.kernel.case import Case, replace
from qwed.kernel.privacy.subject_keys import Vault
from qwed.kernel.request import Context, read_context
from qwed.model import canonical
from qwed.model.ids import new_id
from qwed.model.unicode_normal import INVISIBLE_CHARACTERS

_INVISIBLE = re.compile(rf"\\[nrtfb]|\\u00[01][0-9a-f]|[\s\x7f-\x9f{INVISIBLE_CHARACTERS}]+")
"""White space and invisible characters in JSON, literal and escaped."""
_BACKSLASH, _ONE = r"\\", "\0"
"""An escaped backslash is not part of an escaped blank; a null never occurs literally in JSON."""


def parse_step(case: Case, message: InterceptedMessage, vault: Vault) -> Case:
    """Return the case with its step, or with the refusal of what is malformed.

    A message without a conversation is standalone and never a loop. The state is added by `with_state`.
    """
    if message.conversation_id is None:
        alone = Context(conversation_id=new_id("alone"), step_number=1)
        step = ConversationStep(1, "", standalone=True)
        return replace(case, context=alone, step=step, conversation_id=vault.fingerprint(alone.conversation_id))
    number = message.step_number
    members = {"conversation_id": message.conversation_id, "step_number": 1 if number is None else number}
    context = read_context(members, state_required=False)
    if isinstance(context, Answer):
        return replace(case, unparsed=context)
    fingerprint = fingerprint_of(message, vault)
    step = ConversationStep(context.step_number, fingerprint, auto_numbered=number is None, state_observed=True)
    return replace(case, context=context, step=step, conversation_id=vault.fingerprint(message.conversation_id))


def with_state(case: Case, snapshot: Snapshot, vault: Vault) -> Case:
    """Return the case with the state of the conversation: the receiver's last message in it."""
    if case.unparsed is not None or case.step.standalone:
        return case
    state = vault.fingerprint(f"{case.step.fingerprint}|{snapshot.receiver_fingerprint}")
    return replace(case, step=replace(case.step, state_fingerprint=state))


def fingerprint_of(message: InterceptedMessage, vault: Vault) -> str:
    """Return the fingerprint of payload and receiver, ignoring case and spacing."""
    text = message.text.decode().replace(_BACKSLASH, _ONE)
    plain = _INVISIBLE.sub("", text.casefold())
    identity = canonical([fold_name(message.receiver), message.kind, hashlib.sha256(plain.encode()).hexdigest()])
    return vault.fingerprint(identity.decode())
