"""The role from docs/postgresql.md can do everything a server does, and cannot change the log."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.change_parts import (
    AttestationRevoked,
    ExecutionLogged,
    ListChanged,
    SubjectErased,
    ToolChanged,
    Webhook,
    WebhookChanged,
)
from qwed.domain.write_set import Committed, IdempotentAnswer, Notice
from qwed.model import Decision
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.migrate import migrations
from qwed.store.postgres.connect import Connection, open_connection
from qwed.store.postgres.schema import has_started, migrate
from qwed.store.protocol import DatabaseUnreachableError, DataSubject
from tests.support.manual_clock import ManualClock
from tests.support.postgres_binaries import installation
from tests.support.postgres_server import Databases
from tests.support.stores import CENT, ORGANISATION, PostgresStoreFixture, agent_of

PAGE = Path(__file__).parents[4] / "docs" / "postgresql.md"
ROLE = "qwed_plain_server"


@pytest.fixture
def plain(postgres: Databases, template: str) -> Iterator[str]:
    """URL of a database with our tables, for the role of the page."""
    pattern = r"qwed_owner@127\.0\.0\.1/qwed <<'SQL'\n(GRANT USAGE ON SCHEMA.*?)\nSQL\n"
    granted = re.search(pattern, PAGE.read_text(), re.DOTALL)
    assert granted is not None
    script = re.sub(r"\b(TO|FROM) qwed;", rf"\1 {ROLE};", granted[1])
    url = postgres.database(like=template)
    program = installation() / "bin" / "psql"
    statements = f"CREATE ROLE {ROLE} LOGIN;\n{script}\n"
    subprocess.run([program, "-q", "-v", "ON_ERROR_STOP=1", url], input=statements, text=True, check=True)
    yield url.replace("postgres@", f"{ROLE}@")
    postgres.drop(url)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"DROP ROLE {ROLE}")


def test_a_server_that_may_not_bring_the_tables_up_says_who_may(plain: str) -> None:
    newest = migrations("postgres")[-1][0]
    with psycopg.connect(plain.replace(f"{ROLE}@", "postgres@"), autocommit=True) as connection:
        connection.execute("DELETE FROM schema_versions WHERE number = %s", (newest,))
    message = f"^the database is at version {newest - 1}, and this qwed wants {newest}: run `qwed migrate` as the role"
    with pytest.raises(DatabaseUnreachableError, match=message):
        PostgresStoreFixture(plain, ManualClock())


@pytest.mark.parametrize("begun", [has_started, migrate])
def test_a_role_that_was_granted_nothing_is_told_so(plain: str, begun: Callable[[Connection], object]) -> None:
    with psycopg.connect(plain.replace(f"{ROLE}@", "postgres@"), autocommit=True) as connection:
        connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ROLE}")
    message = r"lacks a right: grant what docs/postgresql.md grants.* \(permission denied for table schema_versions\)$"
    with open_connection(plain) as connection, pytest.raises(DatabaseUnreachableError, match=message):
        begun(connection)


def test_a_server_does_everything_as_that_role(plain: str) -> None:
    store_fixture = PostgresStoreFixture(plain, ManualClock())
    store, now = store_fixture.store, store_fixture.manual_clock.now
    agent = store_fixture.register(agent_of())
    for step in (1, 2):
        assert isinstance(store_fixture.commit(agent, step), Committed)
    store.add_subject(DataSubject("sub_1", ORGANISATION, "name", b"key", now)).wait_result(30)
    reservation = store_fixture.reserve(agent, 3)
    answer = IdempotentAnswer("key", "hash", lambda _settled: b"answer", now + 60, "sub_1")
    receipt = store_fixture.settle(
        agent, reservation, Decision.APPROVED, CENT, memory=answer, subject_id="sub_1", attested=True
    )
    assert isinstance(receipt, Committed)
    waiting = store_fixture.pending(agent, 4)
    changes: list[tuple[Any, ...]] = [
        (store_fixture.resolved(waiting),),
        (ExecutionLogged("act_of_1", True, None, now),),
        (AttestationRevoked("att_1", ORGANISATION, "act_1", now),),
        (ToolChanged(ORGANISATION, "tool", b"row"),),
        (ListChanged(ORGANISATION, ListEntry(ListName.BLOCKS, "a", ""), True),),
        (ListChanged(ORGANISATION, ListEntry(ListName.BLOCKS, "a", ""), False),),
        (WebhookChanged(ORGANISATION, Webhook(ORGANISATION, "http://127.0.0.1:9", ("pending",), "s", now)),),
        (SubjectErased(ORGANISATION, "name", now, "stated"),),
    ]
    for parts in changes:
        assert isinstance(store_fixture.change(*parts), int), parts
    assert isinstance(store_fixture.change(notices=(Notice("ntc_1", "pending", "{}"),)), int)
    store.delivered("ntc_1", now).wait_result(30)
    job = BatchJob("job_1", ORGANISATION, "key", "owner", 1, False, 1, now, now + 1)
    store.add_job(job, [JobItem("job_1", 0, "query", "math", None)]).wait_result(30)
    store.finish_job("job_1", now).wait_result(30)
    assert store.drop_expired(now + 100, 10) is not None
    assert store.drop_content(now + 100, 100) is not None
    store.durable().wait_result(30)
    with psycopg.connect(plain) as connection:
        counts = connection.execute("SELECT count(*), count(nullif(payload, '')) FROM activities").fetchone()
        months = connection.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'activities'::regclass"
        ).fetchone()
    assert (counts, months) == ((store.leaves(ORGANISATION), 0), (4,))
    store.close()


FORBIDDEN = (
    "DELETE FROM activities",
    "UPDATE activities SET leaf = 'x'",
    "UPDATE activities SET log_index = 1",
    "UPDATE activities SET nodes = ''",
    "TRUNCATE activities",
    "DELETE FROM heads",
    "UPDATE heads SET signature = 'x'",
    "DELETE FROM activities_other",
    "UPDATE activities_other SET leaf = 'x'",
    "INSERT INTO schema_versions (number) VALUES (99)",
    "DELETE FROM schema_versions",
    "CREATE TABLE public.mine (x INT)",
    "CREATE FUNCTION public.mine() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
    "DROP TABLE activities",
    "ALTER TABLE activities DISABLE TRIGGER grow_logs",
    "ALTER TABLE activities DETACH PARTITION activities_other",
    "SELECT index_month('activities_other')",
    "SET session_replication_role = replica",
)


def test_that_role_takes_nothing_back(plain: str) -> None:
    with psycopg.connect(plain, autocommit=True) as connection:
        for statement in FORBIDDEN:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
