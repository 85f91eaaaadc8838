"""Check of the tables that accompany a log against its leaves: approvals, executions, revocations, erasures, agents,
keys, policy sets, rolling usage.

The server trusts these tables; a row without a leaf was inserted from outside.
"""

from collections.abc import Callable, Iterator

import msgspec

from qwed.cli.audit.row_check import FindingCollector, is_same_time, parse_leaf
from qwed.cli.audit.usage_check import usage_mismatches
from qwed.ledger.leaf import Leaf
from qwed.model import Decision, Event
from qwed.store.policy_set_rows import to_policy_set
from qwed.store.snapshot_reader import ApprovalRow, PolicySetRow, SnapshotReader

APPROVAL_STATES = {
    Event.APPROVED: "approved",
    Event.REJECTED: "rejected",
    Event.EXPIRED: "expired",
    Event.TRUST_RAISED: "approved",
}
"""State of an approval after a leaf with this event."""
_LEVEL_EVENTS = frozenset(
    [Event.REGISTERED, Event.TRUST_RAISED, Event.TRUST_LOWERED, Event.TRUST_DEGRADED, Event.TRUST_RESTORED]
)
_STATUS_AFTER = {
    Event.REGISTERED: "active",
    Event.REACTIVATED: "active",
    Event.SUSPENDED: "suspended",
    Event.COMPLAINT: "suspended",
    Event.RETIRED: "suspended",
}

Mismatch = str | None


