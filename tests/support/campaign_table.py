"""Table of what the campaigns of `make drill` ran and counted, printed at the end of the run.

A test names its promises with `@campaign` and reports its counts with `figure`. Both travel with the report of the
test, so a test that failed, or whose process died, still has its row.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

Figure = Callable[[str, int], None]

_CAMPAIGN, _FIGURE = "campaign", "figure"
NO_PROMISE = "-"
"""Promise column of a drill that names none."""


def register(config: pytest.Config) -> None:
    """Collect the figures, and print the table in the main process."""
    config.pluginmanager.register(sys.modules[__name__], "figures")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CampaignTable(), "table of figures")


def campaign(promises: str, name: str) -> pytest.MarkDecorator:
    """Assign a drill to a row of the table."""
    return pytest.mark.campaign(promises, name)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Return `figure("kills", 25)`, which adds to the total of this name in the campaign."""
    sums: dict[str, list[Any]] = {}

    def hand_in(name: str, value: int) -> None:
        if name not in sums:
            sums[name] = [name, 0]
            request.node.user_properties.append((_FIGURE, sums[name]))
        sums[name][1] += value

    return hand_in


def pytest_itemcollected(item: pytest.Item) -> None:
    """Attach the campaign to every drill before it runs, so that a crash does not lose its row."""
    if item.get_closest_marker("drill") is None:
        return
    said = item.get_closest_marker("campaign")
    item.user_properties.append((_CAMPAIGN, list(said.args) if said else [NO_PROMISE, item.nodeid.partition("::")[0]]))


class CampaignRow(NamedTuple):
    """One campaign."""

    tests: set[str]
    held: set[str]
    """Number of tests that ended, and that passed."""
    figures: dict[str, int]


Rows = dict[tuple[str, str], CampaignRow]


def rows_of(reports: Iterable[Any]) -> Rows:
    """Return the campaigns of these reports; a test whose process died has started and not ended."""
    rows: Rows = {}
    places: dict[str, tuple[str, str]] = {}
    failed: set[str] = set()
    for report in reports:
        said = dict(report.user_properties).get(_CAMPAIGN)
        if said is not None:
            places[report.nodeid] = (said[0], said[1])
        if report.outcome == "failed":
            failed.add(report.nodeid)
            places.setdefault(report.nodeid, (NO_PROMISE, report.nodeid))
        if report.nodeid not in places:
            continue
        row = rows.setdefault(places[report.nodeid], CampaignRow(set(), set(), {}))
        row.tests.add(report.nodeid)
        if report.when == "teardown":
            _end(row, report, failed)
    return rows


def _end(row: CampaignRow, report: Any, failed: set[str]) -> None:
    """Add the properties of a test once: they come with each of its reports, and the last has all of them."""
    if report.nodeid not in failed:
        row.held.add(report.nodeid)
    for name, value in _figures_in(report):
        row.figures[name] = row.figures.get(name, 0) + value


def _figures_in(report: Any) -> Iterator[tuple[str, int]]:
    for kind, said in report.user_properties:
        if kind == _FIGURE:
            yield said[0], said[1]


def table(rows: Rows) -> list[str]:
    """Format the rows as lines with columns."""
    cells = [("promise", "campaign", "figures", "held")]
    for (promises, name), row in sorted(rows.items()):
        counted = [f"{value:,} {what}" for what, value in row.figures.items()]
        failed = len(row.tests - row.held)
        held = "yes" if not failed else f"NO: {failed} of {len(row.tests)} failed"
        cells.append((promises, name, ", ".join(counted or [f"{len(row.tests):,} tests"]), held))
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    lines = [" | ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


class CampaignTable:
    """Collector of the reports of every process."""

    def __init__(self) -> None:
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Store the report."""
        self._reports.append(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table if a campaign ran."""
        rows = rows_of(self._reports)
        if any(_CAMPAIGN in dict(report.user_properties) for report in self._reports):
            terminalreporter.write_sep("=", "drills")
            for line in table(rows):
                terminalreporter.write_line(line)
