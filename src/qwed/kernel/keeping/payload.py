"""What is kept beside a leaf: the content of an action, which a leaf never holds, and a secret in neither."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.answer import Problem, Verification
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.keeping.masking import masked
from qwed.kernel.request import Action
from qwed.ledger.attest import Chain


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked, what was found, and what was said about it."""

    action: Any = None
    corrected: Mapping[str, Any] | None = None
    error: Problem | None = None
    verification: Verification | None = None
    user_intent: str | None = None
    justification: str | None = None
    action_hash: str | None = None
    sub: str | None = None
    """The hash of what may be executed."""
    conversation_id: str | None = None
    chain: Chain | None = None


_encode = msgspec.json.Encoder().encode


def encoded(payload: Payload) -> str:
    """The payload as it is kept."""
    return _encode(payload).decode()


def with_more(text: str, conversation_id: str | None, chain: Chain | None) -> str:
    """A payload as it was encoded before, with what is new each time."""
    if conversation_id is not None:
        text = f'{text[:-1]},"conversation_id":{_encode(conversation_id).decode()}}}'
    if chain is not None:
        text = f'{text[:-1]},"chain":{_encode(chain).decode()}}}'
    return text


def shown_action(action: Action, hiding: Hiding | None) -> Any:
    """The action as it is kept. What is kept of a secret is that there was one."""
    if hiding is None:
        return msgspec.Raw(action.canonical)
    return hiding.value(masked(msgspec.json.decode(action.canonical)))


@lru_cache(maxsize=4096)
def shown_name(conversation_id: str) -> str:
    """The name of a conversation, as it is kept; asked for at every step of it."""
    return mask(conversation_id)


def shown_text(text: str | None, hiding: Hiding | None = None) -> str | None:
    """What was said about a request, as it is kept; without what only the action tells to be a secret."""
    if text is None:
        return None
    return mask(text if hiding is None else hiding.whole(text))
