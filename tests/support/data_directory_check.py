"""Consistency check of a data directory that no process is using."""

from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import HTTP
from qwed.ledger.keyring import JWKS_FILE
from qwed.ledger.subject_encryption import MASTER_FILE, MasterKey, SubjectKey, existing_master
from qwed.ledger.verifier import Tree, leaf_hash, public_keys, read_head
from qwed.model import ErrorCode
from qwed.model.clock import DAY
from tests.support.stored_rows import StoredRows

COMMITTED = ("APPROVED", "CORRECTED", "PENDING")
WINDOW = 100


class LoggedDecision(NamedTuple):
    """One decision of the log, with the leaf fields that the promises are about."""

    activity_id: str
    agent_id: str
    log_index: int
    decision: str
    conversation_id: str | None
    """Conversation from the content; None if the content was erased."""
    step_number: int | None
    cost: int
    error: str | None
    risk: str | None
    attested: bool = False
    final: bool = False
    day: int = 0
    readable: bool = True
    internal_error: bool = False
    """True if our own code failed; before the step is reserved or after it is used, no request is counted."""
    misconduct: bool = False
    """True if the verification failed or was blocked, or the tool is blocked (ruling 4.24)."""


class LoggedChange(NamedTuple):
    """One leaf that is not a decision: the event, its object and its cost."""

    activity_id: str
    organisation_id: str
    agent_id: str
    log_index: int
    event: str
    about: str | None
    cost: int
    attested: bool
    level_after: int | None
    day: int
    at: float


