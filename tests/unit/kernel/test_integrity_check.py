"""At the start, a node refuses to continue a log that is not what it signed (P5)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import qwed
from qwed.kernel.audit.integrity_check import LogDamagedError
from qwed.ledger.keyring import KEY_FILE, fresh_keyring
from qwed.ledger.sequencer import HEAD_TYPE
from qwed.store.data_directory import FILE_NAME

STEPS = 11


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory whose log has a few decisions."""
    with qwed.open(tmp_path) as gate:
        agent = gate.register_agent(name="kept", principal_id="user_1", type="autonomous")
        for step in range(1, STEPS + 1):
            context = {"conversation_id": "c", "step_number": step}
            gate.verify_action(agent.agent_id, {"type": "calculate", "query": f"{step}+0={step}"}, context)
    return tmp_path


def change(directory: Path, *statements: str) -> None:
    with sqlite3.connect(directory / FILE_NAME) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement
    connection.close()


def other_head(directory: Path) -> None:
    forged = fresh_keyring().current.sign(HEAD_TYPE, b'{"log_id":"org","root":"00","size":12,"time":"now"}')
    change(directory, f"UPDATE heads SET signature = '{forged}' WHERE size = {STEPS + 1}")


def lost_jwks(directory: Path) -> None:
    """Leave the log with the keys of another node."""
    (directory / KEY_FILE).unlink()
    (directory / "signing.jwks").unlink()


TAMPERINGS: dict[str, Callable[[Path], None]] = {
    "its last leaf was deleted": lambda directory: change(
        directory, f"DELETE FROM activities WHERE log_index = {STEPS}"
    ),
    "its newest head was deleted": lambda directory: change(directory, f"DELETE FROM heads WHERE size = {STEPS + 1}"),
    "all heads were deleted": lambda directory: change(directory, "DELETE FROM heads"),
    "a peak was changed": lambda directory: change(
        directory,
        "UPDATE activities SET nodes = substr(nodes, 1, 128) || iif(substr(nodes, 129, 1) = '0', '1', '0') "
        "|| substr(nodes, 130) WHERE log_index = 11",
    ),
    "a peak was cut": lambda directory: change(directory, "UPDATE activities SET nodes = substr(nodes, 1, 64)"),
    "a head is garbage": lambda directory: change(
        directory, f"UPDATE heads SET signature = 'x' WHERE size = {STEPS + 1}"
    ),
    "a head has no payload": lambda directory: change(
        directory, f"UPDATE heads SET signature = 'a.b.c' WHERE size = {STEPS + 1}"
    ),
    "a head is signed by a stranger": other_head,
    "the keys are another node's": lost_jwks,
    "an older head stands in the directory of the newest": lambda directory: change(
        directory,
        f"UPDATE heads SET signature = (SELECT signature FROM heads WHERE size = {STEPS}) WHERE size = {STEPS + 1}",
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_log_that_was_changed_is_not_built_upon(directory: Path, tampering: str) -> None:
    TAMPERINGS[tampering](directory)
    with pytest.raises(LogDamagedError, match="qwed audit verify"):
        qwed.open(directory)


def test_a_log_as_it_was_left_is_built_upon(directory: Path) -> None:
    with qwed.open(directory) as gate:
        agent = gate.list_agents()[0]
        context = {"conversation_id": "c", "step_number": STEPS + 1}
        answer = gate.verify_action(agent.agent_id, {"type": "calculate", "query": "1=1"}, context)
    assert answer.attestation["index"] == STEPS + 1


def test_a_refused_start_releases_the_directory(directory: Path) -> None:
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        head = connection.execute(f"SELECT signature FROM heads WHERE size = {STEPS + 1}").fetchone()
    change(directory, f"UPDATE heads SET signature = 'x' WHERE size = {STEPS + 1}")
    with pytest.raises(LogDamagedError):
        qwed.open(directory)
    change(directory, f"UPDATE heads SET signature = '{head[0]}' WHERE size = {STEPS + 1}")
    qwed.open(directory).close()
