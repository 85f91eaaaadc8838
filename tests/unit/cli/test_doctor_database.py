"""`qwed doctor`: checks of the PostgreSQL database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.cli import main
from qwed.model.clock import Clock
from qwed.store.migrate import migrations
from qwed.store.postgres.connect import open_connection
from qwed.store.postgres.locks import try_acquire_leadership
from qwed.store.postgres.partitions import create_month_partitions
from qwed.store.postgres.schema import migrate
from tests.support.postgres_server import Databases

NEWEST = migrations("postgres")[-1][0]

Look = Callable[..., list[Any]]


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Look:
    """Return a function that runs the command and returns the checks of the database and the secrets."""
    monkeypatch.delenv("QWED_DATABASE_URL", raising=False)

    def call(*arguments: object, **variables: str) -> list[Any]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        main(["doctor", "--json", "--url", "http://127.0.0.1:9", "--data-dir", str(tmp_path), *map(str, arguments)])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return [(check["state"], check["message"]) for check in checks if check["name"] in ("database", "secrets")]

    return call


@pytest.fixture
def brought_up(database: str) -> str:
    """With the tables and months that a server would make."""
    with open_connection(database) as connection:
        migrate(connection)
        create_month_partitions(connection, Clock().now())
    return database


def _say(url: str, statement: str) -> None:
    with open_connection(url) as connection:
        connection.execute(statement.encode())


def test_without_one_nothing_is_said(look: Look) -> None:
    assert look() == []


def test_an_empty_one(look: Look, database: str) -> None:
    [(state, message)] = look("--database", database)
    assert state == "fine"
    assert message.endswith(", empty: `qwed serve` or `qwed migrate` creates the tables")


def test_one_at_rest_and_one_in_use(look: Look, brought_up: str) -> None:
    assert look(QWED_DATABASE_URL=brought_up)[0][1].endswith(f", at version {NEWEST}, no server runs on it")
    with open_connection(brought_up) as server:
        assert try_acquire_leadership(server)
        [(state, message)] = look("--database", brought_up)
    assert (state, message.endswith(f", at version {NEWEST}, a server runs on it")) == ("fine", True)


def test_a_server_on_another_database_is_not_taken_for_one_on_this(
    look: Look, brought_up: str, postgres: Databases
) -> None:
    with open_connection(postgres.url()) as other:
        assert try_acquire_leadership(other)
        assert look("--database", brought_up)[0][1].endswith("no server runs on it")


WRONG = {
    f"INSERT INTO schema_versions (number) VALUES ({NEWEST + 1})": ("broken", "newer than this qwed"),
    "DELETE FROM schema_versions": ("fine", "empty: "),
    "DROP TRIGGER grow_logs ON activities": (
        "broken",
        "the schema differs from this version of qwed: trigger `grow_logs` of `activities`",
    ),
    "ALTER DATABASE {name} SET default_transaction_read_only = on": ("broken", "it is read-only"),
    "ALTER DATABASE {name} SET synchronous_commit = off": (
        "broken",
        "synchronous_commit is off: a committed decision can be lost",
    ),
}


@pytest.mark.parametrize("statement", WRONG)
def test_what_is_wrong_with_it_is_told(look: Look, brought_up: str, statement: str) -> None:
    name = brought_up.partition("?")[0].rpartition("/")[2]
    _say(brought_up, statement.replace("{name}", f'"{name}"'))
    state, message = WRONG[statement]
    assert [check for check in look("--database", brought_up) if check[0] == state and message in check[1]]


def test_a_month_that_was_not_made_is_a_warning(look: Look, database: str) -> None:
    with open_connection(database) as connection:
        migrate(connection)
    assert ("warning", "the partition of this month is missing") in look("--database", database)


def test_keys_that_are_missing_beside_it_are_broken(look: Look, brought_up: str, tmp_path: Path) -> None:
    _say(brought_up, "INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_1', 'first', 0)")
    missing = [message for state, message in look("--database", brought_up) if state == "broken"]
    assert missing == [f"{tmp_path / name} is missing" for name in ("signing.key", "vault.key")]
    with qwed.open(tmp_path):
        pass
    assert [state for state, _message in look("--database", brought_up)] == ["fine", "fine"]


def test_one_that_cannot_be_reached_is_broken_and_its_password_is_not_repeated(look: Look) -> None:
    [(state, message)] = look("--database", "postgresql://u:hunter2@127.0.0.1:9/qwed")
    assert (state, message.startswith("PostgreSQL cannot be reached: ")) == ("broken", True)
    assert "hunter2" not in message