class DataDirectoryCheck:
    """Everything stored on disk, or in the database whose keys are in the directory."""

    def __init__(self, directory: Path, database_url: str = "") -> None:
        with StoredRows(directory, database_url).connected() as connection:
            kept = connection.execute("SELECT * FROM activities ORDER BY sequence").fetchall()
            self.log = [(row["organisation_id"], row["log_index"], row["event"]) for row in kept]
            self.leaves = [(row["organisation_id"], row["leaf"], row["nodes"]) for row in kept]
            self.heads = [dict(row) for row in connection.execute("SELECT * FROM heads ORDER BY size")]
            subjects = connection.execute("SELECT subject_id, key FROM subjects").fetchall()
            vault = _ContentReader(
                existing_master(directory / MASTER_FILE), {row["subject_id"]: row["key"] for row in subjects}
            )
            self._named = vault.master.fingerprint
            self.jwks = msgspec.json.decode((directory / JWKS_FILE).read_bytes())
            self.activities = [_activity(row, vault) for row in kept if not row["event"]]
            self.changes = [_change(row) for row in kept if row["event"]]
            self.usage = {row["agent_id"]: dict(row) for row in connection.execute("SELECT * FROM usage")}
            self.daily_totals = [dict(row) for row in connection.execute("SELECT * FROM daily_totals")]
            self.conversations = {
                (row["agent_id"], row["conversation_id"]): dict(row)
                for row in connection.execute("SELECT * FROM conversations")
            }
            self.agents = {row["agent_id"]: dict(row) for row in connection.execute("SELECT * FROM agents")}
            self.keys = {row["key_id"]: dict(row) for row in connection.execute("SELECT * FROM keys")}
            self.organisations = [dict(row) for row in connection.execute("SELECT * FROM organisations")]
            self.approvals = [dict(row) for row in connection.execute("SELECT * FROM approvals")]
            self.executions = [dict(row) for row in connection.execute("SELECT * FROM executions")]
            self.stored_answers = [dict(row) for row in connection.execute("SELECT * FROM idempotency_keys")]
            self.outbox = [dict(row) for row in connection.execute("SELECT * FROM outbox")]

    def committed(self) -> list[LoggedDecision]:
        return [activity for activity in self.activities if activity.decision in COMMITTED]

    def events(self, *kinds: str) -> list[LoggedChange]:
        """Return the changes of these kinds, in the order of the log."""
        return [change for change in self.changes if change.event in kinds]

    def approval(self, approval_id: str) -> dict[str, Any]:
        return next(row for row in self.approvals if row["approval_id"] == approval_id)

    def require_consistent(self) -> None:
        """Require that counters, conversations, daily totals and agent states agree with the log (P2, P3)."""
        self.require_consistent_log()
        self._require_counters()

    def require_consistent_log(self) -> None:
        """Check everything except the hourly and daily counters, which depend on the clock between two calls."""
        self.require_an_unbroken_log()
        self.require_a_signed_tree()
        self.require_each_step_once()
        self._require_daily_totals()
        self._require_conduct()
        self._require_trust_evidence()
        self._require_standing()
        self._require_each_approval_resolved_once()
        self._require_nothing_stray()

    def require_an_unbroken_log(self) -> None:
        for organisation in {name for name, _index, _event in self.log}:
            indexes = [index for name, index, _event in self.log if name == organisation]
            assert indexes == list(range(len(indexes)))

    def require_a_signed_tree(self) -> None:
        """Require that every head signs exactly its leaves, and that every leaf is below a head (P5)."""
        keys = public_keys(self.jwks)
        trees = {name: Tree() for name, _leaf, _nodes in self.leaves}
        roots: dict[tuple[str, int], bytes] = {}
        for name, leaf, nodes in self.leaves:
            hashed = leaf_hash(leaf.encode())
            trees[name].add(hashed)
            roots[name, trees[name].size] = trees[name].root()
            assert nodes.startswith(hashed.hex())
        for row in self.heads:
            place = row["organisation_id"], row["size"]
            head = read_head(decode_head(row["signature"]), keys)
            assert (head.log_id, head.size, head.root) == (*place, roots[place])
        assert {row["organisation_id"]: row["size"] for row in self.heads} == {
            name: tree.size for name, tree in trees.items()
        }

    def require_each_step_once(self) -> None:
        places: dict[tuple[str, str | None], list[int | None]] = {}
        readable = [activity for activity in self.committed() if activity.readable]
        unreadable = {activity.agent_id for activity in self.committed() if not activity.readable}
        for activity in readable:
            places.setdefault((activity.agent_id, activity.conversation_id), []).append(activity.step_number)
        for place, steps in places.items():
            assert steps == sorted(set(steps), key=lambda step: step or 0), f"steps of {place}: {steps}"
            stored = self.conversations[self._stored_conversation(place)]
            counted, expected = (stored["last_step"], stored["steps"]), (steps[-1] or 0, len(steps))
            # Steps of erased subjects are still counted, but their conversation is no longer known.
            assert counted >= expected if place[0] in unreadable else counted == expected
        erased = bool(unreadable)
        filed = {self._stored_conversation(place) for place in places}
        assert filed <= set(self.conversations) if erased else filed == set(self.conversations)

    def _stored_conversation(self, place: tuple[str, str | None]) -> tuple[str, str]:
        """Return the key of a conversation's steps; the stored name does not reveal the real one."""
        return place[0], self._named(place[1] or "")

    def _require_counters(self) -> None:
        assert {activity.agent_id for activity in self.activities} <= set(self.usage)
        for agent_id, usage in self.usage.items():
            windows = self._windows(agent_id)
            entries = [
                one for one in self.activities if one.agent_id == agent_id and windows[one.log_index] == usage["day"]
            ]
            requests = sum(map(_counts_as_request, entries))
            assert requests - sum(one.internal_error for one in entries) <= usage["requests_day"] <= requests
            assert usage["cost_day"] == self.costs_by_day(agent_id).get(usage["day"], 0)
            waiting = [row for row in self._actions_asked(agent_id) if row["state"] == "pending"]
            assert usage["open_approvals"] == len(waiting)
            for counter, column in HELD.items():
                assert usage[counter] == sum(row[column] for row in waiting), counter

    def _windows(self, agent_id: str) -> dict[int, int]:
        """Return the day that each entry was counted in, by log index; days never go back, whatever the clock does."""
        entries: list[LoggedDecision | LoggedChange] = [*self.activities, *self.events(*SETTLED)]
        own = sorted((one.log_index, one.day) for one in entries if one.agent_id == agent_id)
        days = accumulate((day for _index, day in own), max)
        return {index: day for (index, _day), day in zip(own, days, strict=True)}

    def costs_by_day(self, agent_id: str) -> dict[int, int]:
        """Return the cost of permitted decisions and approvals by the day it was counted in."""
        windows = self._windows(agent_id)
        costs: Counter[int] = Counter()
        for one in (*self.activities, *self.events("approved")):
            if one.agent_id == agent_id:
                costs[windows[one.log_index]] += one.cost
        return costs

    def _cost_of(self, agent_id: str) -> int:
        assert sum(change.cost for change in self.changes) == sum(change.cost for change in self.events("approved"))
        return sum(self.costs_by_day(agent_id).values())

    def _actions_asked(self, agent_id: str) -> list[dict[str, Any]]:
        return [row for row in self.approvals if row["agent_id"] == agent_id and row["kind"] == "action"]

    def _require_daily_totals(self) -> None:
        actions: Counter[tuple[str, str]] = Counter()
        cost: Counter[str] = Counter()
        attestations: Counter[str] = Counter()
        for row in self.daily_totals:
            actions[row["agent_id"], row["decision"]] += row["actions"]
            cost[row["agent_id"]] += row["cost"]
            attestations[row["agent_id"]] += row["attestations"]
        assert actions == Counter((activity.agent_id, activity.decision) for activity in self.activities)
        for agent_id in {activity.agent_id for activity in self.activities}:
            assert cost[agent_id] == self._cost_of(agent_id)
            leaves: list[LoggedDecision | LoggedChange] = [*self.activities, *self.changes]
            assert attestations[agent_id] == sum(one.attested for one in leaves if one.agent_id == agent_id)

    def _require_conduct(self) -> None:
        """Require one conduct flag for every decision about the agent, and no others (ruling 4.2)."""
        violations = {change.about for change in self.events("trust_degraded")}
        for agent_id, usage in self.usage.items():
            own = [activity for activity in self.activities if activity.agent_id == agent_id]
            marks = "".join(mark for mark in map(_mark, own) if mark != "r")[-WINDOW:]
            assert usage["recent_flags"].replace("v", "d") == marks
            assert "v" not in usage["recent_flags"] or violations
            assert 0 <= usage["denial_cooldown"] <= WINDOW
            assert len(usage["exceeded_times"].split()) < 5

    def _require_trust_evidence(self) -> None:
        """Require that the evidence of an agent is what the log holds since its last level change (spec 8.2)."""
        for agent_id, usage in self.usage.items():
            levels = [one for one in self.events(*TRUST_EVENTS) if one.agent_id == agent_id]
            since = levels[-1] if levels else None
            own = [one for one in self.activities if one.agent_id == agent_id and _after(one, since)]
            counted = [(one, _mark(one)) for one in own if _mark(one) in (".", "d", "r")]
            requested = {row["activity_id"] for row in self._actions_asked(agent_id)}
            resolved = [one for one in self.changes if one.about in requested and _after(one, since)]
            rejected = [one for one in resolved if one.event == "rejected"]
            approved = [one for one in resolved if one.event == "approved"]
            assert usage["level_since"] == (since.at if since else 0.0), "level_since"
            assert usage["actions"] == len(counted), "actions"
            against = [(one.log_index, mark != ".", 1) for one, mark in counted]
            against += [(one.log_index, True, 0) for one in rejected]
            assert usage["denied"] == _denied(sorted(against)), "denied"
            assert usage["attestations"] == sum(one.attested for one, _ in counted) + len(approved), "attestations"

    def _require_standing(self) -> None:
        """Require that status and trust of each agent follow from the last change about it in the log."""
        for agent_id, agent in self.agents.items():
            own = [change for change in self.changes if change.agent_id == agent_id]
            levels = [change.level_after for change in own if change.event in TRUST_EVENTS]
            assert not levels or agent["trust"] == levels[-1]
            stops = [change.event for change in own if change.event in STOPS]
            assert agent["status"] == (STOPS[stops[-1]] if stops else "active")
        for key_id, key in self.keys.items():
            revoked = [change for change in self.events("key_revoked") if change.about == key_id]
            assert len(revoked) == (key["revoked_at"] is not None)
        for row in self.organisations:
            halts = [one.event for one in self.events("halted", "resumed") if one.about == row["organisation_id"]]
            assert (row["halted_at"] is not None) == (halts[-1:] == ["halted"])

    def _require_each_approval_resolved_once(self) -> None:
        for row in self.approvals:
            leaves = [change for change in self.events(*SETTLED) if change.about == row["activity_id"]]
            if row["state"] == "pending":
                assert (leaves, row["resolution"], row["resolved_in"]) == ([], None, None)
                continue
            assert [change.activity_id for change in leaves] == [row["resolved_in"]]
            assert SETTLED[leaves[0].event] == row["state"]
            assert leaves[0].cost == (row["cost"] if row["state"] == "approved" else 0)
            assert msgspec.json.decode(row["resolution"])["state"] == row["state"]
        requested = {row["activity_id"] for row in self.approvals}
        assert {change.about for change in self.events(*SETTLED)} <= requested
        executed = Counter(change.about for change in self.events("executed"))
        assert executed == Counter(row["activity_id"] for row in self.executions)

    def _require_nothing_stray(self) -> None:
        """Require that every pending approval, stored answer and queued notice is in the log."""
        decisions = {activity.activity_id: activity.decision for activity in self.activities}
        logged = set(decisions) | {change.activity_id for change in self.changes}
        requested = [row["activity_id"] for row in self.approvals if row["kind"] == "action"]
        assert all(decisions[activity_id] == "PENDING" for activity_id in requested)
        assert {row["activity_id"] for row in self.stored_answers} <= set(decisions)
        waiting = [activity.activity_id for activity in self.activities if activity.decision == "PENDING"]
        assert sorted(waiting) == sorted(requested)
        raised = [row["activity_id"] for row in self.approvals if row["kind"] == "trust_elevation"]
        assert sorted(raised) == sorted(change.activity_id for change in self.events("trust_requested"))
        assert {msgspec.json.decode(row["body"])["activity_id"] for row in self.outbox} <= logged


