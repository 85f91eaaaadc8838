"""Every query gives the same result in PostgreSQL as in SQLite, over the same history."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from qwed.cli import main
from qwed.domain import change_parts
from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.agent import AgentStatus
from qwed.domain.change_parts import ApprovalRequest, ChangePart, Webhook
from qwed.domain.policy_set import NO_POLICIES
from qwed.domain.write_set import Notice
from qwed.futures import Future
from qwed.ledger.keyring import open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model import Decision, Trust
from qwed.store import change_handlers, sql, token_buckets
from qwed.store.batch_job_table import JobTable
from qwed.store.copy.plan import tables as all_tables
from qwed.store.data_subjects import SubjectTable
from qwed.store.log import LogTable
from qwed.store.outbox import OutboxTable
from qwed.store.postgres.connect import open_connection
from qwed.store.postgres.dialect import translate
from qwed.store.protocol import ActivityQuery, ApprovalQuery
from qwed.store.sqlite import SqliteStore
from tests.support.manual_clock import ManualClock
from tests.support.postgres_server import Databases
from tests.support.store_parts import StoreParts
from tests.support.stores import agent_of, owner_key
from tests.unit.cli.full_organisation import create_full_history
from tests.unit.store.test_change_handlers import POLICIES

Row = tuple[Any, ...]


class There(OutboxTable, JobTable, LogTable, SubjectTable):
    """Read methods of a store, on PostgreSQL."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection

    def _one(self, statement: str, values: Row) -> Row | None:
        return next(iter(self._all(statement, values)), None)

    def _all(self, statement: str, values: Row) -> list[Row]:
        return self.connection.execute(translate(statement).encode(), values).fetchall()

    def _page(self, statement: str, values: Row, _payload: int) -> list[Row]:
        return self._all(statement, values)

    def _write(self, *statements: tuple[str, Row]) -> Future[None]:
        for statement, values in statements:
            self.connection.execute(translate(statement).encode(), values)
        ticket: Future[None] = Future()
        ticket.set_result(None)
        return ticket


class Past(NamedTuple):
    """The same history in both databases."""

    here: SqliteStore
    there: There
    agents: list[str]
    activities: list[str]
    organisations: list[str]
    moments: list[float]


class RecordedHistory(NamedTuple):
    """Data directory, and a copy of it in PostgreSQL; neither is open."""

    data: Path
    url: str


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, postgres: Databases) -> RecordedHistory:
    data, url = create_full_history(tmp_path_factory.mktemp("house")).data, postgres.database()
    assert main(["copy", "--from", f"sqlite:///{data}", "--to", url]) == 0
    return RecordedHistory(data, url)


@pytest.fixture(scope="module")
def past(recorded: RecordedHistory, tmp_path_factory: pytest.TempPathFactory, postgres: Databases) -> Iterator[Past]:
    """History for reads."""
    yield from _opened(recorded, tmp_path_factory.mktemp("past") / "data", postgres)


@pytest.fixture
def own(recorded: RecordedHistory, tmp_path: Path, postgres: Databases) -> Iterator[Past]:
    """History for writes."""
    yield from _opened(recorded, tmp_path / "data", postgres)


def _opened(recorded: RecordedHistory, data: Path, postgres: Databases) -> Iterator[Past]:
    shutil.copytree(recorded.data, data)
    url, clock = postgres.database(like=recorded.url), ManualClock().clock()
    here = SqliteStore(data, clock=clock, sequencer=Sequencer(open_keyring(data), clock))
    with open_connection(url) as connection:
        read = StoreParts(here).rows("SELECT agent_id, activity_id, organisation_id, at FROM activities")
        columns = [sorted(set(column)) for column in zip(*read, strict=True)]
        yield Past(here, There(connection), columns[0], columns[1], columns[2], columns[3])
    here.close()
    postgres.drop(url)


