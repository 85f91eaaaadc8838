"""Triggers in PostgreSQL keep logs without gaps or duplicates, and raise the epoch of changed organisations."""

import threading
from typing import Any

import psycopg
import pytest

from qwed.store.postgres.partitions import create_month_partitions
from tests.unit.store.postgres.test_partitions import DECEMBER, NOVEMBER

Connection = psycopg.Connection[Any]
_INSERT = (
    "INSERT INTO activities (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload) "
    "SELECT o, i, 'act_' || o || i || a, 'agent_1', a, 'APPROVED', '{}', '' "
    "FROM unnest(%s::text[], %s::bigint[], %s::float8[]) AS t (o, i, a)"
)


@pytest.fixture
def logs(connection: Connection) -> Connection:
    """Connection to a database with two organisations and two months."""
    for name in ("org_1", "org_2"):
        connection.execute("INSERT INTO organisations VALUES (%s, 'some', 0)", (name,))
    create_month_partitions(connection, NOVEMBER)
    return connection


def _add(connection: Connection, *leaves: tuple[str, int, float]) -> None:
    connection.execute(_INSERT, list(map(list, zip(*leaves, strict=True))))


def _sizes(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT organisation_id, size FROM logs").fetchall())


def test_a_log_begins_with_its_organisation(logs: Connection) -> None:
    assert _sizes(logs) == {"org_1": 0, "org_2": 0}


def test_leaves_that_follow_are_taken_in_any_order_and_in_any_months(logs: Connection) -> None:
    _add(logs, ("org_1", 0, NOVEMBER))
    _add(logs, ("org_1", 2, DECEMBER), ("org_2", 0, NOVEMBER), ("org_1", 1, NOVEMBER))
    _add(logs, ("org_2", 1, NOVEMBER), ("org_1", 3, NOVEMBER))
    assert _sizes(logs) == {"org_1": 4, "org_2": 2}


def test_a_log_of_nobody_begins_as_well(logs: Connection) -> None:
    _add(logs, ("org_9", 0, NOVEMBER), ("org_9", 1, NOVEMBER))
    assert _sizes(logs)["org_9"] == 2


WRONG: dict[str, list[tuple[str, int, float]]] = {
    "a leaf that is there": [("org_1", 1, NOVEMBER)],
    "a leaf that is there, in another month": [("org_1", 1, DECEMBER)],
    "a gap before it": [("org_1", 3, NOVEMBER)],
    "a gap between them": [("org_1", 2, NOVEMBER), ("org_1", 4, NOVEMBER)],
    "the same twice, in two months": [("org_1", 2, NOVEMBER), ("org_1", 2, DECEMBER)],
    "twice and a gap": [("org_1", 2, NOVEMBER), ("org_1", 2, DECEMBER), ("org_1", 4, DECEMBER)],
    "another log's place": [("org_1", 2, NOVEMBER), ("org_2", 2, NOVEMBER)],
    "below nothing": [("org_2", -1, NOVEMBER)],
    "a log that has not begun": [("org_9", 1, NOVEMBER)],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_leaves_that_do_not_follow_are_refused_and_leave_nothing(logs: Connection, wrong: str) -> None:
    _add(logs, ("org_1", 0, NOVEMBER), ("org_1", 1, NOVEMBER))
    with pytest.raises(psycopg.errors.UniqueViolation):
        _add(logs, *WRONG[wrong])
    assert _sizes(logs) == {"org_1": 2, "org_2": 0}
    assert logs.execute("SELECT count(*) FROM activities").fetchone() == (2,)


def test_of_two_who_write_the_same_place_one_is_refused(logs: Connection, tables: str) -> None:
    refused: list[psycopg.errors.UniqueViolation] = []

    def write(at: float) -> None:
        with psycopg.connect(tables, autocommit=True) as other:
            try:
                _add(other, ("org_1", 0, at))
            except psycopg.errors.UniqueViolation as error:
                refused.append(error)

    threads = [threading.Thread(target=write, args=(at,)) for at in (NOVEMBER, DECEMBER, NOVEMBER + 1, DECEMBER + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(refused), _sizes(logs)["org_1"]) == (3, 1)


# Epochs


def _epochs(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT organisation_id, epoch FROM organisations").fetchall())


_AGENT = "'agent_1', 'org_1', 'n', 'supervised', 'p', 1, 'active', '', '', 'prefix', '', 0"
PREPARED = (
    "INSERT INTO keys VALUES ('key_1', 'org_1', 'n', 'owner', 'a', '', 0)",
    f"INSERT INTO agents VALUES ({_AGENT})",
    "INSERT INTO tools VALUES ('org_1', 'tool', '')",
    "INSERT INTO message_lists VALUES ('org_1', 'blocks', 'a', '')",
    "INSERT INTO webhooks VALUES ('org_1', 'u', 'e', 's', 0, 0, 0, NULL, NULL, 0)",
)
RAISES = (
    "INSERT INTO keys VALUES ('key_2', 'org_1', 'n', 'owner', 'b', '', 0)",
    "UPDATE keys SET revoked_at = 1",
    "UPDATE agents SET trust = 0",
    "UPDATE agents SET status = 'suspended'",
    "UPDATE agents SET token_digest = 'x'",
    "UPDATE tools SET definition = 'x'",
    "INSERT INTO policy_sets VALUES ('org_1', 1, 'd', '[]', '[]', 0, 'key_1')",
    "INSERT INTO message_lists VALUES ('org_1', 'trusted', 'a', '')",
    "DELETE FROM message_lists",
    "UPDATE webhooks SET url = 'v'",
    "DELETE FROM webhooks",
    "UPDATE organisations SET halted_at = 1 WHERE organisation_id = 'org_1'",
    "UPDATE organisations SET halted_at = NULL WHERE organisation_id = 'org_1'",
)
LEAVES = (
    "UPDATE webhooks SET delivered = 5, delivered_at = 1, waiting = 7, last_error = 'x', given_up = 1",
    "INSERT INTO usage VALUES ('agent_1', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', 0, '', 0, 0, 0, 0)",
    "INSERT INTO usage_series VALUES ('agent_1', 'refund', 'amount', '1', '0', 0)",
    "INSERT INTO usage_entries VALUES ('agent_1', 'refund', 'amount', 0, '0')",
    "INSERT INTO usage_holds VALUES ('apr_1', 'org_1', 'refund', 'amount', '1')",
    "INSERT INTO outbox VALUES ('ntc_1', 'org_1', 'e', '{}', 0, 0, 0)",
    "INSERT INTO subjects VALUES ('sub_1', 'org_1', 'n', '', 0)",
)


@pytest.fixture
def known(logs: Connection) -> Connection:
    for statement in PREPARED:
        logs.execute(statement.encode())
    return logs


@pytest.mark.parametrize("statement", RAISES)
def test_whatever_is_kept_in_mind_raises_the_epoch_of_its_organisation(known: Connection, statement: str) -> None:
    before = _epochs(known)
    known.execute(statement.encode())
    assert _epochs(known) == {"org_1": before["org_1"] + 1, "org_2": before["org_2"]}


@pytest.mark.parametrize("statement", LEAVES)
def test_what_every_decision_writes_leaves_it(known: Connection, statement: str) -> None:
    before = _epochs(known)
    known.execute(statement.encode())
    assert _epochs(known) == before


def test_every_table_that_is_kept_in_mind_is_watched(connection: Connection) -> None:
    """The tables that `store/entity_cache.py` reads."""
    triggers = connection.execute("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'raise_epoch'")
    of_an_organisation = {"agents", "keys", "tools", "policy_sets", "message_lists", "webhooks"}
    of_an_organisation |= {"organisations", "approvals"}
    assert {row[0] for row in triggers} == of_an_organisation


def _erasures(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT organisation_id, erasures FROM organisations").fetchall())


def test_an_erasure_is_counted_once_and_raises_the_epoch(known: Connection) -> None:
    known.execute("INSERT INTO subjects VALUES ('sub_1', 'org_1', 'n', 'key', 0), ('sub_2', 'org_1', 'n', 'key', 0)")
    before = _epochs(known)["org_1"]
    for _ in range(2):
        known.execute("UPDATE subjects SET key = NULL, erased_at = 1 WHERE subject_id = 'sub_1'")
    assert _erasures(known) == {"org_1": 1, "org_2": 0}
    assert _epochs(known)["org_1"] == before + 1


_ASK = (
    "INSERT INTO approvals (approval_id, organisation_id, agent_id, activity_id, action_hash, state, cost, tokens, "
    "high_risk_calls, created_at, expires_at, kind) VALUES ('apr', 'org_1', 'agent_1', 'act', '', 'pending', 0, 0, 0, "
    "0, 1, %s)"
)


@pytest.mark.parametrize(("kind", "raised"), [("trust_elevation", 1), ("action", 0)])
def test_a_request_for_more_trust_is_kept_in_mind_and_an_action_is_not(
    known: Connection, kind: str, raised: int
) -> None:
    before = _epochs(known)["org_1"]
    known.execute(_ASK, (kind,))
    assert _epochs(known)["org_1"] == before + raised
    known.execute("UPDATE approvals SET state = 'rejected'")
    assert _epochs(known)["org_1"] == before + 2 * raised


def test_who_reads_the_epoch_waits_for_nobody(known: Connection, tables: str) -> None:
    with psycopg.connect(tables) as changing:
        changing.execute("UPDATE agents SET trust = 0")
        known.execute("SET lock_timeout = '1s'")
        assert _epochs(known)["org_1"] == len(PREPARED)
        known.execute("INSERT INTO keys VALUES ('key_3', 'org_2', 'n', 'owner', 'c', '', 0)")
        changing.rollback()