HELD = {"pending_cost": "cost", "pending_tokens": "tokens", "pending_high_risk": "high_risk_calls"}
SETTLED = {"approved": "approved", "trust_raised": "approved", "rejected": "rejected", "expired": "expired"}
STOPS = {"suspended": "suspended", "complaint": "suspended", "reactivated": "active", "retired": "suspended"}
TRUST_EVENTS = ("trust_raised", "trust_lowered", "trust_degraded", "trust_restored")
_NOT_COUNTED = ("QWED-AGENT-LOOP-001", "QWED-AGENT-LOOP-002", "QWED-AGENT-BUDGET", "QWED-AGENT-003", "QWED-REQ")
_FINAL = {code.code for code in ErrorCode if code.final}
"""Codes that say that a retry does not help; the content is used instead where it still exists."""


def _after(one: LoggedDecision | LoggedChange, since: LoggedChange | None) -> bool:
    return since is None or one.log_index > since.log_index


def _denied(against: list[tuple[int, bool, int]]) -> int:
    """Return the denials, never more than the actions: a request of another level may be rejected at this one."""
    actions = denied = 0
    for _index, refused, counts in against:
        actions += counts
        denied = min(denied + refused, actions)
    return denied


def _counts_as_request(activity: LoggedDecision) -> bool:
    """Return True for what passed admission, except what the budget refused (ruling 4.8)."""
    return not (activity.error or "").startswith(_NOT_COUNTED)


