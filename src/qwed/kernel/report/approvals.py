"""What waited for a person in a period, put together from the leaves that asked and the leaves that settled."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from qwed.kernel.agents.trust import ELEVATION
from qwed.kernel.views.record import HOUSE
from qwed.ledger.leaf import Leaf
from qwed.reports.data import MOST_LISTED, Approval, Approvals, Listed
from qwed.words import Event
from qwed.words.clock import rfc3339

ACTION, OPEN = "action", "open"
ENDS: dict[str, str] = {
    Event.APPROVED: "approved",
    Event.TRUST_RAISED: "approved",
    Event.REJECTED: "rejected",
    Event.EXPIRED: "expired",
}
"""The events that settle an approval, and how it stands then."""


class Said(NamedTuple):
    """What was said about a change, as far as it is still there."""

    state: str
    reason: str | None
    approver: str | None


Row = dict[str, Any]


class Waiting:
    """Fed with leaves, newest first: whatever settles an approval comes before what asked for it."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._rows: list[Row] = []
        self._keys: set[str] = set()
        self._settled: dict[str, Row | None] = {}
        """By the activity that asked; None where the list is full."""

    def settled(self, kept: Leaf, said: Said) -> None:
        """A person, or time, has decided."""
        state = ENDS[kept.event or ""]
        self._counts[state] += 1
        self._counts["self_approved"] += kept.self_approved
        if kept.by != HOUSE:
            self._keys.add(kept.by)
        row = _settlement(kept, state, said) if len(self._rows) < MOST_LISTED else None
        if row is not None:
            self._rows.append(row)
        self._settled[kept.about or ""] = row

    def requested(self, kept: Leaf) -> None:
        """An action, or more trust, was left to a person."""
        self._counts["requested"] += 1
        if kept.activity_id in self._settled:
            row = self._settled.pop(kept.activity_id)
            if row is not None:
                row.update(_request(kept))
            return
        self._counts[OPEN] += 1
        if len(self._rows) < MOST_LISTED:
            self._rows.append(_unsettled() | _request(kept))

    def approvals(self, find: Callable[[str], Leaf | None]) -> Approvals:
        """All of it; `find` looks up what was asked before the period began."""
        for asked, row in self._settled.items():
            earlier = None if row is None else find(asked)
            if row is not None and earlier is not None:
                row.update(_request(earlier))
        entries = tuple(Approval(**row) for row in reversed(self._rows))
        counts = {name: self._counts[name] for name in ("requested", OPEN, "self_approved", *ENDS.values())}
        total = counts[OPEN] + sum(self._counts[state] for state in set(ENDS.values()))
        keys = tuple(sorted(self._keys))
        return Approvals(**counts, settled_by=keys, history=Listed(total=total, entries=entries))


def _request(kept: Leaf) -> Row:
    return {
        "kind": ELEVATION if kept.event == Event.TRUST_REQUESTED else ACTION,
        "action_id": kept.activity_id,
        "action_type": kept.action_type,
        "risk_level": kept.risk_level,
        "requested_at": rfc3339(kept.time_ms / 1000),
        "requested_by": kept.by,
    }


def _settlement(kept: Leaf, state: str, said: Said) -> Row:
    return {
        "kind": ELEVATION if kept.event == Event.TRUST_RAISED else ACTION,
        "state": state,
        "action_id": kept.about or "",
        "action_type": kept.action_type,
        "risk_level": kept.risk_level,
        "requested_at": None,
        "requested_by": None,
        "settled_at": rfc3339(kept.time_ms / 1000),
        "settled_by": kept.by,
        "approver": said.approver,
        "reason": said.reason,
        "content": said.state,
        "self_approved": kept.self_approved,
        "settled_in": kept.activity_id,
    }


def _unsettled() -> Row:
    empty = ("settled_at", "settled_by", "approver", "reason", "settled_in")
    return {"state": OPEN, "content": "kept", "self_approved": False} | dict.fromkeys(empty)
