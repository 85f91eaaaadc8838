"""A database of every earlier version, with what its server wrote into it, is brought up and goes on where it was.

`rows_NNNN.sql` holds the rows as version NNNN wrote them; a new migration brings the rows of the version before it.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from qwed.gate import Gate, open_gate
from qwed.store.migrate import migrate, migrations
from qwed.store.sqlite import FILE_NAME
from tests.support.books import Books
from tests.support.clock import NOON, HandClock

HERE = Path(__file__).parent
EARLIER = [number for number, _script in migrations()[:-1]]
ACCOUNTANT, JANITOR = "agent_756d9f458a30936d1ad018da", "agent_87ef8e65245efc00540551b8"
SUM = {"type": "calculate", "query": "2+2"}


def rows_of(version: int) -> str:
    return (HERE / f"rows_{version:04}.sql").read_text()


class Old(NamedTuple):
    """A data directory as an earlier version left it."""

    directory: Path
    hands: HandClock
    version: int = 0

    def gate(self) -> Gate:
        return open_gate(self.directory, clock=self.hands.clock())

    def all(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(self.directory / FILE_NAME)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


@pytest.fixture(params=EARLIER)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o700)
    connection = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    assert migrate(connection, upto=request.param) == request.param
    connection.executescript(rows_of(request.param))
    connection.close()
    return Old(directory, HandClock(NOON), request.param)


@pytest.fixture
def gate(old: Old) -> Iterator[Gate]:
    with old.gate() as opened:
        yield opened


def test_every_earlier_version_has_its_rows() -> None:
    assert [int(file.stem[5:]) for file in sorted(HERE.glob("rows_*.sql"))] == EARLIER


UNCHANGED = {
    "organisations": "organisation_id, name, created_at",
    "keys": "*",
    "agents": "*",
    "tools": "*",
    "conversations": "*",
    "memories": "*",
    "activities": "sequence, organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload",
    "tallies": "agent_id, day, decision, actions, cost",
    "approvals": "approval_id, activity_id, action_hash, state, cost, tokens, high_risk_calls, created_at, expires_at",
    "usage": "agent_id, hour, day, requests_hour, requests_day, cost_day, tokens_day, pending_cost, pending_tokens",
}


def test_nothing_that_was_there_is_changed_or_lost(old: Old) -> None:
    before = {table: old.all(f"SELECT {columns} FROM {table} ORDER BY 1, 2") for table, columns in UNCHANGED.items()}
    assert all(before.values()), "every table has rows"
    old.gate().close()
    for table, columns in UNCHANGED.items():
        assert old.all(f"SELECT {columns} FROM {table} ORDER BY 1, 2") == before[table], table
    assert old.all("PRAGMA user_version") == [(migrations()[-1][0],)]
    assert old.all("PRAGMA integrity_check") == [("ok",)]
    assert old.all("PRAGMA foreign_key_check") == []


def test_a_database_that_was_brought_up_has_the_tables_of_a_new_one(old: Old, tmp_path: Path) -> None:
    """Column by column, so that what is written by place is written to the same place."""
    old.gate().close()
    open_gate(tmp_path / "new").close()
    new = Old(tmp_path / "new", old.hands)
    shape = (
        'SELECT m.name, t.cid, t.name, t.type, t."notnull", t.dflt_value, t.pk '
        "FROM sqlite_schema m, pragma_table_info(m.name) t WHERE m.type IN ('table', 'view') ORDER BY 1, 2"
    )
    assert old.all(shape) == new.all(shape)
    indexes = "SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') ORDER BY 1"
    assert old.all(indexes) == new.all(indexes)


def test_what_waited_for_a_person_is_counted(old: Old) -> None:
    old.gate().close()
    assert dict(old.all("SELECT agent_id, open_approvals FROM usage")) == {ACCOUNTANT: 2, JANITOR: 2}
    assert old.all("SELECT DISTINCT recent, rest, exceeded FROM usage") == [("", 0, "")]


def test_what_spoke_for_an_agent_speaks_for_it_still(old: Old) -> None:
    """Nobody knows when an earlier version changed a level, so all of its log counts, as it did then."""
    old.gate().close()
    kept = old.all("SELECT agent_id, since, actions, denied, attestations FROM usage ORDER BY 1")
    counted = (
        "SELECT agent_id, 0.0, sum(decision != 'BUDGET_EXCEEDED'), sum(decision = 'DENIED'), "
        "sum(leaf ->> 'attestation_id' IS NOT NULL) FROM activities GROUP BY 1 ORDER BY 1"
    )
    assert kept == old.all(counted)
    assert kept[0] == (ACCOUNTANT, 0.0, 9, 3, 2)


def test_counters_have_no_value_of_their_own(old: Old) -> None:
    """A row that lacks one must fail rather than begin anew."""
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
    loop = gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "today", "step_number": 3})
    assert loop.error["code"] == "QWED-AGENT-LOOP-003"


def test_a_retry_of_before_gets_its_answer_of_before(gate: Gate) -> None:
    options = {"require_attestation": True}
    place = {"conversation_id": "today", "step_number": 1}
    again = gate.verify_action(ACCOUNTANT, SUM, place, options, idempotency_key="first")
    assert (again.decision, again.action_id) == ("APPROVED", "act_01a0c3d56fa00000055be70f47")
    assert again.attestation is not None


def test_lists_and_summaries_show_what_was_before(gate: Gate) -> None:
    listed = gate.get_agent_activity(ACCOUNTANT)
    assert [entry.decision for entry in listed] == [
        "BUDGET_EXCEEDED",
        *("DENIED", "PENDING", "PENDING", "DENIED", "DENIED"),
        *("APPROVED",) * 4,
    ]
    assert [agent["agent_id"] for agent in gate.list_agents()] == [ACCOUNTANT, JANITOR]
    tally = gate.services.store.tally(ACCOUNTANT, None, None)
    assert tally[:7] == (10, 4, 3, 0, 2, 1, 40_000)
    assert len(gate.list_approvals(state="pending")) == 4


def test_a_summary_counts_attestations_alike_however_it_is_cut(gate: Gate) -> None:
    """Whole days are sums that are kept; what is left of a day is counted from the log."""
    store = gate.services.store
    whole = store.tally(ACCOUNTANT, None, None)
    pieces = [store.tally(ACCOUNTANT, None, NOON - 1), store.tally(ACCOUNTANT, NOON - 1, None)]
    assert whole.attestations == 2
    assert sum(piece.attestations for piece in pieces) == 2


def test_who_asked_before_is_who_asked_now(old: Old) -> None:
    """P10: whoever asked does not approve, and a new version is no way around it."""
    old.gate().close()
    asked = old.all("SELECT p.requested_by, a.leaf ->> 'by' FROM approvals p JOIN activities a USING (activity_id)")
    assert [requested for requested, _by in asked] == [by for _requested, by in asked]


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
        settled = settle(gate, oldest["approval_id"], "asked before, decided now")
        action = gate.get_action(ACCOUNTANT, oldest["action_id"])
        assert (action.decision, action.first_decision) == (decision, "PENDING")
        assert (action.attestation is not None) == (decision == "APPROVED")
        cost = gate.get_agent_budget(ACCOUNTANT)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (used, held)
        assert settled["state"] in ("approved", "rejected")
    row = Books(old.directory).approval(oldest["approval_id"])
    assert msgspec.json.decode(row["resolution"])["reason"] == "asked before, decided now"


def test_what_waited_before_runs_out_after(old: Old) -> None:
    old.hands.turn(86_400)
    with old.gate() as gate:
        assert gate.get_agent_budget(ACCOUNTANT)["cost"]["held_usd"] == 0
        assert gate.get_agent_budget(JANITOR)["cost"]["held_usd"] == 0
        assert [one["state"] for one in gate.list_approvals()] == ["expired"] * 4
    assert dict(old.all("SELECT agent_id, open_approvals FROM usage")) == {ACCOUNTANT: 0, JANITOR: 0}


def test_the_log_goes_on_without_a_gap(old: Old) -> None:
    with old.gate() as gate:
        gate.suspend_agent(JANITOR, "enough")
        gate.verify_action(ACCOUNTANT, SUM, {"conversation_id": "new", "step_number": 1})
    indexes = [index for _organisation, index, _event in Books(old.directory).log]
    assert indexes == list(range(len(indexes)))
    assert len(indexes) == len(rows_of(1).split('INSERT INTO "activities"')) - 1 + 2


def test_bringing_up_twice_changes_nothing(old: Old) -> None:
    old.gate().close()
    tables = [table for (table,) in old.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
    before = [old.all(f"SELECT * FROM {table}") for table in tables]
    old.gate().close()
    assert [old.all(f"SELECT * FROM {table}") for table in tables] == before


def test_a_cut_in_the_middle_of_a_migration_leaves_the_version_before_it(old: Old) -> None:
    script = migrations()[-1][1]
    connection = sqlite3.connect(old.directory / FILE_NAME, isolation_level=None)
    half = script[: script.rindex("CREATE TABLE")]
    assert half.count(";") > 1
    connection.executescript(f"BEGIN IMMEDIATE;\n{half}")
    connection.close()  # without a commit, as after a cut of power
    assert old.all("PRAGMA user_version") == [(old.version,)]
    with old.gate() as gate:
        assert gate.get_agent_budget(ACCOUNTANT)["cost"]["held_usd"] == 0.5
