"""Bar chart of the ratios of a run, with spread and target."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import matplotlib

from benchmarks.report import Row

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

_OURS, _AIM = "#4269d0", "#ff725c"
_WIDTH = 48


def draw(rows: Sequence[Row], file: Path) -> None:
    """Write the picture; rows without a chart are only in the table."""
    charts = list(dict.fromkeys(row.chart for row in rows if row.chart))
    groups = [[row for row in rows if row.chart == chart] for chart in charts]
    heights = [len(group) for group in groups]
    figure, axes = pyplot.subplots(
        len(groups), 1, figsize=(10, 0.48 * sum(heights) + 0.9 * len(groups)), height_ratios=heights, squeeze=False
    )
    for chart, group, [axis] in zip(charts, groups, axes, strict=True):
        _bars(axis, chart, group)
    figure.tight_layout()
    figure.savefig(file, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def _bars(axis: Axes, chart: str, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    medians = [row.found.median for row in rows]
    spread = [[row.found.median - row.found.low for row in rows], [row.found.high - row.found.median for row in rows]]
    axis.barh(places, medians, xerr=spread, color=_OURS, height=0.6, error_kw={"ecolor": "#555555", "capsize": 3})
    for place, row in zip(places, rows, strict=True):
        if row.aim is not None:
            axis.plot([row.aim.bound] * 2, [place - 0.4, place + 0.4], color=_AIM, linewidth=3)
            axis.annotate(f" {row.aim}", (row.aim.bound, place - 0.42), color=_AIM, fontsize=7, va="bottom")
        axis.annotate(f" {row.found.median:.3g}", (row.found.high, place), fontsize=8, va="center")
    axis.set_yticks(list(places), [fill(row.name, _WIDTH) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_title(chart, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
