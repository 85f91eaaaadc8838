"""The role that docs/postgresql.md makes for servers can do what a server does, and take nothing back from the log."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from qwed.store.boundary import Entry, ListName
from qwed.store.job import Job, JobItem
from qwed.store.migrate import migrations
from qwed.store.parts import (
    AttestationRevoked,
    Executed,
    ListChanged,
    SubjectErased,
    ToolChanged,
    Webhook,
    WebhookChanged,
)
from qwed.store.postgres.opening import Connection, connected
from qwed.store.postgres.schema import is_begun, migrate
from qwed.store.protocol import Memory, Notice, Settled, Subject, Unreachable
from qwed.words import Decision
from tests.support.clock import HandClock
from tests.support.postgres_binaries import installation
from tests.support.postgres_server import Databases
from tests.support.stores import CENT, ORGANISATION, SharedShop, agent_of

PAGE = Path(__file__).parents[4] / "docs" / "postgresql.md"
ROLE = "qwed_plain_server"


@pytest.fixture
def plain(postgres: Databases, template: str) -> Iterator[str]:
    """The address of a database with our tables, for the role of the page."""
    wanted = r"qwed_owner@127\.0\.0\.1/qwed <<'SQL'\n(GRANT USAGE ON SCHEMA.*?)\nSQL\n"
    granted = re.search(wanted, PAGE.read_text(), re.DOTALL)
    assert granted is not None
    script = re.sub(r"\b(TO|FROM) qwed;", rf"\1 {ROLE};", granted[1])
    url = postgres.database(like=template)
    program = installation() / "bin" / "psql"
    said = f"CREATE ROLE {ROLE} LOGIN;\n{script}\n"
    subprocess.run([program, "-q", "-v", "ON_ERROR_STOP=1", url], input=said, text=True, check=True)
    yield url.replace("postgres@", f"{ROLE}@")
    postgres.drop(url)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"DROP ROLE {ROLE}")


def test_a_server_that_may_not_bring_the_tables_up_says_who_may(plain: str) -> None:
    newest = migrations("postgres")[-1][0]
    with psycopg.connect(plain.replace(f"{ROLE}@", "postgres@"), autocommit=True) as connection:
        connection.execute("DELETE FROM schema_versions WHERE number = %s", (newest,))
    said = f"^the database is at version {newest - 1}, and this qwed wants {newest}: run `qwed migrate` as the role"
    with pytest.raises(Unreachable, match=said):
        SharedShop(plain, HandClock())


@pytest.mark.parametrize("begun", [is_begun, migrate])
def test_a_role_that_was_granted_nothing_is_told_so(plain: str, begun: Callable[[Connection], object]) -> None:
    with psycopg.connect(plain.replace(f"{ROLE}@", "postgres@"), autocommit=True) as connection:
        connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ROLE}")
    said = r"lacks a right: grant what docs/postgresql.md grants.* \(permission denied for table schema_versions\)$"
    with connected(plain) as connection, pytest.raises(Unreachable, match=said):
        begun(connection)


def test_a_server_does_everything_as_that_role(plain: str) -> None:
    shop = SharedShop(plain, HandClock())
    store, now = shop.store, shop.hands.now
    agent = shop.register(agent_of())
    for step in (1, 2):
        assert isinstance(shop.commit(agent, step), Settled)
    store.add_subject(Subject("sub_1", ORGANISATION, "name", b"key", now)).block(30)
    reservation = shop.reserve(agent, 3)
    memory = Memory("key", "hash", lambda _settled: b"answer", now + 60, "sub_1")
    kept = shop.settle(agent, reservation, Decision.APPROVED, CENT, memory=memory, subject_id="sub_1", attested=True)
    assert isinstance(kept, Settled)
    waiting = shop.pending(agent, 4)
    changes: list[tuple[Any, ...]] = [
        (shop.resolved(waiting),),
        (Executed("act_of_1", True, None, now),),
        (AttestationRevoked("att_1", ORGANISATION, "act_1", now),),
        (ToolChanged(ORGANISATION, "tool", b"row"),),
        (ListChanged(ORGANISATION, Entry(ListName.BLOCKS, "a", ""), True),),
        (ListChanged(ORGANISATION, Entry(ListName.BLOCKS, "a", ""), False),),
        (WebhookChanged(ORGANISATION, Webhook(ORGANISATION, "http://127.0.0.1:9", ("pending",), "s", now)),),
        (SubjectErased(ORGANISATION, "name", now, "stated"),),
    ]
    for parts in changes:
        assert isinstance(shop.change(*parts), int), parts
    assert isinstance(shop.change(notices=(Notice("ntc_1", "pending", "{}"),)), int)
    store.delivered("ntc_1", now).block(30)
    job = Job("job_1", ORGANISATION, "key", "owner", 1, False, 1, now, now + 1)
    store.add_job(job, [JobItem("job_1", 0, "query", "math", None)]).block(30)
    store.finish_job("job_1", now).block(30)
    assert store.drop_expired(now + 100, 10) is not None
    assert store.drop_content(now + 100, 100) is not None
    store.durable().block(30)
    with psycopg.connect(plain) as connection:
        found = connection.execute("SELECT count(*), count(nullif(payload, '')) FROM activities").fetchone()
        months = connection.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'activities'::regclass"
        ).fetchone()
    assert (found, months) == ((store.leaves(ORGANISATION), 0), (4,))
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
