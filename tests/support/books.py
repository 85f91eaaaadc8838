"""Read a data directory that nobody is using, and check that what it says is one story."""

from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import HTTP
from qwed.ledger.keyring import JWKS_FILE
from qwed.ledger.vault import MASTER_FILE, Master, SubjectKey, existing_master
from qwed.ledger.verifier import Tree, leaf_hash, public_keys, read_head
from qwed.words import ErrorCode
from qwed.words.clock import DAY
from tests.support.kept import Kept

COMMITTED = ("APPROVED", "CORRECTED", "PENDING")
WINDOW = 100


class Activity(NamedTuple):
    """One decision of the log with the parts of its leaf that the promises are about."""

    activity_id: str
    agent_id: str
    log_index: int
    decision: str
    conversation_id: str | None
    """Of the content: None where that was erased."""
    step_number: int | None
    cost: int
    error: str | None
    risk: str | None
    attested: bool = False
    final: bool = False
    day: int = 0
    readable: bool = True
    surprise: bool = False
    """Whether our own code failed: before the step was held or after it was used, no request is counted for it."""


class Change(NamedTuple):
    """One leaf that is no decision: what happened, about what, and what it used."""

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


class Books:
    """Everything that is kept, as it lies on disk, or in the database whose keys lie in the directory."""

    def __init__(self, directory: Path, database_url: str = "") -> None:
        with Kept(directory, database_url).connected() as connection:
            kept = connection.execute("SELECT * FROM activities ORDER BY sequence").fetchall()
            self.log = [(row["organisation_id"], row["log_index"], row["event"]) for row in kept]
            self.leaves = [(row["organisation_id"], row["leaf"], row["nodes"]) for row in kept]
            self.heads = [dict(row) for row in connection.execute("SELECT * FROM heads ORDER BY size")]
            subjects = connection.execute("SELECT subject_id, key FROM subjects").fetchall()
            vault = _Vault(
                existing_master(directory / MASTER_FILE), {row["subject_id"]: row["key"] for row in subjects}
            )
            self._named = vault.master.fingerprint
            self.jwks = msgspec.json.decode((directory / JWKS_FILE).read_bytes())
            self.activities = [_activity(row, vault) for row in kept if not row["event"]]
            self.changes = [_change(row) for row in kept if row["event"]]
            self.usage = {row["agent_id"]: dict(row) for row in connection.execute("SELECT * FROM usage")}
            self.tallies = [dict(row) for row in connection.execute("SELECT * FROM tallies")]
            self.conversations = {
                (row["agent_id"], row["conversation_id"]): dict(row)
                for row in connection.execute("SELECT * FROM conversations")
            }
            self.agents = {row["agent_id"]: dict(row) for row in connection.execute("SELECT * FROM agents")}
            self.keys = {row["key_id"]: dict(row) for row in connection.execute("SELECT * FROM keys")}
            self.organisations = [dict(row) for row in connection.execute("SELECT * FROM organisations")]
            self.approvals = [dict(row) for row in connection.execute("SELECT * FROM approvals")]
            self.executions = [dict(row) for row in connection.execute("SELECT * FROM executions")]
            self.memories = [dict(row) for row in connection.execute("SELECT * FROM memories")]
            self.outbox = [dict(row) for row in connection.execute("SELECT * FROM outbox")]

    def committed(self) -> list[Activity]:
        return [activity for activity in self.activities if activity.decision in COMMITTED]

    def events(self, *wanted: str) -> list[Change]:
        """The changes of these kinds, in the order of the log."""
        return [change for change in self.changes if change.event in wanted]

    def approval(self, approval_id: str) -> dict[str, Any]:
        return next(row for row in self.approvals if row["approval_id"] == approval_id)

    def require_one_story(self) -> None:
        """P2, P3 and the log: counters, conversations, tallies and standing say what the log says."""
        self.require_one_log()
        self._require_counters()

    def require_one_log(self) -> None:
        """All of it but the counters of hours and days, which depend on how the clock stood between two calls."""
        self._require_an_unbroken_log()
        self._require_a_signed_tree()
        self._require_each_step_once()
        self._require_tallies()
        self._require_conduct()
        self._require_merit()
        self._require_standing()
        self._require_each_approval_settled_once()
        self._require_nothing_stray()

    def _require_an_unbroken_log(self) -> None:
        for organisation in {name for name, _index, _event in self.log}:
            indexes = [index for name, index, _event in self.log if name == organisation]
            assert indexes == list(range(len(indexes)))

    def _require_a_signed_tree(self) -> None:
        """P5: under every head stand the leaves it was signed for, and every leaf stands under one."""
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
            head = read_head(said_by(row["signature"]), keys)
            assert (head.log_id, head.size, head.root) == (*place, roots[place])
        assert {row["organisation_id"]: row["size"] for row in self.heads} == {
            name: tree.size for name, tree in trees.items()
        }

    def _require_each_step_once(self) -> None:
        places: dict[tuple[str, str | None], list[int | None]] = {}
        readable = [activity for activity in self.committed() if activity.readable]
        unreadable = {activity.agent_id for activity in self.committed() if not activity.readable}
        for activity in readable:
            places.setdefault((activity.agent_id, activity.conversation_id), []).append(activity.step_number)
        for place, steps in places.items():
            assert steps == sorted(set(steps), key=lambda step: step or 0), f"steps of {place}: {steps}"
            kept = self.conversations[self._filed(place)]
            counted, found = (kept["last_step"], kept["steps"]), (steps[-1] or 0, len(steps))
            # Steps of whoever was erased are still counted, though nobody can tell any more in which conversation.
            assert counted >= found if place[0] in unreadable else counted == found
        erased = bool(unreadable)
        filed = {self._filed(place) for place in places}
        assert filed <= set(self.conversations) if erased else filed == set(self.conversations)

    def _filed(self, place: tuple[str, str | None]) -> tuple[str, str]:
        """Where the steps of a conversation are kept: under a name that tells nobody what it was called."""
        return place[0], self._named(place[1] or "")

    def _require_counters(self) -> None:
        assert {activity.agent_id for activity in self.activities} <= set(self.usage)
        for agent_id, kept in self.usage.items():
            windows = self._windows(agent_id)
            own = [one for one in self.activities if one.agent_id == agent_id and windows[one.log_index] == kept["day"]]
            requests = sum(map(_counts_as_request, own))
            assert requests - sum(one.surprise for one in own) <= kept["requests_day"] <= requests
            assert kept["cost_day"] == self.costs_by_day(agent_id).get(kept["day"], 0)
            waiting = [row for row in self._actions_asked(agent_id) if row["state"] == "pending"]
            assert kept["open_approvals"] == len(waiting)
            for counter, column in HELD.items():
                assert kept[counter] == sum(row[column] for row in waiting), counter

    def _windows(self, agent_id: str) -> dict[int, int]:
        """By log index the day that an entry was counted in: days only move forward, whatever the clock does."""
        entries: list[Activity | Change] = [*self.activities, *self.events(*SETTLED)]
        own = sorted((one.log_index, one.day) for one in entries if one.agent_id == agent_id)
        days = accumulate((day for _index, day in own), max)
        return {index: day for (index, _day), day in zip(own, days, strict=True)}

    def costs_by_day(self, agent_id: str) -> dict[int, int]:
        """What decisions permitted and people approved, by the day it was counted in."""
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

    def _require_tallies(self) -> None:
        actions: Counter[tuple[str, str]] = Counter()
        cost: Counter[str] = Counter()
        attestations: Counter[str] = Counter()
        for row in self.tallies:
            actions[row["agent_id"], row["decision"]] += row["actions"]
            cost[row["agent_id"]] += row["cost"]
            attestations[row["agent_id"]] += row["attestations"]
        assert actions == Counter((activity.agent_id, activity.decision) for activity in self.activities)
        for agent_id in {activity.agent_id for activity in self.activities}:
            assert cost[agent_id] == self._cost_of(agent_id)
            leaves: list[Activity | Change] = [*self.activities, *self.changes]
            assert attestations[agent_id] == sum(one.attested for one in leaves if one.agent_id == agent_id)

    def _require_conduct(self) -> None:
        """Ruling 4.2: every decision about the agent has left its mark, and nothing else has."""
        violations = {change.about for change in self.events("trust_degraded")}
        for agent_id, kept in self.usage.items():
            own = [activity for activity in self.activities if activity.agent_id == agent_id]
            marks = "".join(map(_mark, own))[-WINDOW:]
            assert kept["recent"].replace("v", "d") == marks
            assert "v" not in kept["recent"] or violations
            assert 0 <= kept["rest"] <= WINDOW
            assert len(kept["exceeded"].split()) < 5

    def _require_merit(self) -> None:
        """Spec 8.2: what speaks for an agent is what the log has of it since its level last changed."""
        for agent_id, kept in self.usage.items():
            levels = [one for one in self.events(*TRUST_EVENTS) if one.agent_id == agent_id]
            since = levels[-1] if levels else None
            own = [one for one in self.activities if one.agent_id == agent_id and _after(one, since)]
            counted = [(one, _mark(one)) for one in own if _mark(one) in (".", "d")]
            asked = {row["activity_id"] for row in self._actions_asked(agent_id)}
            settled = [one for one in self.changes if one.about in asked and _after(one, since)]
            rejected = [one for one in settled if one.event == "rejected"]
            approved = [one for one in settled if one.event == "approved"]
            assert kept["since"] == (since.at if since else 0.0), "since"
            assert kept["actions"] == len(counted), "actions"
            against = [(one.log_index, mark == "d", 1) for one, mark in counted]
            against += [(one.log_index, True, 0) for one in rejected]
            assert kept["denied"] == _denied(sorted(against)), "denied"
            assert kept["attestations"] == sum(one.attested for one, _ in counted) + len(approved), "attestations"

    def _require_standing(self) -> None:
        """Who may act, and how far each is trusted, is what the last word about it in the log says."""
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

    def _require_each_approval_settled_once(self) -> None:
        for row in self.approvals:
            leaves = [change for change in self.events(*SETTLED) if change.about == row["activity_id"]]
            if row["state"] == "pending":
                assert (leaves, row["resolution"], row["resolved_in"]) == ([], None, None)
                continue
            assert [change.activity_id for change in leaves] == [row["resolved_in"]]
            assert SETTLED[leaves[0].event] == row["state"]
            assert leaves[0].cost == (row["cost"] if row["state"] == "approved" else 0)
            assert msgspec.json.decode(row["resolution"])["state"] == row["state"]
        asked = {row["activity_id"] for row in self.approvals}
        assert {change.about for change in self.events(*SETTLED)} <= asked
        executed = Counter(change.about for change in self.events("executed"))
        assert executed == Counter(row["activity_id"] for row in self.executions)

    def _require_nothing_stray(self) -> None:
        """What waits for a person, is remembered for a retry or is to be told is in the log."""
        decisions = {activity.activity_id: activity.decision for activity in self.activities}
        known = set(decisions) | {change.activity_id for change in self.changes}
        asked = [row["activity_id"] for row in self.approvals if row["kind"] == "action"]
        assert all(decisions[activity_id] == "PENDING" for activity_id in asked)
        assert {row["activity_id"] for row in self.memories} <= set(decisions)
        waiting = [activity.activity_id for activity in self.activities if activity.decision == "PENDING"]
        assert sorted(waiting) == sorted(asked)
        raised = [row["activity_id"] for row in self.approvals if row["kind"] == "trust_elevation"]
        assert sorted(raised) == sorted(change.activity_id for change in self.events("trust_requested"))
        assert {msgspec.json.decode(row["body"])["activity_id"] for row in self.outbox} <= known


