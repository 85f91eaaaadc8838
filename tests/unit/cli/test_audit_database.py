"""`qwed audit` on PostgreSQL: manipulation by SQL is found, and an erasure reaches every server."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import qwed
from qwed.cli import main
from qwed.store.postgres.connect import open_connection
from tests.support.postgres_server import Databases
from tests.unit.cli.full_organisation import create_full_history
from tests.unit.cli.history import History


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


class Shared(NamedTuple):
    """A history in PostgreSQL and the directory with its keys."""

    history: History
    url: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, postgres: Databases) -> Shared:
    """A database to copy; it has no connections."""
    history, url = create_full_history(tmp_path_factory.mktemp("shared")), postgres.database()
    assert main(["copy", "--from", f"sqlite:///{history.data}", "--to", url]) == 0
    return Shared(history, url)


@pytest.fixture
def own(shared: Shared, postgres: Databases) -> Iterator[Shared]:
    """A copy that a test may change."""
    url = postgres.database(like=shared.url)
    yield shared._replace(url=url)
    postgres.drop(url)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("QWED_DATA_DIR", "QWED_BASE_URL", "QWED_API_KEY", "QWED_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Ran:
        return Ran(main(["audit", *map(str, arguments)]), *capsys.readouterr())

    return call


_DENIED = "WHERE sequence = (SELECT min(sequence) FROM activities WHERE decision = 'DENIED')"
_MADE = "INSERT INTO organisations (organisation_id, name, created_at) VALUES ('org_x', 'x', 1)"
TAMPERED = {
    f"UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') {_DENIED}": "its leaf_hash is not",
    f"UPDATE activities SET decision = 'APPROVED' {_DENIED}": "its column `decision` says `APPROVED`",
    f"UPDATE activities SET at = at - 3600 {_DENIED}": "its column `at` says",
    f"DELETE FROM activities {_DENIED}": "entry",
    "UPDATE activities SET nodes = repeat('0', length(nodes)) WHERE log_index = 7": "entry 7",
    "UPDATE heads SET signature = (SELECT max(signature) FROM heads) WHERE size = 9": "head",
    "UPDATE agents SET trust = 3 WHERE name = 'letters'": "agent",
    "UPDATE keys SET revoked_at = NULL": "key",
    "DELETE FROM executions WHERE success = 0": "execut",
    "UPDATE policy_sets SET documents = '[]'": "policy set 1: version 1 is damaged",
    "UPDATE policy_sets SET changed_by = 'key_x'": "policy set 1: the log has another digest, author or time for it",
    "DELETE FROM policy_sets WHERE version = 2": "policy set 2: the log put it in force, but it is missing",
    "INSERT INTO policy_sets SELECT organisation_id, 4, digest, documents, changes, changed_at, changed_by "
    "FROM policy_sets WHERE version = 2": "policy set 4: no entry of the log put it in force",
    "UPDATE usage_series SET total = '0'": "its uses do not add up to its total `0`",
    "UPDATE usage_series SET total = 'many'": "`many` or `1` is not an amount",
    "UPDATE usage_series SET held = '0'": "it says that `0` is held, but open approvals hold `1`",
    "UPDATE usage_entries SET total_before = '2'": "its uses do not add up to its total `2`",
    "DELETE FROM usage_series": "approvals hold uses of it, but it is missing",
    "DELETE FROM usage_holds": "it says that `1` is held, but open approvals hold `0`",
    "UPDATE usage_holds SET amount = '-1'": "`-1` is not an amount",
    "UPDATE usage_holds SET approval_id = 'apr_x'": "use held by `apr_x`: no open approval of an action holds it",
    "UPDATE approvals SET state = 'approved' WHERE state = 'rejected'": "approval",
    _MADE: "no entry of a log created it",
    "ALTER TABLE activities DISABLE TRIGGER grow_logs": (
        "trigger `grow_logs` of `activities`: it differs from the schema of this version of qwed"
    ),
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_what_is_done_to_the_tables_is_found(own: Shared, run: Run, statement: str) -> None:
    with open_connection(own.url) as hand:
        hand.execute(statement.encode())
    ran = run("verify", "--data-dir", own.history.data, "--database", own.url)
    assert ran.code == 1
    assert TAMPERED[statement] in ran.out


def test_an_erasure_is_made_beside_a_server_that_goes_on(own: Shared, run: Run) -> None:
    options = ("--data-dir", own.history.data, "--database", own.url)
    with qwed.open(own.history.data, database_url=own.url) as gate:
        agent = next(agent.agent_id for agent in gate.list_agents() if agent.name == "sums")
        before = [entry.action for entry in gate.get_agent_activity(agent, 100)]
        # Whatever else is changed, and forgotten because of that.
        gate.suspend_all("a drill")
        assert run("erase", "--subject", "bob", "--yes", *options) == (0, "erased\n", "")
        after = [entry.action for entry in gate.get_agent_activity(agent, 100)]
        assert after.count(None) > before.count(None)
        gate.reactivate_all("over")
        place = {"conversation_id": "goes on", "step_number": 1}
        assert gate.verify_action(agent, {"type": "calculate", "query": "1 = 1"}, place).decision == "APPROVED"
    assert run("erase", "--subject", "bob", "--yes", *options).out == "nothing is stored about this subject\n"
    ran = run("verify", *options, "--head", own.history.heads)
    assert (ran.code, bool(re.search(r"content: \d+ checked, \d+ erased", ran.out))) == (0, True)


def test_an_erasure_makes_no_new_keys_where_there_are_none(own: Shared, run: Run, tmp_path: Path) -> None:
    ran = run("erase", "--subject", "bob", "--yes", "--data-dir", tmp_path, "--database", own.url)
    assert (ran.code, ran.out) == (2, "")
    assert "signing.jwks is missing" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", [("verify",), ("export",), ("head",), ("erase", "--subject", "bob", "--yes")], ids=str)
def test_a_database_that_is_away_is_one_sentence(shared: Shared, run: Run, verb: tuple[str, ...]) -> None:
    away = "postgresql://somebody:hunter2@127.0.0.1:9/qwed"
    ran = run(*verb, "--data-dir", shared.history.data, "--database", away)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("qwed: PostgreSQL cannot be reached: ")
    assert "hunter2" not in ran.err