Look = Callable[[Any, Past], Any]
LOOKS: dict[str, Look] = {
    "find_activity": lambda store, past: [
        store.find_activity(agent, activity) for agent in past.agents for activity in past.activities[::7]
    ],
    "find_leaf": lambda store, past: [*map(store.find_leaf, past.activities)],
    "log_index_of": lambda store, past: [store.log_index_of(past.organisations[0], name) for name in past.activities],
    "attestations": lambda store, _past: [
        (store.find_attestation(found), store.revoked(found))
        for (found,) in StoreParts(store).rows(
            "SELECT attestation_id FROM activities WHERE attestation_id IS NOT NULL ORDER BY 1"
        )
    ],
    "daily totals": lambda store, past: [
        store.activity_summary(agent, since, until)
        for agent in past.agents
        for since in (None, past.moments[20])
        for until in (None, past.moments[-20], past.moments[20] + 1)
    ],
    "changes": lambda store, past: [
        store.changes(name, limit, before) for name in past.organisations for limit in (1, 500) for before in (None, 40)
    ],
    "approvals": lambda store, past: [
        store.list_approvals(
            ApprovalQuery(organisation_id=name, limit=50, now=now, state=state, agent_id=agent, before=before)
        )
        for name in past.organisations
        for now in (0.0, past.moments[-1])
        for state in (None, "pending", "expired", "approved")
        for agent in (None, past.agents[0])
        for before in (None, "apr_f")
    ],
    "find_approval": lambda store, _past: [
        store.find_approval(found)
        for (found,) in StoreParts(store).rows("SELECT approval_id FROM approvals ORDER BY 1")
    ],
    "entries": lambda store, past: [store.entries(name, 3, 200) for name in past.organisations],
    "heads": lambda store, past: [
        (
            *(store.log_size(name), store.leaves(name), store.latest_head(name)),
            *(store.first_head(name, 5), store.head_at(name, 5), store.head_at(name, 10**6)),
            store.nodes(name, [(0, 3), (1, 1), (2, 0)]),
        )
        for name in past.organisations
    ],
    "latest_heads": lambda store, _past: (store.latest_heads(), store.organisation_heads()),
    "subjects": lambda store, _past: [
        (store.subject(found), store.find_subject(organisation, name))
        for found, organisation, name in StoreParts(store).rows(
            "SELECT subject_id, organisation_id, name FROM subjects ORDER BY 1"
        )
    ],
    "jobs": lambda store, past: (
        *(store.find_job("job_1"), store.job_items("job_1"), store.open_jobs(), store.find_job("job_2")),
        [store.count_open_jobs(name) for name in past.organisations],
    ),
    "outbox": lambda store, past: (
        store.due_deliveries(1e9, 10),
        store.due_deliveries(1.0, 10),
        [store.webhook_record(name) for name in past.organisations],
    ),
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_answer_is_the_same(past: Past, look: str) -> None:
    here = LOOKS[look](past.here, past)
    assert here, "something is found"
    assert LOOKS[look](past.there, past) == here


@pytest.mark.parametrize("kind", ["all", "decision", "change", "halt"])
@pytest.mark.parametrize("decision", [None, Decision.APPROVED, "DENIED"])
def test_a_page_of_activities_is_the_same(past: Past, kind: str, decision: str | None) -> None:
    seen = 0
    for agent in (*past.agents, "agent_x"):
        for since, until in ((None, None), (past.moments[10], past.moments[-10])):
            query = ActivityQuery(
                agent_id=agent, limit=7, since=since, until=until, decision=decision, kind=kind, before=None
            )
            pages = 0
            while page := past.here.activities(query):
                assert past.there.activities(query) == page
                seen, pages = seen + len(page), pages + 1
                query = query._replace(before=page[-1].log_index)
            assert past.there.activities(query) == []
    assert seen or (kind != "all" and decision is not None)


WRITES: dict[str, Look] = {
    "an item is finished": lambda store, _past: [
        store.finish_item(item._replace(state="failed", error="e", latency_ms=0.1, result=None))
        for item in store.job_items("job_1")
    ],
    "a job is finished": lambda store, _past: store.finish_job("job_1", 7.5),
    "a notice is postponed": lambda store, _past: store.postpone("ntc_1", 9.5, "no answer"),
    "a notice is given up": lambda store, _past: store.give_up("ntc_1", "no answer"),
    "a notice has arrived": lambda store, _past: store.delivered("ntc_1", 9.5),
    "content is dropped": lambda store, past: store.drop_content(past.moments[60], 40, past.moments[-1]),
    "content is dropped once more": lambda store, past: store.drop_content(past.moments[60], 1_000),
    "what is over is dropped": lambda store, _past: store.drop_expired(2e9, 100),
    "all of it is dropped": lambda store, _past: store.drop_expired(5e9, 100),
}


NEW = "org_new"
APPROVAL = ApprovalRequest("apr_new", 1, 2, 3, 4.5, 5.5, "key_9", "trust_elevation", "sealed")
HOOK = Webhook(NEW, "http://127.0.0.1:9/", ("pending", "failed"), "secret", 1.5)
AGENT, KEY = agent_of("agent_new"), owner_key("key_new", NEW, "qwed_live_new")
LATER = replace(AGENT, trust=Trust.TRUSTED, status=AgentStatus.SUSPENDED)
PARTS: tuple[ChangePart, ...] = (
    change_parts.OrganisationAdded(NEW, "new", 1.5),
    change_parts.AgentAdded(replace(AGENT, organisation_id=NEW)),
    change_parts.AgentChanged(AGENT, LATER),
    change_parts.ElevationRequested(NEW, "agent_new", "act_new", APPROVAL),
    change_parts.ApprovalResolved("apr_new", "agent_new", "action", "approved", "{}", "act_2", 1, 2, 3, 6.5),
    change_parts.ExecutionLogged("act_new", True, None, 7.5),
    change_parts.KeyAdded(KEY),
    change_parts.KeyRevoked(KEY, 8.5),
    change_parts.OrganisationHalted(NEW, 9.5),
    change_parts.OrganisationHalted(NEW, None),
    change_parts.ListChanged(NEW, ListEntry(ListName.PAIRS, "a", "b"), True),
    change_parts.ListChanged(NEW, ListEntry(ListName.BLOCKS, "a", ""), True),
    change_parts.ListChanged(NEW, ListEntry(ListName.PAIRS, "a", "b"), False),
    change_parts.ToolChanged(NEW, "tool", b"\x00"),
    change_parts.ToolChanged(NEW, "tool", b"\xff"),
    change_parts.PolicySetChanged(NEW, NO_POLICIES, POLICIES, 9.75, "key_9"),
    change_parts.AttestationRevoked("att_new", NEW, "act_3", 10.5),
    change_parts.WebhookChanged(NEW, HOOK),
    change_parts.WebhookChanged(NEW, HOOK._replace(url="http://127.0.0.1/", last_error="e")),
)
NOTICES = (Notice("ntc_2", "pending", '{"principal_id":"ops"}'), Notice("ntc_3", "failed", '{"principal_id":"bob"}'))


def _changed(part: ChangePart) -> Look:
    return lambda store, _past: StoreParts(store).submit(*change_handlers.statements_of((part,)))


def _erased(store: Any, _past: Past) -> Any:
    row = StoreParts(store).rows(
        "SELECT organisation_id, name FROM subjects WHERE key IS NOT NULL ORDER BY subject_id"
    )[0]
    return StoreParts(store).submit(*change_handlers.statements_of((change_parts.SubjectErased(*row, 3.5, "ops"),)))


CHANGES: dict[str, Look] = {
    **{f"{type(part).__name__} {number}": _changed(part) for number, part in enumerate(PARTS)},
    "notices": lambda store, _past: StoreParts(store).submit(*change_handlers.notice_statements(NEW, NOTICES, 11.5)),
    "notices of nobody": lambda store, _past: StoreParts(store).submit(
        *change_handlers.notice_statements("org_x", NOTICES[:1], 11.5)
    ),
    "notices too many": lambda store, _past: StoreParts(store).submit(
        ("UPDATE webhooks SET waiting = ? WHERE organisation_id = ?", (change_handlers.MAX_UNDELIVERED, NEW)),
        *change_handlers.notice_statements(NEW, (Notice("ntc_4", "failed", "{}"),), 12.5),
    ),
    "a subject is erased": _erased,
    "no webhook any more": _changed(change_parts.WebhookChanged(NEW, None)),
    "full buckets": lambda store, _past: StoreParts(store).submit(
        (token_buckets.DELETE_FULL, (1e308,)), (token_buckets.DELETE_FULL, (2e308,))
    ),
    "a chain grows": lambda store, _past: StoreParts(store).submit(
        *[(sql.PUT_CHAIN, (NEW, "c", n, "att")) for n in (1, 2)]
    ),
    "expired answers": lambda store, _past: StoreParts(store).submit((sql.DELETE_SOME_EXPIRED_ANSWERS, (1.0,))),
    "resolutions are forgotten": lambda store, past: store.drop_content(past.moments[-1], 10_000, past.moments[-1]),
}


@pytest.mark.parametrize("writes", [WRITES, CHANGES], ids=["the tables' own", "changes"])
def test_what_is_written_is_the_same(own: Past, writes: dict[str, Look]) -> None:
    """One write after another, on a history that changes with them."""
    for name, write in writes.items():
        done = write(own.here, own)
        own.here.durable().wait_result(30)
        write(own.there, own)
        assert done is not None, name
        _require_the_same(own, name)


def _require_the_same(past: Past, when: str) -> None:
    for table in all_tables():
        statement = f"SELECT {table.column_list} FROM {table.name}"
        assert _plain(StoreParts(past.there).rows(statement)) == _plain(StoreParts(past.here).rows(statement)), (
            when,
            table.name,
        )


def _plain(rows: list[Row]) -> list[Any]:
    """Return JSON with sorted members."""
    return sorted((tuple(_value(value) for value in row) for row in rows), key=repr)


def _value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith('{"'):
        return sorted(value.strip("{}").replace(" ", "").split(","))
    return value
