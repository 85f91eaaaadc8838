"""Payload of a decision: the content that is stored with a leaf but not in it, without secrets."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.answer import DecidingRule, Problem, Verification
from qwed.kernel.privacy.masking import mask_value
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.request import Action
from qwed.ledger.attest import Chain
from qwed.model import Effect, Facts


class OriginalFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Findings in an action as it was sent, where a repaired one takes its place."""

    effects: tuple[Effect, ...]
    facts: Facts


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stored content: request, result and statements about them."""

    action: Any = None
    corrected: Mapping[str, Any] | None = None
    error: Problem | None = None
    verification: Verification | None = None
    user_intent: str | None = None
    justification: str | None = None
    action_hash: str | None = None
    sub: str | None = None
    """Hash of the action that may be executed."""
    conversation_id: str | None = None
    chain: Chain | None = None
    facts: Facts | None = None
    """Findings in an action that waits for a person: policies are evaluated on it again when it is approved."""
    original: OriginalFindings | None = None
    """Findings in it before its repair."""
    policy: DecidingRule | None = None
    """Rule of the organisation's policies that decided."""
    shadow: tuple[DecidingRule, ...] = ()
    """Rules of policies in shadow that would have decided."""


class PolicyMembers(msgspec.Struct, frozen=True, omit_defaults=True):
    """Members of a payload about policies, which differ between requests for one assessment."""

    policy: DecidingRule | None = None
    shadow: tuple[DecidingRule, ...] = ()


_encode = msgspec.json.Encoder().encode


def encode_payload(payload: Payload) -> str:
    """Encode the payload as JSON."""
    return _encode(payload).decode()


def with_members(
    text: str, conversation_id: str | None, chain: Chain | None, policies: PolicyMembers | None = None
) -> str:
    """Return an encoded payload with the members that differ on every request."""
    if conversation_id is not None:
        text = f'{text[:-1]},"conversation_id":{_encode(conversation_id).decode()}}}'
    if chain is not None:
        text = f'{text[:-1]},"chain":{_encode(chain).decode()}}}'
    if policies is not None and (policies.policy is not None or policies.shadow):
        text = f"{text[:-1]},{_encode(policies).decode()[1:]}"
    return text


def redacted_action(action: Action, redactor: Redactor | None) -> Any:
    """Return the action as it is stored, with its secrets replaced."""
    if redactor is None:
        return msgspec.Raw(action.canonical)
    return redactor.value(mask_value(msgspec.json.decode(action.canonical)))


def redacted_facts(facts: Facts, redactor: Redactor | None) -> Facts:
    """Return the facts as they are shown and stored, without the secrets of the action."""
    return facts if redactor is None else msgspec.convert(redactor.found_value(msgspec.to_builtins(facts)), Facts)


@lru_cache(maxsize=4096)
def masked_name(conversation_id: str) -> str:
    """Return the stored name of a conversation; cached, because every step needs it."""
    return mask(conversation_id)


def redacted_text(text: str | None, redactor: Redactor | None = None) -> str | None:
    """Return a statement about a request as it is stored, without the secrets of the action."""
    if text is None:
        return None
    return mask(text if redactor is None else redactor.whole(text))
