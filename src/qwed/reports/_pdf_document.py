"""PDF document: sections in order, with report id and page number in the footer."""

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
from qwed.reports.report_data import ReportData

_PAGE_WIDTH, _PAGE_HEIGHT = A4
_MARGIN = (_PAGE_WIDTH - WIDTH) / 2
_FOOT, _TOP = 54.0, 48.0
_TOTAL = "PagesInAll"
_reportlab_lock = threading.Lock()
"""reportlab keeps fonts, styles and settings in module globals."""


def pdf_bytes(data: ReportData) -> bytes:
    """Return the report as a PDF; equal data gives equal bytes."""
    with _reportlab_lock:
        rl_config.invariant = 1
        # ASCII85 encoding would make the file a quarter larger.
        rl_config.useA85 = 0
        load_fonts()
        return _build_document(data)


def _build_document(data: ReportData) -> bytes:
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
        _draw_footer(canvas, data)

    document.addPageTemplates([PageTemplate(frames=[frame], onPage=foot)])
    document.build([part for section in SECTIONS for part in section(data)], canvasmaker=_Canvas)
    return file.getvalue()


class _Document(BaseDocTemplate):
    """Document template that adds an outline entry for each section."""

    def afterFlowable(self, flowable: Any) -> None:  # noqa: N802 - the library calls it so
        """Add an outline entry when a heading is placed."""
        if getattr(flowable, "style", None) is HEADING:
            text = flowable.getPlainText()
            self.canv.bookmarkPage(text)
            self.canv.addOutlineEntry(text, text)


class _Canvas(Canvas):
    """Canvas whose pages show the total page count, which is known only at the end."""

    def save(self) -> None:
        self.beginForm(_TOTAL, 0, 0, 60, 12)
        self.setFont(PLAIN, 7)
        self.setFillColor(FAINT)
        self.drawString(0, 3, f"of {self.getPageNumber() - 1:,}")
        self.endForm()
        super().save()


def _draw_footer(canvas: Any, data: ReportData) -> None:
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
