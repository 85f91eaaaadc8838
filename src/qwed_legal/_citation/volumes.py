"""Volumes of reporter series, and the years in which their cases were decided.

A row lists volumes with certain years, each from a case cited with it. The cases of any other volume were decided
between those of the nearest listed volumes.
"""

from bisect import bisect_left, bisect_right
from datetime import date
from functools import cache
from typing import NamedTuple

from qwed.model.data_files import read_rows


class ReporterSeries(NamedTuple):
    """Series of a reporter."""

    known: tuple[tuple[int, int, int], ...]
    """Volume with its first and last known year, ordered by volume."""
    last: int | None
    """Last volume of a closed series."""
    yearly: int
    """Maximum number of volumes a year, for a series that continues."""
    slack: int
    """Number of years by which a case may be printed out of order."""
    pages: int
    """Maximum number of pages in a volume."""


@cache
def reporter_series() -> dict[str, ReporterSeries]:
    """Return the parsed table."""
    series = {}
    for name, *numbers, known in read_rows(__file__, "volumes.txt", 6):
        last, yearly, slack, pages = map(int, numbers)
        series[name] = ReporterSeries(_known_volumes(name, known), last or None, yearly, slack, pages)
    return series


def _known_volumes(name: str, row: str) -> tuple[tuple[int, int, int], ...]:
    rows = [_parse_volume(entry) for entry in row.split()]
    if name == "S. Ct.":
        # One volume a term since October 1884: volume 74 is October Term 1953.
        rows += [(volume, volume + 1879, volume + 1880) for volume in range(5, 147)]
    return tuple(rows)


def _parse_volume(text: str) -> tuple[int, int, int]:
    volume, _, years = text.partition(":")
    first, _, last = years.partition("-")
    return int(volume), int(first), int(last or first)


def last_volume(series: ReporterSeries, today: date) -> int:
    """Return the highest possible volume on that day."""
    if series.last is not None:
        return series.last
    volume, first, _ = series.known[-1]
    return volume + series.yearly * max(1, today.year - first + 1)


def volume_years(series: ReporterSeries, volume: int, today: date) -> tuple[int, int]:
    """Return the first and the last year in which a case of the volume can have been decided."""
    own = next((row for row in series.known if row[0] == volume), None)
    if own is not None and series.slack:
        return own[1] - series.slack, own[2] + series.slack
    volumes = [row[0] for row in series.known]
    below, above = bisect_left(volumes, volume) - 1, bisect_right(volumes, volume)
    first = min(series.known[below][2] if below >= 0 else 9999, own[1] if own else 9999)
    closing = series.known[-1][2] if series.last is not None else today.year
    last = max(series.known[above][1] if above < len(volumes) else closing, own[2] if own else 0)
    # Before 1900 a case is dated by its term or by the day of decision.
    slack = series.slack or int(first < 1900)
    return first - slack, last + slack
