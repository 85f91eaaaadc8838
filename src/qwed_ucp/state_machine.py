"""Checkout states: known states, their requirements and permitted transitions."""

from collections.abc import Mapping
from typing import Any

from qwed.packs.result import abbreviate
from qwed_ucp.document import CommerceDocument, DocumentError, DocumentKind
from qwed_ucp.result import GuardFinding

NAME = "states"
_ENDED = ("cancelled", "canceled")
FOLLOWING: Mapping[str, tuple[str, ...]] = {
    "incomplete": ("requires_escalation", "ready_for_complete", *_ENDED),
    "requires_escalation": ("incomplete", "ready_for_complete", "completed", *_ENDED),
    "ready_for_complete": (
        "incomplete",
        "requires_escalation",
        "complete_in_progress",
        "completed",
        "failed",
        *_ENDED,
    ),
    "complete_in_progress": ("incomplete", "requires_escalation", "completed", "failed", *_ENDED),
    "completed": (),
    "failed": (),
    "cancelled": (),
    "canceled": (),
}
"""Permitted transitions; staying is always permitted. `failed` and `cancelled` belong to the simple form."""
RULE = (
    "checkout states: incomplete -> ready_for_complete -> completed | failed | cancelled, with requires_escalation and "
    "complete_in_progress between (UCP checkout status lifecycle); what has ended does not change"
)
_READY = frozenset({"ready_for_complete", "complete_in_progress", "completed"})
_ASKS = frozenset({"requires_buyer_input", "requires_buyer_review"})


def look(document: CommerceDocument) -> GuardFinding:
    """Check that the state is known and its requirements are met."""
    if document.kind is not DocumentKind.CHECKOUT:
        return GuardFinding(guard_name=NAME, verified=True, details={"status": None})
    status = state_of(document.status, required=document.strict)
    if status in _READY and not document.lines:
        raise DocumentError(f"a checkout that is `{status}` must have line items")
    if document.minor:
        _require_envelope(document, status)
    if status == "completed" and _provisional(document):
        raise DocumentError("a checkout that is `completed` has a discount that is still provisional")
    details = {"status": status, "may_become": list(FOLLOWING.get(status or "", ()))}
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def state_of(status: Any, *, required: bool = True) -> str | None:
    """Return the state; raise DocumentError with the known states."""
    if status is None and not required:
        return None
    if not isinstance(status, str) or status not in FOLLOWING:
        shown = "missing" if status is None else f"`{abbreviate(status)}`"
        raise DocumentError(f"`status` is {shown}: it must be one of {', '.join(FOLLOWING)}")
    return status


def _require_envelope(document: CommerceDocument, status: str | None) -> None:
    members = document.members
    if status == "completed" and not members.get("order"):
        raise DocumentError("a checkout that is `completed` must have its `order`")
    if status == "requires_escalation":
        if not members.get("continue_url"):
            raise DocumentError("a checkout that is `requires_escalation` must have a `continue_url`")
        if not any(each.get("severity") in _ASKS for each in members.get("messages") or ()):
            raise DocumentError(
                "a checkout that is `requires_escalation` must have a message that says what the buyer has to do"
            )


def _provisional(document: CommerceDocument) -> bool:
    found = document.members.get("discounts")
    rows = found.get("applied") if isinstance(found, Mapping) else found
    return any(isinstance(each, Mapping) and each.get("provisional") is True for each in rows or ())


def require_following(before: str, after: str) -> None:
    """Raise DocumentError if the transition is not permitted."""
    if before != after and after not in FOLLOWING[before]:
        allowed = ", ".join(FOLLOWING[before]) or "nothing: it has ended"
        raise DocumentError(f"`{before}` may not become `{after}`: it may become {allowed}")
