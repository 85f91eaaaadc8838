"""PDF writer of a report; reportlab is imported on first use."""

from qwed.reports.report_data import ReportData

MEDIA = "application/pdf"


def pdf_bytes(data: ReportData) -> bytes:
    """Return the report on A4 pages; equal data gives equal bytes. Raise ImportError without reportlab."""
    try:
        from qwed.reports._pdf_document import pdf_bytes as built
    except ImportError as missing:
        raise ImportError("a report as PDF needs reportlab: install `qwed[server]`") from missing
    return built(data)