HELD = {"pending_cost": "cost", "pending_tokens": "tokens", "pending_high_risk": "high_risk_calls"}
SETTLED = {"approved": "approved", "trust_raised": "approved", "rejected": "rejected", "expired": "expired"}
STOPS = {"suspended": "suspended", "complaint": "suspended", "reactivated": "active"}
TRUST_EVENTS = ("trust_raised", "trust_lowered", "trust_degraded")
_NOT_COUNTED = ("QWED-AGENT-LOOP-001", "QWED-AGENT-LOOP-002", "QWED-AGENT-BUDGET", "QWED-REQ")
_SUSPENDED = "QWED-AGENT-003"
_FINAL = {code.code for code in ErrorCode if code.final}
"""Codes that say of themselves that trying again does not help; it is read off the content, where that is there."""


def _after(one: Activity | Change, since: Change | None) -> bool:
    return since is None or one.log_index > since.log_index


def _denied(against: list[tuple[int, bool, int]]) -> int:
    """Never more denials than actions: what was asked at another level may be rejected at this one."""
    actions = denied = 0
    for _index, refused, counts in against:
        actions += counts
        denied = min(denied + refused, actions)
    return denied


def _counts_as_request(activity: Activity) -> bool:
    """Ruling 4.8: what got past admission, except what the budget refused."""
    if activity.error == _SUSPENDED:
        # Refused at the door there is no step yet; refused at the commit there is.
        return activity.step_number is not None
    return not (activity.error or "").startswith(_NOT_COUNTED)


