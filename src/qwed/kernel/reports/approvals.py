"""Collects the approvals of a period from the leaves that requested and the leaves that resolved them."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from qwed.kernel.agents.trust import ELEVATION
from qwed.kernel.views.activity_views import SYSTEM_ACTOR
from qwed.ledger.leaf import Leaf
from qwed.model import Event
from qwed.model.clock import rfc3339
from qwed.reports.report_data import MAX_LIST_ENTRIES, BoundedList, ReportedApproval, ReportedApprovals

ACTION, OPEN = "action", "open"
END_STATES: dict[str, str] = {
    Event.APPROVED: "approved",
    Event.TRUST_RAISED: "approved",
    Event.REJECTED: "rejected",
    Event.EXPIRED: "expired",
}
"""Events that resolve an approval, and the resulting state."""


class ChangeReason(NamedTuple):
    """Reason and approver of a change, as far as they are still stored."""

    state: str
    reason: str | None
    approver: str | None


ApprovalRow = dict[str, Any]


class ApprovalCollector:
    """Fed with leaves, newest first: the resolution of an approval comes before its request."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._rows: list[ApprovalRow] = []
        self._keys: set[str] = set()
        self._settled: dict[str, ApprovalRow | None] = {}
        """By the requesting activity; None where the list is full."""

    def settled(self, entry: Leaf, reason: ChangeReason) -> None:
        """Add the resolution of an approval by a person or by expiry."""
        state = END_STATES[entry.event or ""]
        self._counts[state] += 1
        self._counts["self_approved"] += entry.self_approved
        if entry.by != SYSTEM_ACTOR:
            self._keys.add(entry.by)
        row = _settlement_fields(entry, state, reason) if len(self._rows) < MAX_LIST_ENTRIES else None
        if row is not None:
            self._rows.append(row)
        self._settled[entry.about or ""] = row

    def requested(self, entry: Leaf) -> None:
        """Add a request for an approval of an action or of more trust."""
        self._counts["requested"] += 1
        if entry.activity_id in self._settled:
            row = self._settled.pop(entry.activity_id)
            if row is not None:
                row.update(_request_fields(entry))
            return
        self._counts[OPEN] += 1
        if len(self._rows) < MAX_LIST_ENTRIES:
            self._rows.append(_open_fields() | _request_fields(entry))

    def approvals(self, find: Callable[[str], Leaf | None]) -> ReportedApprovals:
        """Return the result; `find` looks up requests from before the period."""
        for activity_id, row in self._settled.items():
            earlier = None if row is None else find(activity_id)
            if row is not None and earlier is not None:
                row.update(_request_fields(earlier))
        entries = tuple(ReportedApproval(**row) for row in reversed(self._rows))
        counts = {name: self._counts[name] for name in ("requested", OPEN, "self_approved", *END_STATES.values())}
        total = counts[OPEN] + sum(self._counts[state] for state in set(END_STATES.values()))
        keys = tuple(sorted(self._keys))
        return ReportedApprovals(**counts, settled_by=keys, history=BoundedList(total=total, entries=entries))


def _request_fields(entry: Leaf) -> ApprovalRow:
    return {
        "kind": ELEVATION if entry.event == Event.TRUST_REQUESTED else ACTION,
        "action_id": entry.activity_id,
        "action_type": entry.action_type,
        "risk_level": entry.risk_level,
        "requested_at": rfc3339(entry.time_ms / 1000),
        "requested_by": entry.by,
    }


def _settlement_fields(entry: Leaf, state: str, reason: ChangeReason) -> ApprovalRow:
    return {
        "kind": ELEVATION if entry.event == Event.TRUST_RAISED else ACTION,
        "state": state,
        "action_id": entry.about or "",
        "action_type": entry.action_type,
        "risk_level": entry.risk_level,
        "requested_at": None,
        "requested_by": None,
        "settled_at": rfc3339(entry.time_ms / 1000),
        "settled_by": entry.by,
        "approver": reason.approver,
        "reason": reason.reason,
        "content": reason.state,
        "self_approved": entry.self_approved,
        "settled_in": entry.activity_id,
    }


def _open_fields() -> ApprovalRow:
    empty = ("settled_at", "settled_by", "approver", "reason", "settled_in")
    return {"state": OPEN, "content": "kept", "self_approved": False} | dict.fromkeys(empty)
