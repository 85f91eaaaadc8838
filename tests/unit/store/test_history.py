"""Counters are kept running and never recounted, so a decision costs the same with any history (DESIGN 6)."""

import itertools
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.gate import Gate
from tests.support.store_parts import StoreParts

SUM = {"type": "calculate", "query": "2+2"}
FEW, MANY = 10, 1_000
_numbers = itertools.count(1)


def _ask(gate: Gate, agent: str, **more: Any) -> None:
    context = {"conversation_id": f"c{next(_numbers)}", "step_number": 1}
    assert gate.verify_action(agent, SUM, context, **more).decision == "APPROVED"


class Watched:
    """Statements and instruction count of the connections of a store for one decision."""

    def __init__(self, gate: Gate) -> None:
        parts = StoreParts(gate.services.store)
        self.connections: list[sqlite3.Connection] = [parts.writer_connection, parts.reader, parts.report_reader]
        self.statements: list[str] = []
        self.steps = 0

    def __enter__(self) -> "Watched":
        for connection in self.connections:
            connection.set_trace_callback(self.statements.append)
            connection.set_progress_handler(self._step, 1)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.set_trace_callback(None)
            connection.set_progress_handler(None, 0)

    def _step(self) -> None:
        self.steps += 1


def _cost_of_one(gate: Gate, agent: str) -> int:
    """Return the database instructions of one decision: the maximum of a few, as a tree sometimes grows a level."""
    costs = []
    for _ in range(8):
        with Watched(gate) as watched:
            _ask(gate, agent)
        costs.append(watched.steps)
    return max(costs)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with qwed.open(tmp_path / "data") as opened:
        yield opened


def test_a_decision_after_many_costs_what_one_after_few_does(gate: Gate) -> None:
    agent = gate.register_agent(name="a", principal_id="u").agent_id
    for _ in range(FEW):
        _ask(gate, agent)
    early = _cost_of_one(gate, agent)
    with ThreadPoolExecutor(50) as threads:
        list(threads.map(lambda _: _ask(gate, agent), range(MANY)))
    assert early > 0
    assert _cost_of_one(gate, agent) <= 1.15 * early + 100


def test_no_decision_counts_rows(gate: Gate) -> None:
    agent = gate.register_agent(name="a", principal_id="u", budget={"max_daily_cost_usd": 5}).agent_id
    with Watched(gate) as watched:
        _ask(gate, agent)
        _ask(gate, agent, idempotency_key="again")
        gate.get_agent_budget(agent)
        assert gate.verify_action(agent, SUM, {}).decision == "DENIED"
    assert watched.statements
    assert [text for text in watched.statements if "count(" in text.lower()] == []