def _mark(activity: Activity) -> str:
    if activity.decision == "BUDGET_EXCEEDED":
        return "e"
    if activity.decision in COMMITTED:
        return "."
    return "d" if activity.final and HTTP[activity.error or ""] == 200 else ""


def _read(row: Any) -> Callable[..., Any]:
    leaf = msgspec.json.decode(row["leaf"])
    assert leaf["activity_id"] == row["activity_id"]
    get: Callable[..., Any] = leaf.get
    return get


class _Vault(NamedTuple):
    """What opens the content of a directory that nobody is using."""

    master: Master
    kept: dict[str, bytes | None]

    def content(self, row: Any) -> dict[str, Any] | None:
        """The content beside a leaf, which is what the leaf has committed to; None once it is gone."""
        if not row["payload"]:
            return None
        if row["subject_id"] is None:
            assert _read(row)("v") == 1
            return _object(row["payload"])
        kept = self.kept[row["subject_id"]]
        if kept is None:
            return None
        key: SubjectKey = self.master.unwrap(row["subject_id"], kept)
        text = key.open(row["activity_id"], row["payload"])
        assert _read(row)("commitment") == key.commitment(row["activity_id"], text)
        return _object(text)


def _object(text: str) -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(text)
    return read


def said_by(signature: str) -> dict[str, Any]:
    """The head that is kept as its signature alone."""
    payload = signature.split(".")[1]
    said: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return {**said, "signature": signature}


def _activity(row: Any, vault: _Vault) -> Activity:
    leaf = _read(row)
    assert leaf("decision") == row["decision"]
    found = vault.content(row)
    content = found or {}
    error = content.get("error") or {}
    return Activity(
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
        error.get("final", False) if found is not None else leaf("error") in _FINAL,
        int(row["at"] // DAY),
        found is not None,
        error.get("check") == ErrorCode.INTERNAL.check,
    )


def _change(row: Any) -> Change:
    leaf = _read(row)
    assert leaf("event") == row["event"]
    assert row["decision"] == ""
    return Change(
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
