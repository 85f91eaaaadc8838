"""Charts of the PDF report: decisions per day, refusals per error code."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from reportlab.graphics.shapes import Drawing, Line, Rect, String
from reportlab.lib import colors

from qwed.reports._pdf_text import FAINT, INK, MONO, PLAIN, RULE
from qwed.reports.report_data import CodeCount, DailyCounts

DECISION_COLOURS = {
    "approved": ("APPROVED", colors.HexColor("#3a7d5c")),
    "corrected": ("CORRECTED", colors.HexColor("#5b8fc7")),
    "pending": ("PENDING", colors.HexColor("#e0b04c")),
    "denied": ("DENIED", colors.HexColor("#b4483c")),
    "budget_exceeded": ("BUDGET_EXCEEDED", colors.HexColor("#6d5a8d")),
}
"""Member, label and colour of each decision, from the bottom of a bar to its top."""
MAX_BARS = 62
MAX_CODES = 14
_WEEK = 7
_LEFT, _BOTTOM, _TOP, _HEIGHT = 38.0, 24.0, 22.0, 165.0
_ROW = 14.0
_Anchor = Literal["start", "middle", "end"]


class Bar(NamedTuple):
    """One bar: its first day and the count of each decision."""

    first: date
    counts: tuple[int, ...]


def bars_of(days: Sequence[DailyCounts], first: date, last: date) -> tuple[list[Bar], int]:
    """Return the bars from the first to the last day, empty ones included, and the number of days per bar."""
    width = 1 if (last - first).days < MAX_BARS else _WEEK
    by_date = {date.fromisoformat(day.day): day for day in days}
    bars = []
    for offset in range(0, (last - first).days + 1, width):
        begin = first + timedelta(days=offset)
        within = [by_date[day] for day in (begin + timedelta(days=n) for n in range(width)) if day in by_date]
        bars.append(Bar(begin, tuple(sum(getattr(day, name) for day in within) for name in DECISION_COLOURS)))
    return bars, width


def axis_ticks(largest: int) -> range:
    """Return three to six tick values at 1, 2 or 5 times a power of ten."""
    size = 1
    while True:
        for times in (1, 2, 5):
            step = size * times
            if largest <= step * 5:
                return range(0, (max(largest, 1) + step - 1) // step * step + 1, step)
        size *= 10


def decisions_chart(bars: Sequence[Bar], width: float) -> Drawing:
    """Draw decisions as stacked bars over time."""
    drawing = Drawing(width, _HEIGHT)
    steps = axis_ticks(max((sum(bar.counts) for bar in bars), default=0))
    scale = (_HEIGHT - _BOTTOM - _TOP) / steps[-1]
    for step in steps:
        y = _BOTTOM + step * scale
        drawing.add(Line(_LEFT, y, width, y, strokeColor=RULE, strokeWidth=0.4))
        drawing.add(_text(_LEFT - 4, y - 2.2, f"{step:,}", "end"))
    slot = (width - _LEFT) / max(len(bars), 1)
    every = -(-len(bars) // 11)
    for index, bar in enumerate(bars):
        x = _LEFT + index * slot
        _add_bar(drawing, bar, x + slot * 0.14, slot * 0.72, scale)
        if index % every == 0:
            drawing.add(_text(x + slot / 2, _BOTTOM - 10, f"{bar.first:%d %b}", "middle"))
    _add_legend(drawing)
    return drawing


def _add_bar(drawing: Drawing, bar: Bar, x: float, width: float, scale: float) -> None:
    y = _BOTTOM
    for count, (_, hue) in zip(bar.counts, DECISION_COLOURS.values(), strict=True):
        if count:
            drawing.add(_block(x, y, width, count * scale, hue))
            y += count * scale


def _add_legend(drawing: Drawing) -> None:
    x, y = _LEFT, _HEIGHT - 10
    for name, hue in DECISION_COLOURS.values():
        drawing.add(_block(x, y, 7, 7, hue))
        drawing.add(_text(x + 10, y + 1, name, "start", INK))
        x += 26 + len(name) * 5.1


def codes_chart(rows: Sequence[CodeCount], width: float) -> Drawing:
    """Draw refusals per error code, most frequent first."""
    top_rows = rows[:MAX_CODES]
    height = len(top_rows) * _ROW + 4
    drawing = Drawing(width, height)
    left, largest = 122.0, max((row.count for row in top_rows), default=1)
    bar_width = width - left - 44
    for index, row in enumerate(top_rows):
        y = height - (index + 1) * _ROW
        length = max(row.count / largest * bar_width, 0.6)
        drawing.add(_text(left - 5, y + 3.4, row.code, "end", INK, MONO))
        drawing.add(_block(left, y + 1.5, length, 9, DECISION_COLOURS["denied"][1]))
        drawing.add(_text(left + length + 4, y + 3.4, f"{row.count:,}", "start", INK))
    return drawing


def _block(x: float, y: float, width: float, height: float, hue: colors.Color) -> Rect:
    block = Rect(x, y, width, height)
    block.fillColor, block.strokeColor = hue, None
    return block


def _text(x: float, y: float, text: str, anchor: _Anchor, hue: colors.Color = FAINT, font: str = PLAIN) -> String:
    return String(x, y, text, textAnchor=anchor, fontName=font, fontSize=6.6, fillColor=hue)
