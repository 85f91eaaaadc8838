"""States: which there are, what each of them needs, and which may follow which."""

from collections.abc import Mapping
from typing import Any

from qwed.packs.result import briefly
from qwed_ucp.document import Defect, Document, Kind
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
"""Which state may follow which; staying is always allowed. `failed` and `cancelled` are states of the simple form."""
RULE = (
    "checkout states: incomplete -> ready_for_complete -> completed | failed | cancelled, with requires_escalation and "
    "complete_in_progress between (UCP checkout status lifecycle); what has ended does not change"
)
_READY = frozenset({"ready_for_complete", "complete_in_progress", "completed"})
_ASKS = frozenset({"requires_buyer_input", "requires_buyer_review"})


def look(document: Document) -> GuardFinding:
    """Whether the state is one there is, and has what it needs."""
    if document.kind is not Kind.CHECKOUT:
        return GuardFinding(guard_name=NAME, verified=True, details={"status": None})
    status = state_of(document.status, required=document.strict)
    if status in _READY and not document.lines:
        raise Defect(f"a checkout that is `{status}` must have line items")
    if document.minor:
        _require_envelope(document, status)
    if status == "completed" and _provisional(document):
        raise Defect("a checkout that is `completed` has a discount that is still provisional")
    details = {"status": status, "may_become": list(FOLLOWING.get(status or "", ()))}
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def state_of(status: Any, *, required: bool = True) -> str | None:
    """The state; a Defect lists those there are."""
    if status is None and not required:
        return None
    if not isinstance(status, str) or status not in FOLLOWING:
        shown = "missing" if status is None else f"`{briefly(status)}`"
        raise Defect(f"`status` is {shown}: it must be one of {', '.join(FOLLOWING)}")
    return status


def _require_envelope(document: Document, status: str | None) -> None:
    members = document.members
    if status == "completed" and not members.get("order"):
        raise Defect("a checkout that is `completed` must have its `order`")
    if status == "requires_escalation":
        if not members.get("continue_url"):
            raise Defect("a checkout that is `requires_escalation` must have a `continue_url`")
        if not any(each.get("severity") in _ASKS for each in members.get("messages") or ()):
            raise Defect(
                "a checkout that is `requires_escalation` must have a message that says what the buyer has to do"
            )


def _provisional(document: Document) -> bool:
    found = document.members.get("discounts")
    rows = found.get("applied") if isinstance(found, Mapping) else found
    return any(isinstance(each, Mapping) and each.get("provisional") is True for each in rows or ())


def require_following(before: str, after: str) -> None:
    """A Defect where one state may not follow the other."""
    if before != after and after not in FOLLOWING[before]:
        allowed = ", ".join(FOLLOWING[before]) or "nothing: it has ended"
        raise Defect(f"`{before}` may not become `{after}`: it may become {allowed}")