class TableCheck:
    """Check of one log: call `check_row` for each leaf in order, then `close`."""

    def __init__(self, reader: SnapshotReader, log_id: str, findings: FindingCollector) -> None:
        self.added: set[str] = set()
        """Organisations created in this log."""
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
        self._policies: dict[int, Leaf] = {}

    def check_row(self, index: int, leaf: Leaf) -> None:
        """Check what the tables say about the leaf at this index."""
        self._index = index
        is_request = leaf.decision == Decision.PENDING and leaf.event is None
        for check in (TableCheck._check_request,) if is_request else _CHECKS_BY_EVENT.get(leaf.event or "", ()):
            mismatch = check(self, leaf)
            if mismatch is not None:
                self._findings.add(f"entry {index}", mismatch)

    def close(self) -> None:
        """Check the remaining table rows against the log."""
        tables = (
            self._approval_mismatches,
            self._execution_mismatches,
            self._revocation_mismatches,
            self._erasure_mismatches,
            self._status_mismatches,
            self._key_mismatches,
            self._policy_mismatches,
            lambda: usage_mismatches(self._reader, self._log_id),
        )
        for check in tables:
            for where, problem in check():
                self._findings.add(where, problem)

    # Checks of one leaf

    def _check_link(self, leaf: Leaf) -> Mismatch:
        target = self._reader.find(leaf.about)
        if target is not None and target.organisation_id == self._log_id and target.log_index < self._index:
            return None
        return f"it refers to `{leaf.about}`, which is not an earlier entry of this log"

    def _check_request(self, leaf: Leaf) -> Mismatch:
        approval = self._reader.approval_of(leaf.activity_id)
        if approval is None:
            return "the approval it requested is missing"
        kind = "action" if leaf.event is None else "trust_elevation"
        recorded = (approval.organisation_id, approval.agent_id, approval.requested_by, approval.kind)
        if recorded != (self._log_id, leaf.agent_id, leaf.by, kind) or not is_same_time(approval.created_at, leaf):
            return f"the approval `{approval.approval_id}` has another requester, time or kind"
        return None

    def _check_resolution(self, leaf: Leaf) -> Mismatch:
        approval = self._reader.approval_of(leaf.about)
        if approval is None:
            return "the approval it resolved is missing"
        state = APPROVAL_STATES[Event(leaf.event or "")]
        if (approval.state, approval.resolved_in) != (state, leaf.activity_id):
            return f"it resolved the approval `{approval.approval_id}` as {state}, but the approval is {approval.state}"
        if not _resolution_matches(approval, leaf):
            return f"the approval `{approval.approval_id}` has another resolution"
        return None

    def _check_execution(self, leaf: Leaf) -> Mismatch:
        execution = self._reader.execution_of(leaf.about)
        if execution is None:
            return "the execution it reports is missing"
        self._executed += 1
        success, at = execution
        if success == leaf.success and is_same_time(at, leaf):
            return None
        return f"the execution it reports is recorded as {'success' if success else 'failure'} at `{at}`"

    def _check_revocation(self, leaf: Leaf) -> Mismatch:
        revocation = self._reader.revocation_of(leaf.about)
        recorded = None if revocation is None else (revocation.organisation_id, revocation.activity_id)
        if (
            revocation is not None
            and recorded == (self._log_id, leaf.activity_id)
            and is_same_time(revocation.at, leaf)
        ):
            return None
        return f"the revocation of `{leaf.about}` is missing or different"

    def _check_erasure(self, leaf: Leaf) -> Mismatch:
        self._erased.add(leaf.about or "")
        return (
            None
            if self._reader.subject_key(leaf.about) == (None,)
            else "the erased subject has a key again, or is missing"
        )

    def _check_organisation(self, leaf: Leaf) -> Mismatch:
        self.added.add(leaf.about or "")
        return None if leaf.about in self._organisations else f"the organisation `{leaf.about}` is missing"

    def _record_key(self, leaf: Leaf) -> Mismatch:
        self._keys[leaf.about or ""] = leaf.event == Event.KEY_REVOKED
        return None

    def _record_policies(self, leaf: Leaf) -> Mismatch:
        latest = max(self._policies, default=0)
        self._policies[leaf.policy_version or 0] = leaf
        if leaf.policy_version == latest + 1:
            return None
        return f"it puts version {leaf.policy_version} of the policy set in force after version {latest}"

    def _record_switch(self, leaf: Leaf) -> Mismatch:
        self._halted = leaf.event == Event.HALTED
        return None

    def _record_agent(self, leaf: Leaf) -> Mismatch:
        level, status = self._agents.get(leaf.agent_id or "", (None, None))
        if leaf.event in _LEVEL_EVENTS and leaf.level_after is not None:
            level = leaf.level_after
        self._agents[leaf.agent_id or ""] = (level, _STATUS_AFTER.get(Event(leaf.event or ""), status))
        return None

    # Checks for table rows without a leaf

    def _approval_mismatches(self) -> Iterator[tuple[str, str]]:
        for approval in self._reader.approvals(self._log_id):
            where = f"approval `{approval.approval_id}`"
            request = self._reader.find(approval.activity_id)
            if request is None or request.organisation_id != self._log_id:
                yield where, "no entry of the log requested it"
            if approval.state != "pending" and not self._is_resolved_by_log(approval):
                yield where, f"it is {approval.state}, but no entry of the log resolved it so"

    def _is_resolved_by_log(self, approval: ApprovalRow) -> bool:
        entry = self._reader.find(approval.resolved_in)
        leaf = None if entry is None or entry.organisation_id != self._log_id else parse_leaf(entry.leaf)
        return leaf is not None and leaf.about == approval.activity_id and leaf.event in APPROVAL_STATES

    def _execution_mismatches(self) -> Iterator[tuple[str, str]]:
        if sum(1 for _ in self._reader.executions(self._log_id)) == self._executed:
            return
        leaves = (parse_leaf(row.leaf) for row in self._reader.activities(self._log_id) if row.event == Event.EXECUTED)
        reported = {leaf.about for leaf in leaves if leaf is not None}
        for activity_id in self._reader.executions(self._log_id):
            if activity_id not in reported:
                yield f"execution of `{activity_id}`", "no entry of the log reports it"

    def _revocation_mismatches(self) -> Iterator[tuple[str, str]]:
        for revoked in self._reader.revocations(self._log_id):
            entry = self._reader.find(revoked.activity_id)
            leaf = None if entry is None or entry.organisation_id != self._log_id else parse_leaf(entry.leaf)
            if leaf is None or (leaf.event, leaf.about) != (Event.ATTESTATION_REVOKED, revoked.attestation_id):
                yield f"revocation of `{revoked.attestation_id}`", "no entry of the log reports it"

    def _erasure_mismatches(self) -> Iterator[tuple[str, str]]:
        erased = self._reader.erased(self._log_id)
        named = {erased[subject_id] for subject_id in self._erased if subject_id in erased}
        for subject_id, name in erased.items():
            if name not in named:
                yield (
                    f"subject `{subject_id}`",
                    "its key was destroyed, but no entry of the log reports an erasure",
                )

    def _status_mismatches(self) -> Iterator[tuple[str, str]]:
        if self._reader.halted(self._log_id) != self._halted:
            yield "the kill switch", f"according to the log it is {'on' if self._halted else 'off'}"
        stored = self._reader.agents(self._log_id)
        for agent_id, (level, expected) in self._agents.items():
            if agent_id not in stored:
                yield f"agent `{agent_id}`", "the log registered it, but it is missing"
                continue
            trust, status = stored[agent_id]
            if level is not None and trust != level:
                yield f"agent `{agent_id}`", f"its trust level is {trust}, but {level} according to the log"
            if expected is not None and status != expected:
                yield f"agent `{agent_id}`", f"it is {status}, but {expected} according to the log"

    def _policy_mismatches(self) -> Iterator[tuple[str, str]]:
        missing = dict(self._policies)
        for row in self._reader.policy_sets(self._log_id):
            leaf = missing.pop(row.version, None)
            what = "no entry of the log put it in force" if leaf is None else _policy_set_mismatch(row, leaf)
            if what is not None:
                yield f"policy set {row.version}", what
        for version in missing:
            yield f"policy set {version}", "the log put it in force, but it is missing"

    def _key_mismatches(self) -> Iterator[tuple[str, str]]:
        stored = self._reader.keys(self._log_id)
        # The first key of the first organisation is created before its log.
        first = next(iter(stored), None) if self._organisations[:1] == [self._log_id] else None
        for key_id, revoked in self._keys.items():
            if key_id not in stored:
                yield f"key `{key_id}`", "the log created it, but it is missing"
            elif revoked and not stored[key_id]:
                yield f"key `{key_id}`", "the log revoked it, but it is active"
        for key_id in stored:
            if key_id not in self._keys and key_id != first:
                yield f"key `{key_id}`", "no entry of the log created it"