def _mark(activity: LoggedDecision) -> str:
    if activity.decision == "BUDGET_EXCEEDED":
        return "e"
    if activity.decision in COMMITTED:
        return "."
    if not activity.final or HTTP[activity.error or ""] != 200:
        return ""
    return "d" if activity.misconduct else "r"


def _is_misconduct(leaf: Callable[..., Any], error: dict[str, Any]) -> bool:
    if leaf("error") == "QWED-AGENT-005":
        return leaf("status") in ("FAILED", "BLOCKED") and leaf("engine") != "trust_boundary"
    return leaf("error") == "QWED-AGENT-004" and error.get("check") == "tool_not_blocked"


def _read(row: Any) -> Callable[..., Any]:
    leaf = msgspec.json.decode(row["leaf"])
    assert leaf["activity_id"] == row["activity_id"]
    get: Callable[..., Any] = leaf.get
    return get


class _ContentReader(NamedTuple):
    """Decrypts the content of a directory that no process is using."""

    master: MasterKey
    kept: dict[str, bytes | None]

    def content(self, row: Any) -> dict[str, Any] | None:
        """Return the content that the leaf commits to, or None if it was erased."""
        if not row["payload"]:
            return None
        if row["subject_id"] is None:
            assert _read(row)("v") == 1
            return _object(row["payload"])
        wrapped = self.kept[row["subject_id"]]
        if wrapped is None:
            return None
        key: SubjectKey = self.master.unwrap(row["subject_id"], wrapped)
        text = key.open(row["activity_id"], row["payload"])
        assert _read(row)("commitment") == key.commitment(row["activity_id"], text)
        return _object(text)


def _object(text: str) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(text)
    return decoded


def decode_head(signature: str) -> dict[str, Any]:
    """Return the head that is stored as its signature."""
    payload = signature.split(".")[1]
    head: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return {**head, "signature": signature}


def _activity(row: Any, vault: _ContentReader) -> LoggedDecision:
    leaf = _read(row)
    assert leaf("decision") == row["decision"]
    stored = vault.content(row)
    content = stored or {}
    error = content.get("error") or {}
    return LoggedDecision(
        row["activity_id"],
        row["agent_id"],
        row["log_index"],
        row["decision"],
        content.get("conversation_id", leaf("conversation_id")),
        leaf("step_number"),
        leaf("cost_micros", 0),
        leaf("error"),
        leaf("risk_level"),
        leaf("attestation_id") is not None,
        error.get("final", False) if stored is not None else leaf("error") in _FINAL,
        int(row["at"] // DAY),
        stored is not None,
        error.get("check") == ErrorCode.INTERNAL.check,
        _is_misconduct(leaf, error),
    )


def _change(row: Any) -> LoggedChange:
    leaf = _read(row)
    assert leaf("event") == row["event"]
    assert row["decision"] == ""
    return LoggedChange(
        row["activity_id"],
        row["organisation_id"],
        row["agent_id"],
        row["log_index"],
        row["event"],
        leaf("about"),
        leaf("cost_micros", 0),
        leaf("attestation_id") is not None,
        leaf("level_after"),
        int(row["at"] // DAY),
        row["at"],
    )
