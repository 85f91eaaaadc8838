"""The tables beside a log against its leaves: approvals, executions, revocations, erasures, agents, keys and the like.

They are what the server goes by; a row that no leaf bears out was put there past it.
"""

from collections.abc import Callable, Iterator

import msgspec

from qwed.cli.audit.rows import Findings, leaf_in, same_moment
from qwed.ledger.leaf import Leaf
from qwed.store.reader import AskedApproval, Reader
from qwed.words import Decision, Event

STATE_OF = {
    Event.APPROVED: "approved",
    Event.REJECTED: "rejected",
    Event.EXPIRED: "expired",
    Event.TRUST_RAISED: "approved",
}
"""What an approval becomes in a leaf of that event."""
_LEVELS = frozenset([Event.REGISTERED, Event.TRUST_RAISED, Event.TRUST_LOWERED, Event.TRUST_DEGRADED])
_STANDING = {
    Event.REGISTERED: "active",
    Event.REACTIVATED: "active",
    Event.SUSPENDED: "suspended",
    Event.COMPLAINT: "suspended",
}

Wrong = str | None


class TableCheck:
    """One log: `row` for each of its leaves, in order, then `close`."""

    def __init__(self, reader: Reader, log_id: str, findings: Findings) -> None:
        self.added: set[str] = set()
        """The organisations that were made in this log."""
        self._reader = reader
        self._log_id = log_id
        self._findings = findings
        self._organisations = reader.organisations()
        self._index = 0
        self._executed = 0
        self._keys: dict[str, bool] = {}
        self._agents: dict[str, tuple[int | None, str | None]] = {}
        self._erased: set[str] = set()
        self._halted = False

    def row(self, index: int, kept: Leaf) -> None:
        """Hold what the tables say of the leaf at this place against it."""
        self._index = index
        asks = kept.decision == Decision.PENDING and kept.event is None
        for check in (TableCheck._asked,) if asks else _OF_EVENT.get(kept.event or "", ()):
            wrong = check(self, kept)
            if wrong is not None:
                self._findings.add(f"entry {index}", wrong)

    def close(self) -> None:
        """Hold what is left of the tables against the log."""
        tables = (self._approvals, self._executions, self._revocations, self._erasures, self._standing, self._key_rows)
        for check in tables:
            for where, what in check():
                self._findings.add(where, what)

    # A leaf and what the tables say of it

    def _link(self, kept: Leaf) -> Wrong:
        found = self._reader.find(kept.about)
        if found is not None and found.organisation_id == self._log_id and found.log_index < self._index:
            return None
        return f"what it is about, `{kept.about}`, is no earlier entry of this log"

    def _asked(self, kept: Leaf) -> Wrong:
        approval = self._reader.approval_of(kept.activity_id)
        if approval is None:
            return "the approval it asked for is gone"
        kind = "action" if kept.event is None else "trust_elevation"
        told = (approval.organisation_id, approval.agent_id, approval.requested_by, approval.kind)
        if told != (self._log_id, kept.agent_id, kept.by, kind) or not same_moment(approval.created_at, kept):
            return f"the approval `{approval.approval_id}` does not say who asked for it, when, and for what"
        return None

    def _settled(self, kept: Leaf) -> Wrong:
        approval = self._reader.approval_of(kept.about)
        if approval is None:
            return "the approval it settled is gone"
        state = STATE_OF[Event(kept.event or "")]
        if (approval.state, approval.resolved_in) != (state, kept.activity_id):
            return f"it settled the approval `{approval.approval_id}` as {state}, which now says {approval.state}"
        if not _told_alike(approval, kept):
            return f"the approval `{approval.approval_id}` does not say by whom and how it was settled"
        return None

    def _execution(self, kept: Leaf) -> Wrong:
        found = self._reader.execution_of(kept.about)
        if found is None:
            return "the execution it reports is gone"
        self._executed += 1
        success, at = found
        if success == kept.success and same_moment(at, kept):
            return None
        return f"the execution it reports now says {'success' if success else 'failure'} at `{at}`"

    def _revocation(self, kept: Leaf) -> Wrong:
        found = self._reader.revocation_of(kept.about)
        told = None if found is None else (found.organisation_id, found.activity_id)
        if found is not None and told == (self._log_id, kept.activity_id) and same_moment(found.at, kept):
            return None
        return f"the revocation of `{kept.about}` is gone, or another"

    def _erasure(self, kept: Leaf) -> Wrong:
        self._erased.add(kept.about or "")
        return None if self._reader.subject_key(kept.about) == (None,) else "who was erased has a key again, or is gone"

    def _organisation(self, kept: Leaf) -> Wrong:
        self.added.add(kept.about or "")
        return None if kept.about in self._organisations else f"the organisation `{kept.about}` is gone"

    def _key(self, kept: Leaf) -> Wrong:
        self._keys[kept.about or ""] = kept.event == Event.KEY_REVOKED
        return None

    def _switch(self, kept: Leaf) -> Wrong:
        self._halted = kept.event == Event.HALTED
        return None

    def _agent(self, kept: Leaf) -> Wrong:
        level, standing = self._agents.get(kept.agent_id or "", (None, None))
        if kept.event in _LEVELS and kept.level_after is not None:
            level = kept.level_after
        self._agents[kept.agent_id or ""] = (level, _STANDING.get(Event(kept.event or ""), standing))
        return None

    # What no leaf has led to

    def _approvals(self) -> Iterator[tuple[str, str]]:
        for approval in self._reader.approvals(self._log_id):
            where = f"approval `{approval.approval_id}`"
            asked = self._reader.find(approval.activity_id)
            if asked is None or asked.organisation_id != self._log_id:
                yield where, "no entry of the log asked for it"
            if approval.state != "pending" and not self._settles(approval):
                yield where, f"it says {approval.state}, and no entry of the log settled it so"

    def _settles(self, approval: AskedApproval) -> bool:
        found = self._reader.find(approval.resolved_in)
        kept = None if found is None or found.organisation_id != self._log_id else leaf_in(found.leaf)
        return kept is not None and kept.about == approval.activity_id and kept.event in STATE_OF

    def _executions(self) -> Iterator[tuple[str, str]]:
        if sum(1 for _ in self._reader.executions(self._log_id)) == self._executed:
            return
        leaves = (leaf_in(row.leaf) for row in self._reader.activities(self._log_id) if row.event == Event.EXECUTED)
        told = {kept.about for kept in leaves if kept is not None}
        for activity_id in self._reader.executions(self._log_id):
            if activity_id not in told:
                yield f"execution of `{activity_id}`", "no entry of the log reports it"

    def _revocations(self) -> Iterator[tuple[str, str]]:
        for revoked in self._reader.revocations(self._log_id):
            found = self._reader.find(revoked.activity_id)
            kept = None if found is None or found.organisation_id != self._log_id else leaf_in(found.leaf)
            if kept is None or (kept.event, kept.about) != (Event.ATTESTATION_REVOKED, revoked.attestation_id):
                yield f"revocation of `{revoked.attestation_id}`", "no entry of the log reports it"

    def _erasures(self) -> Iterator[tuple[str, str]]:
        erased = self._reader.erased(self._log_id)
        named = {erased[subject_id] for subject_id in self._erased if subject_id in erased}
        for subject_id, name in erased.items():
            if name not in named:
                yield (
                    f"subject `{subject_id}`",
                    "its key was destroyed, and no entry of the log says that it was erased",
                )

    def _standing(self) -> Iterator[tuple[str, str]]:
        if self._reader.halted(self._log_id) != self._halted:
            yield "the kill switch", f"by the log it is {'thrown' if self._halted else 'not thrown'}"
        kept = self._reader.agents(self._log_id)
        for agent_id, (level, standing) in self._agents.items():
            if agent_id not in kept:
                yield f"agent `{agent_id}`", "it was registered in the log, and is gone"
                continue
            trust, status = kept[agent_id]
            if level is not None and trust != level:
                yield f"agent `{agent_id}`", f"its trust level is {trust}, and by the log {level}"
            if standing is not None and status != standing:
                yield f"agent `{agent_id}`", f"it is {status}, and by the log {standing}"

    def _key_rows(self) -> Iterator[tuple[str, str]]:
        kept = self._reader.keys(self._log_id)
        # The first key of the first organisation was there before its log.
        first = next(iter(kept), None) if self._organisations[:1] == [self._log_id] else None
        for key_id, revoked in self._keys.items():
            if key_id not in kept:
                yield f"key `{key_id}`", "it was made in the log, and is gone"
            elif revoked and not kept[key_id]:
                yield f"key `{key_id}`", "it was revoked in the log, and opens again"
        for key_id in kept:
            if key_id not in self._keys and key_id != first:
                yield f"key `{key_id}`", "no entry of the log made it"


