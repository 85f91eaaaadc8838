"""The pages: sections one after the other, the report's id and the number of the page at the foot of each."""

import io
import threading
from typing import Any

from reportlab import rl_config
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

from qwed.reports._pdf_sections import SECTIONS
from qwed.reports._pdf_tables import WIDTH
from qwed.reports._pdf_text import FAINT, HEADING, MONO, PLAIN, RULE, load_fonts, printable
from qwed.reports.data import ReportData

_PAGE_WIDTH, _PAGE_HEIGHT = A4
_MARGIN = (_PAGE_WIDTH - WIDTH) / 2
_FOOT, _TOP = 54.0, 48.0
_TOTAL = "PagesInAll"
_one_at_a_time = threading.Lock()
"""The library keeps what it draws with in the module: typefaces, styles, settings."""


def pdf_bytes(data: ReportData) -> bytes:
    """The report as a PDF; the same data gives the same bytes."""
    with _one_at_a_time:
        rl_config.invariant = 1
        # Bytes as they are: text of them is a quarter longer, for channels that no longer exist.
        rl_config.useA85 = 0
        load_fonts()
        return _built(data)


def _built(data: ReportData) -> bytes:
    file = io.BytesIO()
    document = _Document(
        file,
        pagesize=A4,
        title=f"Compliance report {data.report_id}",
        author=data.log.issuer,
        subject=f"{printable(data.agent.name)} ({data.agent_id}), {data.period.since} to {data.period.until}",
        creator="qwed",
        producer="qwed",
        lang="en",
        invariant=1,
    )
    frame = Frame(_MARGIN, _FOOT, WIDTH, _PAGE_HEIGHT - _FOOT - _TOP, 0, 0, 0, 0)

    def foot(canvas: Any, _document: Any) -> None:
        _draw_foot(canvas, data)

    document.addPageTemplates([PageTemplate(frames=[frame], onPage=foot)])
    document.build([part for section in SECTIONS for part in section(data)], canvasmaker=_Canvas)
    return file.getvalue()


class _Document(BaseDocTemplate):
    """Pages with an outline beside them: one entry for each section."""

    def afterFlowable(self, flowable: Any) -> None:  # noqa: N802 - the library calls it so
        """Called with each part once it stands on its page."""
        if getattr(flowable, "style", None) is HEADING:
            text = flowable.getPlainText()
            self.canv.bookmarkPage(text)
            self.canv.addOutlineEntry(text, text)


class _Canvas(Canvas):
    """Pages that say how many there are, which is known only at the end: each refers to one drawing made then."""

    def save(self) -> None:
        self.beginForm(_TOTAL, 0, 0, 60, 12)
        self.setFont(PLAIN, 7)
        self.setFillColor(FAINT)
        self.drawString(0, 3, f"of {self.getPageNumber() - 1:,}")
        self.endForm()
        super().save()


def _draw_foot(canvas: Any, data: ReportData) -> None:
    canvas.saveState()
    canvas.setStrokeColor(RULE)
    canvas.setLineWidth(0.4)
    canvas.line(_MARGIN, _FOOT - 10, _PAGE_WIDTH - _MARGIN, _FOOT - 10)
    canvas.setFillColor(FAINT)
    canvas.setFont(MONO, 7)
    canvas.drawString(_MARGIN, _FOOT - 22, data.report_id)
    canvas.drawCentredString(_PAGE_WIDTH / 2, _FOOT - 22, data.agent_id)
    canvas.setFont(PLAIN, 7)
    right = _PAGE_WIDTH - _MARGIN - 32
    canvas.drawRightString(right - 2, _FOOT - 22, f"page {canvas.getPageNumber():,}")
    canvas.translate(right, _FOOT - 25)
    canvas.doForm(_TOTAL)
    canvas.restoreState()
