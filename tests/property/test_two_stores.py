"""SQLite and PostgreSQL decide alike, and store the same rows."""

from collections import Counter
from itertools import count, islice
from pathlib import Path

import pytest

from tests.property.two_stores import DifferenceError, TwoStores, operations
from tests.support.campaign_table import Figure, campaign
from tests.support.postgres_server import Databases

_BETWEEN_ROWS = 100
_LAST_STEPS = 12


def _play(seed: int, steps: int, directory: Path, postgres: Databases) -> Counter[str]:
    """Play a sequence on both stores; return how often each answer was given."""
    url = postgres.database()
    both = TwoStores(directory, url, seed)
    try:
        for number, operation in enumerate(islice(operations(both.random), steps), 1):
            operation(both)
            if number % _BETWEEN_ROWS == 0:
                both.require_equal_rows()
        both.require_equal_rows()
    except DifferenceError as error:
        last = "\n".join(both.steps[-_LAST_STEPS:])
        raise AssertionError(f"seed {seed}, after {len(both.steps)} requests: {error}\n{last}") from error
    finally:
        both.close()
        postgres.drop(url)
    return both.met


MUST_BE_MET = (
    *(
        "APPROVED None",
        "CORRECTED None",
        "PENDING QWED-AGENT-TRUST-002",
        "forwarded None",
        "blocked None",
        "active None",
    ),
    *(f"DENIED QWED-AGENT-{name}" for name in ("003", "004", "005", "LOOP-001", "LOOP-002", "LOOP-003", "LOOP-004")),
    *(f"BUDGET_EXCEEDED QWED-AGENT-BUDGET-{name}" for name in ("001", "002", "003")),
    *("DENIED QWED-REQ-006", "403 QWED-AUTH-003", "409 QWED-REQ-009"),
)
"""Answers that a sequence must reach to prove anything."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_requests_have_the_same_answers_and_leave_the_same_rows(
    seed: int, memory_path: Path, postgres: Databases
) -> None:
    _play(seed, 300, memory_path, postgres)


@pytest.mark.drill
@campaign("P1 P2 P3 P10", "the same requests on both stores")
def test_100000_requests_have_the_same_answers_and_leave_the_same_rows(
    memory_path: Path, postgres: Databases, figure: Figure
) -> None:
    met: Counter[str] = Counter()
    for seed in count(100):
        directory = memory_path / str(seed)
        directory.mkdir()
        met += _play(seed, 2_500, directory, postgres)
        if sum(met.values()) >= 100_000:
            break
    figure("requests", sum(met.values()))
    assert [name for name in MUST_BE_MET if not met[name]] == []
