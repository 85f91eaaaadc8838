"""Tables of the PDF report: multi-page grids with repeated headers, fact lists, id columns."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from reportlab.lib import colors
from reportlab.platypus import Flowable, LongTable, Table, TableStyle

from qwed.reports._pdf_text import (
    BAND,
    FIGURE,
    HEAD,
    HEAD_RIGHT,
    INK,
    LABEL,
    MONO,
    NUMBER,
    RULE,
    Paragraph,
    identifier,
    marked_up,
    text_cell,
)
from qwed.reports.report_data import AttestationEntry
from qwed.reports.yield_gil import yield_gil

WIDTH = 487.0
"""Width of the text on a page."""
_PADDING = [("LEFTPADDING", (0, 0), (-1, -1), 4), ("RIGHTPADDING", (0, 0), (-1, -1), 4)]
_GRID = TableStyle(
    [
        ("BACKGROUND", (0, 0), (-1, 0), BAND),
        ("LINEBELOW", (0, 0), (-1, 0), 0.7, INK),
        ("LINEBELOW", (0, 1), (-1, -1), 0.3, RULE),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("TOPPADDING", (0, 0), (-1, -1), 2.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
        *_PADDING,
    ]
)
_FACTS = TableStyle(
    [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.3, RULE),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
        *_PADDING,
    ]
)
_TILES = TableStyle(
    [
        ("BACKGROUND", (0, 0), (-1, -1), BAND),
        ("LINEAFTER", (0, 0), (-2, -1), 2, colors.white),
        ("TOPPADDING", (0, 0), (-1, 0), 6),
        ("BOTTOMPADDING", (0, 1), (-1, 1), 6),
        ("TOPPADDING", (0, 1), (-1, 1), 0),
        ("BOTTOMPADDING", (0, 0), (-1, 0), 0),
        ("LEFTPADDING", (0, 0), (-1, -1), 8),
    ]
)


class Column(NamedTuple):
    """Column header, share of the width, and kind of value."""

    head: str
    share: float
    kind: str = "text"
    """`text`, `id` or `number`."""


def _number(value: str | float) -> Paragraph:
    return Paragraph(value if isinstance(value, str) else f"{value:,}", NUMBER)


def _text(value: Any) -> Any:
    return text_cell(value) if value is None or isinstance(value, str) else value


_CELLS: dict[str, Callable[[Any], Any]] = {"text": _text, "id": identifier, "number": _number}


def grid(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> LongTable:
    """Return a table whose header repeats on every page."""
    whole = sum(column.share for column in columns)
    heads = [Paragraph(column.head, HEAD_RIGHT if column.kind == "number" else HEAD) for column in columns]
    cells = [[_CELLS[column.kind](value) for column, value in zip(columns, row, strict=True)] for row in rows]
    widths = [WIDTH * column.share / whole for column in columns]
    table = LongTable([heads, *cells], colWidths=widths, repeatRows=1, hAlign="LEFT")
    table.setStyle(_GRID)
    return table


def facts(rows: Sequence[tuple[str, Any]]) -> Table:
    """Return a two-column table of names and values."""
    cells = [[Paragraph(escape(name, quote=False), LABEL), _text(value)] for name, value in rows]
    table = Table(cells, colWidths=[112, WIDTH - 112], hAlign="LEFT")
    table.setStyle(_FACTS)
    return table


def tiles(figures: Sequence[tuple[str, str]]) -> Table:
    """Return a row of large figures."""
    cells = [[Paragraph(figure, FIGURE) for _, figure in figures], [Paragraph(name, LABEL) for name, _ in figures]]
    table = Table(cells, colWidths=[WIDTH / len(figures)] * len(figures), hAlign="LEFT")
    table.setStyle(_TILES)
    return table


def numbered(sentences: Sequence[str]) -> Table:
    """Return a numbered list of sentences."""
    cells = [[f"{number}.", marked_up(sentence)] for number, sentence in enumerate(sentences, 1)]
    table = Table(cells, colWidths=[18, WIDTH - 18], hAlign="LEFT")
    table.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), ("FONTSIZE", (0, 0), (-1, -1), 8), *_PADDING]))
    return table


class IdColumns(Flowable):
    """Log indexes and attestation ids in columns; splits over pages. Drawn directly because there may be many."""

    _COLUMNS, _LEADING, _SIZE = 3, 8.6, 6.6

    def __init__(self, rows: Sequence[AttestationEntry]) -> None:
        super().__init__()
        self._rows = rows

    def _lines(self) -> int:
        return -(-len(self._rows) // self._COLUMNS)

    def wrap(self, width: float, _height: float) -> tuple[float, float]:
        self.width, self.height = width, self._lines() * self._LEADING
        return self.width, self.height

    def split(self, _width: float, height: float) -> list[Flowable]:
        fitting = int(height // self._LEADING) * self._COLUMNS
        if fitting == 0:
            return []
        return [IdColumns(self._rows[:fitting]), IdColumns(self._rows[fitting:])]

    def draw(self) -> None:
        lines = self._lines()
        self.canv.setFont(MONO, self._SIZE)
        self.canv.setFillColor(INK)
        for index, row in enumerate(self._rows):
            yield_gil()
            column, line = divmod(index, lines)
            x, y = column * self.width / self._COLUMNS, self.height - (line + 1) * self._LEADING + 2
            self.canv.drawString(x, y, f"{row.log_index:>9} {row.attestation_id}")
