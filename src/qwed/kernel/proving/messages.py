"""Whether the log bears out what the attestation of a message says."""

from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.guards.tool_approval import folded
from qwed.kernel.keeping.vault import KEPT, TAMPERED
from qwed.kernel.messages.message import ERROR_HANDLER, TRUST_BOUNDARY
from qwed.kernel.proving.attested import Found, head_over
from qwed.kernel.services import Services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.ledger import leaf

FORWARDED = "forwarded"
_OUR_KEY = "it is signed with our key"


def unlogged(claims: dict[str, Any], services: Services) -> str | None:
    """Where the token and the log say different things, although our key has signed it."""
    found = _leaf_of(claims["qwed_a2a"].get("activity_id"), services)
    if found is None:
        return f"{_OUR_KEY}, and the log has no such message"
    if head_over(found, services) is None:
        return "its leaf, or the signed head over it, was changed in the store"
    content = services.vault.content(found.entry, found.leaf.activity_id)
    if content.state == TAMPERED:
        return "the content of its activity was changed in the store"
    kept = msgspec.json.decode(content.text) if content.state == KEPT else {}
    differing = _differing(claims, found.leaf, kept)
    return None if differing is None else f"{_OUR_KEY}, and the log has another `{differing}`"


def _leaf_of(activity_id: str | None, services: Services) -> Found | None:
    entry = None if activity_id is None else services.store.find_leaf(activity_id)
    try:
        found = None if entry is None else Found(entry, leaf.decode(entry.leaf))
    except msgspec.DecodeError:
        return None
    return found if found is not None and found.leaf.action_type == A2A_MESSAGE else None


def _differing(claims: dict[str, Any], logged: leaf.Leaf, kept: dict[str, Any]) -> str | None:
    """The first claim that the log does not bear out."""
    said = claims["qwed_a2a"]
    one_of_many = claims["jti"] != logged.about
    sender = logged.agent_id or kept.get("sender", mask(said["sender"]))
    borne_out = {
        "jti": not one_of_many or _stands_for_others(said, logged),
        "iat": claims["iat"] == logged.time_ms // 1000,
        "verdict": (said["verdict"] == FORWARDED) is (logged.error is None),
        "engine": said["engine"] == logged.engine or _spoke_itself(said),
        # Of a flood the first is kept, and another spelling of a name is no other flood.
        "sender": mask(said["sender"]) == sender or (one_of_many and folded(mask(said["sender"])) == folded(sender)),
        "sub": kept.get("action_hash") is None or claims["sub"] == f"sha256:{kept['action_hash']}",
        # What carried a secret is kept without it, and so without the names it may have stood in.
        "receiver": kept.get("action_hash") is None or said["receiver"] == kept["action"]["target"],
    }
    return next((name for name, holds in borne_out.items() if not holds), None)


def _stands_for_others(said: dict[str, Any], logged: leaf.Leaf) -> bool:
    """Whether it may be the one leaf of a minute in which a pair sent too fast: refused, and by nobody who looked."""
    return said["verdict"] != FORWARDED and logged.error is not None and logged.engine in (None, TRUST_BOUNDARY)


def _spoke_itself(said: dict[str, Any]) -> bool:
    """Whether the kernel may have refused what a judge said, or was never asked to say."""
    return said["verdict"] != FORWARDED and said["engine"] in (TRUST_BOUNDARY, ERROR_HANDLER)
