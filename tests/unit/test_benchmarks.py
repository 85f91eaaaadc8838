"""What `make bench` makes of its figures: aims, tables, and machines out of costs."""

import pytest

from benchmarks.capacity import CORES, RATES, Cost, model, table
from benchmarks.measure import Figure, figure, ratio
from benchmarks.report import Row, absolute, at_least, at_most
from benchmarks.report import table as rows_table
from qwed.store.group_commit import MAX_BATCH

COST = Cost(server_us=600, database_us=200, kept_bytes=2_000, log_bytes=4_000, commit_us=3_000, further_us=200)


def test_a_ratio_is_taken_round_by_round() -> None:
    assert ratio([1, 4, 9], [2, 2, 3]) == Figure(2, 0.5, 3)


@pytest.mark.parametrize(
    ("aim", "median", "met"),
    [
        (at_least(0.35), 0.35, True),
        (at_least(0.35), 0.34, False),
        (at_most(1.15), 1.15, True),
        (at_most(1.15), 1.2, False),
    ],
)
def test_a_missed_aim_is_called_missed(aim: object, median: float, met: bool) -> None:
    row = Row("a", Figure(median, median, median), aim)  # type: ignore[arg-type]
    assert row.verdict.endswith(": met" if met else ": missed")
    assert row.verdict in rows_table([row])


def test_a_figure_is_shown_with_its_spread() -> None:
    assert Row("a", figure([0.0649, 0.0571, 0.08])).shown == "0.065 (0.057 to 0.080)"
    assert absolute("a", [1234.4]).shown == "1,234"


@pytest.mark.parametrize("rate", RATES)
def test_the_machines_can_do_what_they_are_counted_for(rate: int) -> None:
    need = model(COST, rate)
    assert rate * COST.server_us <= need.servers * CORES * 1e6
    assert rate * COST.database_us <= need.databases * CORES * 1e6
    assert rate <= need.logs * COST.one_log


def test_a_log_takes_one_full_commit_after_the_other() -> None:
    assert COST._replace(commit_us=1_000, further_us=0).one_log == MAX_BATCH * 1_000
    assert COST._replace(commit_us=100, further_us=100).one_log == pytest.approx(10_000)


def test_what_breaks_first_is_what_is_fullest() -> None:
    assert model(COST, 1_000).first == "nothing"
    assert model(COST, 100_000).first.startswith("the log of one organisation")
    assert model(COST._replace(commit_us=1, further_us=0), 100_000).first == "the processors of one server machine"
    assert table(COST).count("\n") == len(RATES) + 1
