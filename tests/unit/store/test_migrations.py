"""A database of every earlier version is migrated and continues to work.

`rows_NNNN.sql` holds the rows as version NNNN wrote them; `record_database.py` records those of the newest version,
before a migration is added.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from qwed.gate import Gate, open_gate
from qwed.kernel.audit.issue import attestation_of, extras_in
from qwed.kernel.bootstrap import open_services
from qwed.ledger import leaf
from qwed.ledger.attestation_verifier import check_attestation, check_receipt
from qwed.ledger.keyring import open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model import sha256_of
from qwed.model.clock import DAY
from qwed.settings import Settings
from qwed.store import log
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrate, migrations
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.fault_injection import FailingProxy
from tests.support.manual_clock import NOON, ManualClock
from tests.unit.store.record_database import HERE, lay_out, record, rows_of

EARLIER = [number for number, _script in migrations()[:-1]]
ACCOUNTANT, JANITOR = "agent_756d9f458a30936d1ad018da", "agent_87ef8e65245efc00540551b8"
FIRST = f"agent_id IN ('{ACCOUNTANT}', '{JANITOR}')"
"""Agents of the first organisation, which every version has; rows that exist since version 3 are of a second one."""
SUM = {"type": "calculate", "query": "2+2"}


class Old(NamedTuple):
    """Data directory of an earlier version."""

    directory: Path
    manual_clock: ManualClock
    version: int = 0

    def gate(self) -> Gate:
        return open_gate(self.directory, clock=self.manual_clock.clock())

    def columns(self, table: str, which: str) -> str:
        """Return these columns; for `*`, all that the table has now."""
        return (
            ", ".join(name for (name,) in self.all(f"SELECT name FROM pragma_table_info('{table}')"))
            if which == "*"
            else which
        )

    def all(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(self.directory / FILE_NAME)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


@pytest.fixture(params=EARLIER)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    directory = tmp_path / "data"
    lay_out(directory, request.param)
    return Old(directory, ManualClock(NOON), request.param)


without_a_tree = pytest.mark.parametrize("old", [1, 2, 3], indirect=True)
"""Versions before 4, which had no signed log and no keyed conversation names."""


@pytest.fixture
def gate(old: Old) -> Iterator[Gate]:
    with old.gate() as opened:
        yield opened


def test_every_earlier_version_has_its_rows() -> None:
    assert [int(file.stem[5:]) for file in sorted(HERE.glob("rows_*.sql"))] == EARLIER


def test_what_is_recorded_of_today_can_be_brought_up_later(tmp_path: Path) -> None:
    newest = migrations()[-1][0]
    lay_out(tmp_path / "before", EARLIER[-1])
    Old(tmp_path / "before", ManualClock(NOON)).gate().close()
    record(tmp_path / "before", tmp_path)
    lay_out(tmp_path / "after", newest, tmp_path)
    with Old(tmp_path / "after", ManualClock(NOON)).gate() as gate:
        assert gate.get_agent_budget(ACCOUNTANT)["cost"]["held_usd"] == 0.5
        assert gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "n", "step_number": 1}).decision == "APPROVED"
    _tree(tmp_path / "after")


UNCHANGED = {
    "organisations": "organisation_id, name, created_at",
    "keys": "*",
    "agents": "*",
    "tools": "*",
    "conversations": "agent_id, last_step, steps",
    "activities": "sequence, organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload",
    "tallies": "agent_id, day, decision, actions, cost",
    "approvals": "approval_id, activity_id, state, cost, tokens, high_risk_calls, created_at, expires_at",
    "usage": "agent_id, hour, day, requests_hour, requests_day, cost_day, tokens_day, pending_cost, pending_tokens",
}
SINCE = {
    2: {},
    3: {
        "approvals": "approval_id, kind, requested_by, request, resolution, resolved_in",
        "executions": "*",
        "webhooks": "*",
        "outbox": "*",
        "jobs": "job_id, organisation_id, asked_by, role, max_parallel, fail_fast, total, created_at, expires_at",
        "job_items": "*",
    },
}
"""Tables that have rows since a version."""


RENAMED = {"tallies": "daily_totals", "asked_by": "requested_by", "row": "definition"}
"""Tables and columns that have another name since version 7."""
RENAMED_IN = 7


def renamed(statement: str) -> str:
    """Return a statement about a version before 7 as later versions read it."""
    return re.sub("|".join(rf"\b{name}\b" for name in RENAMED), lambda name: RENAMED[name[0]], statement)


def test_nothing_that_was_there_is_changed_or_lost(old: Old) -> None:
    since = [*UNCHANGED.items(), *(item for number in SINCE if number <= old.version for item in SINCE[number].items())]
    if old.version >= RENAMED_IN:
        since = [(renamed(table), renamed(columns)) for table, columns in since]
    earlier = [f"SELECT {old.columns(table, columns)} FROM {table} ORDER BY 1, 2, 3" for table, columns in since]
    before = [old.all(statement) for statement in earlier]
    assert all(before), "every table has rows"
    old.gate().close()
    for statement, rows in zip(map(renamed, earlier), before, strict=True):
        assert old.all(statement) == rows, statement
    assert old.all("PRAGMA user_version") == [(migrations()[-1][0],)]
    assert old.all("PRAGMA integrity_check") == [("ok",)]
    assert old.all("PRAGMA foreign_key_check") == []


def test_a_database_that_was_brought_up_has_the_tables_of_a_new_one(old: Old, tmp_path: Path) -> None:
    """Column by column, because some rows are written by position."""
    old.gate().close()
    open_gate(tmp_path / "new").close()
    new = Old(tmp_path / "new", old.manual_clock)
    shape = (
        'SELECT m.name, t.cid, t.name, t.type, t."notnull", t.dflt_value, t.pk '
        "FROM sqlite_schema m, pragma_table_info(m.name) t WHERE m.type IN ('table', 'view') ORDER BY 1, 2"
    )
    assert old.all(shape) == new.all(shape)
    indexes = "SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') ORDER BY 1"
    assert old.all(indexes) == new.all(indexes)


def test_what_waited_for_a_person_is_counted(old: Old) -> None:
    old.gate().close()
    assert dict(old.all(f"SELECT agent_id, open_approvals FROM usage WHERE {FIRST}")) == {ACCOUNTANT: 2, JANITOR: 2}
    assert old.all(f"SELECT DISTINCT recent_flags, denial_cooldown, exceeded_times FROM usage WHERE {FIRST}") == [
        ("", 0, "")
    ]


def test_what_spoke_for_an_agent_speaks_for_it_still(old: Old) -> None:
    """The time of a level change in an earlier version is unknown, so its whole log counts."""
    old.gate().close()
    rows = old.all(f"SELECT agent_id, level_since, actions, denied, attestations FROM usage WHERE {FIRST} ORDER BY 1")
    counted = (
        "SELECT agent_id, 0.0, sum(decision != 'BUDGET_EXCEEDED'), sum(decision = 'DENIED'), "
        f"sum(leaf ->> 'attestation_id' IS NOT NULL) FROM activities WHERE {FIRST} GROUP BY 1 ORDER BY 1"
    )
    assert rows == old.all(counted)
    assert rows[0] == (ACCOUNTANT, 0.0, 9, 3, 2)


def test_counters_have_no_value_of_their_own(old: Old) -> None:
    """A row that lacks one must fail rather than start at 0."""
    old.gate().close()
    columns = old.all("SELECT name, \"notnull\", dflt_value FROM pragma_table_info('usage')")
    assert [(null, default) for _name, null, default in columns[1:]] == [(1, None)] * 19


def test_the_counters_go_on(gate: Gate) -> None:
    cost = gate.get_agent_budget(ACCOUNTANT)["cost"]
    assert (cost["current_daily_usd"], cost["held_usd"]) == (0.02, 0.5)
    answer = gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "new", "step_number": 1})
    assert answer.decision == "APPROVED"
    cost = gate.get_agent_budget(ACCOUNTANT)["cost"]
    assert (cost["current_daily_usd"], cost["held_usd"]) == (0.03, 0.5)
    dear = {**SUM, "cost": {"usd": 4.48}}
    refused = gate.verify_action(ACCOUNTANT, dear, {"conversation_id": "new", "step_number": 2})
    assert refused.decision == "BUDGET_EXCEEDED", "what waits holds its cost as before"


def test_conversations_go_on(gate: Gate) -> None:
    replay = gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "today", "step_number": 2})
    assert replay.error["code"] == "QWED-AGENT-LOOP-002"
    steps = [gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "today", "step_number": n}) for n in (3, 4, 5)]
    assert [step.decision for step in steps] == ["APPROVED", "APPROVED", "DENIED"], "a loop is counted anew"
    assert steps[-1].error["code"] == "QWED-AGENT-LOOP-003"


@without_a_tree
def test_conversations_are_filed_under_names_that_tell_nobody(old: Old) -> None:
    before = old.all("SELECT agent_id, conversation_id FROM conversations ORDER BY 1, 2")
    with old.gate() as gate:
        named = sorted((agent_id, gate.services.vault.fingerprint(name)) for agent_id, name in before)
    assert old.all("SELECT agent_id, conversation_id FROM conversations ORDER BY 1, 2") == named


def test_a_retry_of_before_is_neither_answered_in_the_clear_nor_charged_again(old: Old) -> None:
    """Earlier answers were stored in clear text for a day: they are deleted, and a retry is a replay."""
    options = {"require_attestation": True}
    context = {"conversation_id": "today", "step_number": 1}
    with old.gate() as gate:
        before = gate.get_agent_budget(ACCOUNTANT)["cost"]
        again = gate.verify_action(ACCOUNTANT, SUM, context, options, idempotency_key="first")
        assert (again.decision, again.error["code"]) == ("DENIED", "QWED-AGENT-LOOP-002")
        assert gate.get_agent_budget(ACCOUNTANT)["cost"] == before
    assert old.all("SELECT * FROM idempotency_keys") == []


def test_lists_and_summaries_show_what_was_before(gate: Gate) -> None:
    listed = gate.get_agent_activity(ACCOUNTANT)
    assert [entry.decision for entry in listed] == [
        "BUDGET_EXCEEDED",
        *("DENIED", "PENDING", "PENDING", "DENIED", "DENIED"),
        *("APPROVED",) * 4,
    ]
    assert [agent["agent_id"] for agent in gate.list_agents()] == [ACCOUNTANT, JANITOR]
    tally = gate.services.store.activity_summary(ACCOUNTANT, None, None)
    assert tally[:7] == (10, 4, 3, 0, 2, 1, 40_000)
    assert len(gate.list_approvals(state="pending")) == 4


def test_a_summary_counts_attestations_alike_however_it_is_cut(gate: Gate) -> None:
    """Whole days have stored totals; the rest of a day is counted from the log."""
    store = gate.services.store
    whole = store.activity_summary(ACCOUNTANT, None, None)
    pieces = [store.activity_summary(ACCOUNTANT, None, NOON - 1), store.activity_summary(ACCOUNTANT, NOON - 1, None)]
    assert whole.attestations == 2
    assert sum(piece.attestations for piece in pieces) == 2


def test_who_asked_before_is_who_asked_now(old: Old) -> None:
    """The requester cannot approve (P10), also after an upgrade."""
    old.gate().close()
    rows = old.all("SELECT p.requested_by, a.leaf ->> 'by' FROM approvals p JOIN activities a USING (activity_id)")
    assert [requested for requested, _by in rows] == [by for _requested, by in rows]


@pytest.mark.parametrize(
    ("settle", "decision", "used", "held"),
    [(Gate.approve, "APPROVED", 0.27, 0.25), (Gate.reject, "DENIED", 0.02, 0.25)],
    ids=["approved", "rejected"],
)
def test_what_waited_before_is_settled_after(
    old: Old, settle: Callable[..., Any], decision: str, used: float, held: float
) -> None:
    with old.gate() as gate:
        oldest = gate.list_approvals(state="pending", agent_id=ACCOUNTANT)[-1]
        resolved = settle(gate, oldest["approval_id"], "asked before, decided now")
        action = gate.get_action(ACCOUNTANT, oldest["action_id"])
        assert (action.decision, action.first_decision) == (decision, "PENDING")
        assert (action.attestation is not None) == (decision == "APPROVED")
        cost = gate.get_agent_budget(ACCOUNTANT)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (used, held)
        assert resolved["state"] in ("approved", "rejected")
        assert resolved["resolution"]["reason"] == "asked before, decided now"
    with old.gate() as gate:
        listed = next(one for one in gate.list_approvals() if one["approval_id"] == oldest["approval_id"])
        assert listed["resolution"] == resolved["resolution"]
    row = DataDirectoryCheck(old.directory).approval(oldest["approval_id"])
    assert "asked before" not in row["resolution"], "what is said from now on is sealed"


def test_what_waited_before_runs_out_after(old: Old) -> None:
    old.manual_clock.advance(86_400)
    with old.gate() as gate:
        assert gate.get_agent_budget(ACCOUNTANT)["cost"]["held_usd"] == 0
        assert gate.get_agent_budget(JANITOR)["cost"]["held_usd"] == 0
        assert [one["state"] for one in gate.list_approvals()] == ["expired"] * 4
    assert dict(old.all(f"SELECT agent_id, open_approvals FROM usage WHERE {FIRST}")) == {ACCOUNTANT: 0, JANITOR: 0}


def test_the_log_goes_on_without_a_gap(old: Old) -> None:
    with old.gate() as gate:
        gate.suspend_agent(JANITOR, "enough")
        gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "new", "step_number": 1})
    books = DataDirectoryCheck(old.directory)
    books.require_an_unbroken_log()
    assert len(books.log) == rows_of(old.version).count('INSERT INTO "activities"') + 2


def test_bringing_up_twice_changes_nothing(old: Old) -> None:
    old.gate().close()
    tables = [table for (table,) in old.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
    before = [old.all(f"SELECT * FROM {table}") for table in tables]
    old.gate().close()
    assert [old.all(f"SELECT * FROM {table}") for table in tables] == before


def test_a_cut_in_the_middle_of_a_migration_leaves_the_version_before_it(old: Old) -> None:
    following = next(script for number, script in migrations() if number > old.version)
    connection = sqlite3.connect(old.directory / FILE_NAME, isolation_level=None)
    connection.executescript(f"BEGIN IMMEDIATE;\n{following}")
    connection.close()  # without a commit, as after a power failure
    assert old.all("PRAGMA user_version") == [(old.version,)]
    with old.gate() as gate:
        assert gate.get_agent_budget(ACCOUNTANT)["cost"]["held_usd"] == 0.5


# The log becomes a tree


def _tree(directory: Path) -> None:
    """Assert that every leaf is in a tree under heads that our keys signed, and every step is counted once."""
    books = DataDirectoryCheck(directory)
    books.require_an_unbroken_log()
    books.require_a_signed_tree()
    books.require_each_step_once()


def test_leaves_of_before_get_their_tree_and_what_follows_grows_on_it(old: Old) -> None:
    with old.gate() as gate:
        first, store = gate.organisation_id, gate.services.store
        count = old.all(f"SELECT count(*) FROM activities WHERE organisation_id = '{first}'")[0][0]
        assert store.log_size(first) == count > 0
        answer = gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "new", "step_number": 1})
        assert (answer.attestation["index"], answer.attestation["head"]["size"]) == (count, count + 1)
        assert check_receipt(answer.attestation, gate.services.signer.keyring.public_keys()).valid
    _tree(old.directory)


def test_an_attestation_of_before_can_be_issued_again_under_the_first_head(old: Old) -> None:
    with old.gate() as gate:
        services = gate.services
        listed = [entry for entry in gate.get_agent_activity(ACCOUNTANT) if entry.attestation_id is not None]
        for entry in listed:
            record = services.store.find_attestation(entry.attestation_id)
            assert record is not None
            stored = leaf.decode(record.leaf)
            content = msgspec.json.decode(services.vault.content(record, stored.activity_id).text)
            location = (record.organisation_id, record.log_index, services)
            token = attestation_of(stored, extras_in(stored, content), *location)
            keys = services.signer.keyring.public_keys()
            checked = check_attestation(token, keys, now=old.manual_clock.now, leeway=DAY)
            assert (checked.valid, checked.claims and checked.claims["jti"]) == (True, entry.attestation_id)
        assert len(listed) == 2


@without_a_tree
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("where", ["before a batch", "inside a batch"])
def test_a_start_that_was_cut_short_while_the_tree_is_made_is_gone_on_from(
    old: Old, monkeypatch: pytest.MonkeyPatch, nth: int, where: str
) -> None:
    monkeypatch.setattr(log, "MAX_BACKLOG", 3)
    keyring = open_keyring(old.directory)
    sequencer: Any = Sequencer(keyring, old.manual_clock.clock())
    connection = sqlite3.connect(old.directory / FILE_NAME, isolation_level=None)
    migrate(connection)
    if where == "before a batch":
        sequencer = FailingProxy(sequencer, "integrate", MemoryError(), nth)
    else:
        raised = "SELECT RAISE(ABORT, 'cut') WHERE (SELECT count(*) FROM heads) >= "
        connection.execute(f"CREATE TEMP TRIGGER cut BEFORE INSERT ON main.heads BEGIN {raised}{nth - 1}; END")
    with pytest.raises((MemoryError, sqlite3.IntegrityError)):
        log.integrate_backlog(connection, sequencer)
    assert connection.execute("SELECT count(*) FROM heads").fetchone() == (nth - 1,)
    assert connection.execute("SELECT count(*) FROM activities WHERE nodes != ''").fetchone() == (3 * (nth - 1),)
    connection.close()
    old.gate().close()
    _tree(old.directory)
    assert old.all("SELECT 1 FROM meta WHERE name = 'log_behind'") == []


def test_once_the_tree_is_made_a_start_signs_nothing_more(old: Old) -> None:
    old.gate().close()
    heads = old.all("SELECT * FROM heads ORDER BY 1, 2")
    old.gate().close()
    assert old.all("SELECT * FROM heads ORDER BY 1, 2") == heads


# Clear text of version 3 stays readable


SECOND = "org_3d5be1c07f2a49e8b6c4d190"
CLERK, GUEST = "agent_1beb50f4882ef65b9ea8b263", "agent_358b32f179376a96d2df9ded"
of_version_3 = pytest.mark.parametrize("old", [3], indirect=True)


@pytest.fixture
def second(old: Old) -> Iterator[Gate]:
    """Gate of the second organisation."""
    settings = Settings(data_dir=old.directory, trust_min_days=0, trust_min_actions=0, trust_max_denial_rate=1.0)
    opened = open_services(settings, clock=old.manual_clock.clock())
    with Gate(opened._replace(organisation_id=SECOND)) as gate:
        yield gate


@of_version_3
def test_what_was_said_before_is_still_shown(second: Gate) -> None:
    reasons = {one["approval_id"]: one["resolution"] and one["resolution"]["reason"] for one in second.list_approvals()}
    assert sorted(filter(None, reasons.values())) == ["it may go out", "not today"]
    changes = [
        entry.change["reason"]
        for entry in second.get_agent_activity(CLERK, kind="change")
        if entry.change.get("reason")
    ]
    assert sorted(changes) == ["back again", "on leave", "security_policy_violation"]


@of_version_3
def test_what_became_of_an_action_before_is_still_shown(second: Gate) -> None:
    done = {
        agent: [one.execution for one in second.get_agent_activity(agent) if one.execution] for agent in (CLERK, GUEST)
    }
    assert [execution["result_hash"][:12] for execution in (*done[CLERK], *done[GUEST])] == [
        "sha256:d50d1",
        "sha256:7a3a9",
    ]


@of_version_3
def test_a_request_for_trust_of_before_is_read_and_granted_after(second: Gate) -> None:
    [wish] = [one for one in second.list_approvals(state="pending") if one["kind"] == "trust_elevation"]
    assert wish["request"]["justification"] == "does well"
    assert second.approve(wish["approval_id"], "so it is")["state"] == "approved"
    assert second.get_agent(GUEST)["trust_level"] == 2


@of_version_3
def test_an_execution_of_what_was_permitted_before_is_told_after(second: Gate) -> None:
    [waiting] = [one for one in second.list_approvals(state="pending") if one["kind"] == "action"]
    second.approve(waiting["approval_id"], "go on")
    logged = second.log_execution(GUEST, waiting["action_id"], True, {"sent": 1})
    assert logged["execution"]["result_hash"] == f"sha256:{sha256_of({'sent': 1})}"


@of_version_3
def test_a_batch_of_before_is_shown_and_an_open_one_is_gone_on_with(old: Old, second: Gate) -> None:
    finished, waiting = (job_id for (job_id,) in old.all("SELECT job_id FROM jobs ORDER BY created_at"))
    bell = second.services.waiters.wait(waiting)
    assert [item["result"]["verified"] for item in second.get_batch_status(finished)["items"]] == [True, False]
    bell.wait(60)
    done = second.get_batch_status(waiting)
    assert [(item["query"], item["result"]["verified"]) for item in done["items"]] == [
        ("3+3=6", True),
        ("3+3=7", False),
    ]
