"""P5 at the start: a node signs nothing on top of a log that is not what it signed before."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import qwed
from qwed.kernel.proving.soundness import LogDamaged
from qwed.ledger.keyring import KEY_FILE, fresh_keyring
from qwed.ledger.sequencer import HEAD_TYPE
from qwed.store.place import FILE_NAME

STEPS = 11


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A data directory whose log has a few decisions."""
    with qwed.open(tmp_path) as gate:
        agent = gate.register_agent(name="kept", principal_id="user_1", type="autonomous")
        for step in range(1, STEPS + 1):
            context = {"conversation_id": "c", "step_number": step}
            gate.verify_action(agent.agent_id, {"type": "calculate", "query": f"{step}+0={step}"}, context)
    return tmp_path


def change(place: Path, *statements: str) -> None:
    with sqlite3.connect(place / FILE_NAME) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement
    connection.close()


def other_head(place: Path) -> None:
    forged = fresh_keyring().current.sign(HEAD_TYPE, b'{"log_id":"org","root":"00","size":12,"time":"now"}')
    change(place, f"UPDATE heads SET signature = '{forged}' WHERE size = {STEPS + 1}")


def lost_jwks(place: Path) -> None:
    """The keys of another node beside the log of this one."""
    (place / KEY_FILE).unlink()
    (place / "signing.jwks").unlink()


TAMPERINGS: dict[str, Callable[[Path], None]] = {
    "its last leaf was deleted": lambda place: change(place, f"DELETE FROM activities WHERE log_index = {STEPS}"),
    "its newest head was deleted": lambda place: change(place, f"DELETE FROM heads WHERE size = {STEPS + 1}"),
    "all heads were deleted": lambda place: change(place, "DELETE FROM heads"),
    "a peak was changed": lambda place: change(
        place,
        "UPDATE activities SET nodes = substr(nodes, 1, 128) || iif(substr(nodes, 129, 1) = '0', '1', '0') "
        "|| substr(nodes, 130) WHERE log_index = 11",
    ),
    "a peak was cut": lambda place: change(place, "UPDATE activities SET nodes = substr(nodes, 1, 64)"),
    "a head is garbage": lambda place: change(place, f"UPDATE heads SET signature = 'x' WHERE size = {STEPS + 1}"),
    "a head has no payload": lambda place: change(
        place, f"UPDATE heads SET signature = 'a.b.c' WHERE size = {STEPS + 1}"
    ),
    "a head is signed by a stranger": other_head,
    "the keys are another node's": lost_jwks,
    "an older head stands in the place of the newest": lambda place: change(
        place,
        f"UPDATE heads SET signature = (SELECT signature FROM heads WHERE size = {STEPS}) WHERE size = {STEPS + 1}",
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_log_that_was_changed_is_not_built_upon(place: Path, tampering: str) -> None:
    TAMPERINGS[tampering](place)
    with pytest.raises(LogDamaged, match="qwed audit verify"):
        qwed.open(place)


def test_a_log_as_it_was_left_is_built_upon(place: Path) -> None:
    with qwed.open(place) as gate:
        agent = gate.list_agents()[0]
        context = {"conversation_id": "c", "step_number": STEPS + 1}
        answer = gate.verify_action(agent.agent_id, {"type": "calculate", "query": "1=1"}, context)
    assert answer.attestation["index"] == STEPS + 1


def test_whoever_is_refused_can_have_the_directory_again(place: Path) -> None:
    head = (
        sqlite3.connect(place / FILE_NAME).execute(f"SELECT signature FROM heads WHERE size = {STEPS + 1}").fetchone()
    )
    change(place, f"UPDATE heads SET signature = 'x' WHERE size = {STEPS + 1}")
    with pytest.raises(LogDamaged):
        qwed.open(place)
    change(place, f"UPDATE heads SET signature = '{head[0]}' WHERE size = {STEPS + 1}")
    qwed.open(place).close()
