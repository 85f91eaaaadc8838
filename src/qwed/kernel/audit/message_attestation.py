"""Checks the attestation of a message against the log."""

from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import fold_name
from qwed.kernel.a2a.message import EngineName
from qwed.kernel.audit.attestation_lookup import LoggedAttestation, head_over
from qwed.kernel.privacy.subject_keys import KEPT, TAMPERED
from qwed.kernel.services import Services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.ledger import leaf

FORWARDED = "forwarded"
_OUR_KEY = "the token is signed with our key"


def log_mismatch(claims: dict[str, Any], services: Services) -> str | None:
    """Return the mismatch between the log and a token that is signed with our key, or None."""
    logged = _leaf_of(claims["qwed_a2a"].get("activity_id"), services)
    if logged is None:
        return f"{_OUR_KEY}, but the log has no such message"
    if head_over(logged, services) is None:
        return "the leaf or its signed head was changed in the store"
    content = services.vault.content(logged.entry, logged.leaf.activity_id)
    if content.state == TAMPERED:
        return "the content of the activity was changed in the store"
    stored = msgspec.json.decode(content.text) if content.state == KEPT else {}
    differing = _first_difference(claims, logged.leaf, stored)
    return None if differing is None else f"{_OUR_KEY}, but the log has another `{differing}`"


def _leaf_of(activity_id: str | None, services: Services) -> LoggedAttestation | None:
    entry = None if activity_id is None else services.store.find_leaf(activity_id)
    try:
        logged = None if entry is None else LoggedAttestation(entry, leaf.decode(entry.leaf))
    except msgspec.DecodeError:
        return None
    return logged if logged is not None and logged.leaf.action_type == A2A_MESSAGE else None


def _first_difference(claims: dict[str, Any], logged: leaf.Leaf, stored: dict[str, Any]) -> str | None:
    """Return the name of the first claim that differs from the log, or None."""
    message_claims = claims["qwed_a2a"]
    is_coalesced = claims["jti"] != logged.about
    sender = logged.agent_id or stored.get("sender", mask(message_claims["sender"]))
    matches = {
        "jti": not is_coalesced or _may_be_coalesced(message_claims, logged),
        "iat": claims["iat"] == logged.time_ms // 1000,
        "verdict": (message_claims["verdict"] == FORWARDED) is (logged.error is None),
        "engine": message_claims["engine"] == logged.engine or _may_be_kernel_refusal(message_claims),
        # Only the first coalesced refusal is stored; it stands for all spellings of the sender's name.
        "sender": mask(message_claims["sender"]) == sender
        or (is_coalesced and fold_name(mask(message_claims["sender"])) == fold_name(sender)),
        "sub": stored.get("action_hash") is None or claims["sub"] == f"sha256:{stored['action_hash']}",
        # A message with a secret is stored without it, and so without the names that may contain it.
        "receiver": stored.get("action_hash") is None or message_claims["receiver"] == stored["action"]["target"],
    }
    return next((name for name, holds in matches.items() if not holds), None)


def _may_be_coalesced(message_claims: dict[str, Any], logged: leaf.Leaf) -> bool:
    """Return True if the leaf may stand for other refusals over the rate in the same minute."""
    is_refusal = message_claims["verdict"] != FORWARDED and logged.error is not None
    return is_refusal and logged.engine in (None, EngineName.TRUST_BOUNDARY)


def _may_be_kernel_refusal(message_claims: dict[str, Any]) -> bool:
    """Return True if the kernel itself may have refused the message."""
    is_ours = message_claims["engine"] in (EngineName.TRUST_BOUNDARY, EngineName.ERROR_HANDLER)
    return is_ours and message_claims["verdict"] != FORWARDED
