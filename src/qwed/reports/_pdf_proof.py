"""PDF sections for verification: the log, its proofs, the framework mapping, attestations."""

import hashlib

from reportlab.platypus import Spacer

from qwed.reports._pdf_record import reason_cell, truncation_note
from qwed.reports._pdf_tables import Column, IdColumns, facts, grid, numbered
from qwed.reports._pdf_text import HEADING, MINOR, Paragraph, Story, format_time, identifier, marked_up
from qwed.reports.framework_mapping import frameworks_in
from qwed.reports.report_data import LogReceipt, ReportData


def the_log(data: ReportData) -> Story:
    """Render the state of the log and the inclusion proofs."""
    log, contents = data.log, data.contents
    story: Story = [
        Paragraph("9. The log", HEADING),
        marked_up(
            f"Entries of the log that belong to this agent and period: {data.activity_count:,}. The content beside "
            f"them is kept for {contents.kept:,}, erased for {contents.erased:,} and expired by retention for "
            f"{contents.expired:,}; the entries themselves are never removed. Content that is not what was put there: "
            f"{contents.tampered:,}."
        ),
    ]
    if log.head is None:
        return [*story, marked_up("The log has no signed head yet, so nothing can be proved with this report.")]
    story.append(
        facts(
            [
                ("Log id", identifier(log.head.log_id)),
                ("Size", f"{log.head.size:,}"),
                ("Root", identifier(log.head.root)),
                ("Time", format_time(log.head.time)),
                ("Issuer", identifier(log.issuer)),
                ("Key id (kid)", identifier(log.kid)),
                ("Signature (JWS)", identifier(log.head.signature)),
                ("SHA-256 of the leaves", identifier(log.leaves_sha256)),
            ]
        )
    )
    for name, receipt in (("first", log.first), ("last", log.last)):
        if receipt is not None:
            story += _receipt(name, receipt)
    return story


def _receipt(name: str, receipt: LogReceipt) -> Story:
    return [
        Paragraph(f"Inclusion of the period's {name} entry", MINOR),
        facts(
            [
                ("Index", f"{receipt.index:,}"),
                ("Leaf", identifier(receipt.leaf)),
                ("Leaf hash", identifier(hashlib.sha256(b"\x00" + receipt.leaf.encode()).hexdigest())),
                ("Audit path", [identifier(step) for step in receipt.path] or "empty: the log has one entry"),
            ]
        ),
    ]


def how_to_verify(data: ReportData) -> Story:
    """Render the verification steps."""
    return [Paragraph("10. How to verify this report", HEADING), numbered(data.verification)]


def mapping(data: ReportData) -> Story:
    """Render what the data shows for each framework clause."""
    story: Story = [
        Paragraph("11. What the data shows for common frameworks", HEADING),
        marked_up(data.mapping.statement),
    ]
    for framework in frameworks_in(data.mapping.clauses):
        rows = [(row.clause, row.title, row.shows) for row in data.mapping.clauses if row.framework == framework]
        columns = (Column("Clause", 14), Column("Subject", 26), Column("What the data shows", 62))
        story += [Paragraph(framework, MINOR), grid(columns, rows)]
    return story


def attestations(data: ReportData) -> Story:
    """Render every attestation with its log index."""
    count = len(data.attestations)
    story: Story = [
        Paragraph("Appendix: attestations", HEADING),
        marked_up(f"{count:,} in the period, each with the index of its entry in the log, newest first."),
    ]
    story += _revoked(data)
    return [*story, IdColumns(data.attestations)] if count else story


def _revoked(data: ReportData) -> Story:
    listed = data.revocations
    if not listed.entries:
        return [marked_up("None was revoked in the period.")]
    columns = (Column("Revoked", 24), Column("Attestation", 36, "id"), Column("By", 26, "id"), Column("Why", 34))
    rows = [
        (format_time(row.at), row.attestation_id, row.by, reason_cell(row.reason, row.content))
        for row in listed.entries
    ]
    return [grid(columns, rows), *truncation_note(listed), Spacer(1, 6)]