def _told_alike(approval: AskedApproval, kept: Leaf) -> bool:
    """Whether the approval tells of its end what the leaf does."""
    try:
        told = msgspec.json.decode(str(approval.resolution))
    except (msgspec.DecodeError, RecursionError):
        return False
    if not isinstance(told, dict):
        return False
    same = ("decision", "by", "self_approved", "activity_id")
    cost = approval.cost if kept.event == Event.APPROVED else kept.cost_micros
    return all(told.get(name) == getattr(kept, name) for name in same) and kept.cost_micros == cost


_Check = Callable[[TableCheck, Leaf], Wrong]
_OF_EVENT: dict[str, tuple[_Check, ...]] = {
    **dict.fromkeys(STATE_OF, (TableCheck._link, TableCheck._settled)),
    Event.TRUST_RAISED: (TableCheck._link, TableCheck._settled, TableCheck._agent),
    Event.EXECUTED: (TableCheck._link, TableCheck._execution),
    Event.EXECUTED_UNPERMITTED: (TableCheck._link,),
    Event.ATTESTATION_REVOKED: (TableCheck._revocation,),
    Event.ERASED: (TableCheck._erasure,),
    Event.ORGANISATION_ADDED: (TableCheck._organisation,),
    Event.TRUST_REQUESTED: (TableCheck._asked,),
    **dict.fromkeys((Event.KEY_ADDED, Event.KEY_REVOKED), (TableCheck._key,)),
    **dict.fromkeys((Event.HALTED, Event.RESUMED), (TableCheck._switch,)),
    **dict.fromkeys(
        (_LEVELS | _STANDING.keys()) - {Event.TRUST_RAISED},
        (TableCheck._agent,),
    ),
}
