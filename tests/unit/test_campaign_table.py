"""The table that `make drill` ends with: nothing that a process did, or failed to do, is missing from it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.campaign_table import CampaignRow, table

SUITE = """
import os

import pytest

from tests.support.campaign_table import campaign


@pytest.mark.drill
@campaign("P1", "kills")
@pytest.mark.parametrize("number", range(4))
def test_counts(figure, number):
    figure("kills", number)
    figure("kills", 1000)


@pytest.mark.drill
@campaign("P2", "races")
@pytest.mark.parametrize("number", range(2))
def test_fails_after_it_counted(figure, number):
    figure("tries", 5)
    assert number


@pytest.mark.drill
@campaign("P3", "never begun")
def test_is_never_begun(nobody_knows_this):
    pass


@pytest.mark.drill
def test_names_no_campaign():
    pass


@pytest.mark.drill
@campaign("P4", "gone")
def test_takes_its_process_along():
    os._exit(1)


def test_is_no_drill():
    pass
"""
HELD = """
- | {place} | 1 tests | yes
P1 | kills | 4,006 kills | yes
P2 | races | 10 tries | NO: 1 of 2 failed
P3 | never begun | 1 tests | NO: 1 of 1 failed
P4 | gone | 1 tests | NO: 1 of 1 failed
"""


CONFTEST = """
from tests.support import campaign_table


def pytest_configure(config):
    campaign_table.register(config)
"""
ROOT = Path(__file__).parents[2]


def _rows(suite: Path, *options: str) -> list[str]:
    """The rows of the table that a run of this suite ends with."""
    (suite / "conftest.py").write_text(CONFTEST)
    (suite / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers =\n    drill\n    campaign\n")
    (suite / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist.plugin", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, timeout=120, check=False)
    *_, shown = ran.stdout.partition(" drills ")
    rows = [line for line in shown.splitlines()[2:] if " | " in line]
    return [" | ".join(cell.strip() for cell in row.split("|")) for row in rows]


def test_what_every_process_counted_and_how_each_campaign_ended_is_in_the_table(tmp_path: Path) -> None:
    assert _rows(tmp_path, "-n", "2") == HELD.format(place="test_suite.py").split("\n")[1:-1]


def test_where_no_campaign_was_run_there_is_no_table(tmp_path: Path) -> None:
    assert _rows(tmp_path, "-m", "not drill") == []


def test_the_rows_stand_in_columns_under_their_names() -> None:
    lines = table(
        {("P1", "kills"): CampaignRow({"a"}, {"a"}, {"kills": 1_234}), ("P2", "x"): CampaignRow({"a", "b"}, {"a"}, {})}
    )
    assert lines == [
        "promise | campaign | figures     | held",
        "--------+----------+-------------+------------------",
        "P1      | kills    | 1,234 kills | yes",
        "P2      | x        | 2 tests     | NO: 1 of 2 failed",
    ]
