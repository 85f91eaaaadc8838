"""The report as a PDF. What draws it is loaded on first use: most processes never make one."""

from qwed.reports.data import ReportData

MEDIA = "application/pdf"


def pdf_bytes(data: ReportData) -> bytes:
    """The report on A4 pages; the same data gives the same bytes. ImportError where the library is not installed."""
    try:
        from qwed.reports._pdf_document import pdf_bytes as built
    except ImportError as missing:
        raise ImportError("a report as PDF needs reportlab: install `qwed[server]`") from missing
    return built(data)
