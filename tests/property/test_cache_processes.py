"""Processes that hammer one cache file: no corruption, and no answer for another query or context."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from qwed_sdk.cache import MAX_ENTRIES, VerificationCache
from tests.property.cache_hammer import BEGUN
from tests.support.campaign_table import Figure, campaign

ROOT = Path(__file__).parents[2]
LOOKUPS = 100_000


def start(directory: Path, seed: int, lookups: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.property.cache_hammer", str(directory), str(seed), str(lookups)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def has_begun(process: "subprocess.Popen[str]") -> bool:
    assert process.stdout is not None
    return process.stdout.readline().strip() == BEGUN


def tally(process: "subprocess.Popen[str]") -> dict[str, int]:
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    counted: dict[str, int] = json.loads(printed.splitlines()[-1])
    return counted


def require_whole(directory: Path) -> None:
    connection = sqlite3.connect(directory / "cache.db")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM cache_v2").fetchone() == (MAX_ENTRIES,)
    finally:
        connection.close()


@pytest.mark.parametrize("lookups", [LOOKUPS // 5, pytest.param(LOOKUPS, marks=pytest.mark.drill)])
def test_two_processes_and_one_that_is_killed_share_a_file_without_a_wrong_answer(tmp_path: Path, lookups: int) -> None:
    """The third process is killed in the middle of its own lookups, which are not counted."""
    directory = tmp_path / "cache"
    two = [start(directory, seed, lookups // 2) for seed in (1, 2)]
    assert all(has_begun(process) for process in two)
    third = start(directory, 3, lookups)
    assert has_begun(third)
    third.kill()
    third.communicate()
    tallies = [tally(process) for process in two]
    assert [counted["crossed"] for counted in tallies] == [0, 0]
    assert sum(counted["lookups"] for counted in tallies) == lookups
    assert all(counted["hits"] > lookups // 10 for counted in tallies)
    require_whole(directory)
    with VerificationCache(directory) as cache:
        counts = cache.get_stats()
    assert counts.hits + counts.misses >= lookups


@pytest.mark.drill
@campaign("P1", "kills of clients that share a cache")
def test_processes_killed_again_and_again_leave_a_whole_file(tmp_path: Path, figure: Figure) -> None:
    directory = tmp_path / "cache"
    steady = start(directory, 0, LOOKUPS)
    assert has_begun(steady)
    for seed in range(1, 30):
        killed = start(directory, seed, LOOKUPS)
        assert has_begun(killed)
        killed.kill()
        killed.communicate()
        figure("kills", 1)
    assert tally(steady)["crossed"] == 0
    require_whole(directory)