def _policy_set_mismatch(row: PolicySetRow, leaf: Leaf) -> Mismatch:
    """Return what is different between a stored policy set and the leaf that put it in force, or None."""
    stored = to_policy_set((row.version, row.digest, row.documents))
    if stored.damage:
        return stored.damage
    if (row.digest, row.changed_by) != (leaf.policy_set, leaf.by) or not is_same_time(row.changed_at, leaf):
        return "the log has another digest, author or time for it"
    return None


def _resolution_matches(approval: ApprovalRow, leaf: Leaf) -> bool:
    """Return True if the approval's resolution agrees with the leaf."""
    try:
        resolution = msgspec.json.decode(str(approval.resolution))
    except (msgspec.DecodeError, RecursionError):
        return False
    if not isinstance(resolution, dict):
        return False
    same = ("decision", "by", "self_approved", "activity_id")
    cost = approval.cost if leaf.event == Event.APPROVED else leaf.cost_micros
    return all(resolution.get(name) == getattr(leaf, name) for name in same) and leaf.cost_micros == cost


_Check = Callable[[TableCheck, Leaf], Mismatch]
_CHECKS_BY_EVENT: dict[str, tuple[_Check, ...]] = {
    **dict.fromkeys(APPROVAL_STATES, (TableCheck._check_link, TableCheck._check_resolution)),
    Event.TRUST_RAISED: (TableCheck._check_link, TableCheck._check_resolution, TableCheck._record_agent),
    Event.EXECUTED: (TableCheck._check_link, TableCheck._check_execution),
    Event.EXECUTED_UNPERMITTED: (TableCheck._check_link,),
    Event.GROUP_APPROVED: (TableCheck._check_link,),
    Event.ATTESTATION_REVOKED: (TableCheck._check_revocation,),
    Event.ERASED: (TableCheck._check_erasure,),
    Event.ORGANISATION_ADDED: (TableCheck._check_organisation,),
    Event.TRUST_REQUESTED: (TableCheck._check_request,),
    **dict.fromkeys((Event.KEY_ADDED, Event.KEY_REVOKED), (TableCheck._record_key,)),
    Event.POLICIES_CHANGED: (TableCheck._record_policies,),
    **dict.fromkeys((Event.HALTED, Event.RESUMED), (TableCheck._record_switch,)),
    **dict.fromkeys(
        (_LEVEL_EVENTS | _STATUS_AFTER.keys()) - {Event.TRUST_RAISED},
        (TableCheck._record_agent,),
    ),
}
