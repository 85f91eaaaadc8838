"""Agents of an earlier database that share a name keep it, and the name alone is ambiguous."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed.domain.agent import name_key_of
from qwed.gate import Gate, GateError, open_gate
from qwed.store.data_directory import FILE_NAME


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[tuple[Gate, list[str]]]:
    """A directory with two agents of one name, written before names had digests."""
    data = tmp_path / "data"
    with open_gate(data) as gate:
        ids = [gate.register_agent(name=name, principal_id="p").agent_id for name in ("Clerk", "other")]
    connection = sqlite3.connect(data / FILE_NAME)
    connection.execute("UPDATE agents SET name = 'CLERK' WHERE name = 'other'")
    connection.execute("UPDATE agents SET name_key = NULL")
    connection.commit()
    connection.close()
    with open_gate(data) as gate:
        yield gate, sorted(ids)


def test_both_keep_their_name_and_are_found_by_id(twins: tuple[Gate, list[str]]) -> None:
    gate, ids = twins
    assert sorted(gate.get_agent(agent_id).name for agent_id in ids) == ["CLERK", "Clerk"]
    answer = gate.verify_action(
        ids[0], {"type": "calculate", "query": "2+2"}, {"conversation_id": "c", "step_number": 1}
    )
    assert answer.decision == "APPROVED"


def test_the_name_alone_is_refused_with_the_ids(twins: tuple[Gate, list[str]]) -> None:
    gate, ids = twins
    with pytest.raises(GateError, match="more than one agent is named `clerk`") as refused:
        gate.get_agent("clerk")
    assert refused.value.details == {"agent_ids": ids}


def test_nobody_else_gets_the_name_until_one_is_left_and_renamed(twins: tuple[Gate, list[str]]) -> None:
    gate, ids = twins
    with pytest.raises(GateError, match="in use"):
        gate.register_agent(name="clerk", principal_id="p")
    with pytest.raises(GateError, match="in use"):
        _rename_twice(gate, ids[0])
    assert gate.get_agent("CLERK").agent_id == ids[1]
    assert gate.edit_agent(ids[1], {"name": "free"}).name == "free"
    assert gate.register_agent(name="clerk", principal_id="p").name == "clerk"


def _rename_twice(gate: Gate, agent_id: str) -> None:
    gate.edit_agent(agent_id, {"name": "another"})
    gate.edit_agent(agent_id, {"name": "clerk"})


@pytest.mark.parametrize("spelling", ["CLERK", " clerk ", "\uff23lerk", "cle\u200brk"])
def test_a_name_has_one_digest_in_every_case_and_form(spelling: str) -> None:
    assert name_key_of(spelling) == name_key_of("clerk")


def test_the_digest_is_short_however_long_the_name() -> None:
    assert {len(name_key_of("\ufdfa" * length)) for length in (1, 256)} == {64}
