"""Handler of the compliance report: the data is collected first, the bytes are streamed (spec 7.3)."""

import asyncio
from collections.abc import Iterator
from typing import Self

from qwed.api.server.auth import require_own_agent
from qwed.api.server.endpoint import Headers, RequestContext, Response, error_response, stream_response
from qwed.domain.agent import Agent
from qwed.kernel.answer import Problem
from qwed.kernel.operations.operation import Access, E, operation
from qwed.kernel.reports.builder import ComplianceReport, ReportRequest, compliance_report
from qwed.kernel.reports.concurrency import ReportSlot
from qwed.kernel.request_schema import parse_query
from qwed.kernel.views.activity_views import ActivityView
from qwed.model.endpoints import Endpoint
from qwed.reports.report_data import ReportData


class ReportedActivity(ActivityView, frozen=True, kw_only=True):
    """Activity with its leaf, the text whose hash is in the Merkle tree."""

    leaf: str


class ReportView(ReportData, frozen=True, kw_only=True):
    """Compliance report as JSON (spec 7.3)."""

    activities: list[ReportedActivity]
    """Newest first."""


@operation(
    Endpoint.GET_COMPLIANCE_REPORT,
    "Get a compliance report as PDF, JSON or CSV (spec 7.3)",
    access=Access.OWN_AGENT,
    request=ReportRequest,
    response=ReportView,
    errors=(E.BAD_OPTION, E.TAMPERING_FOUND),
    files=("application/pdf", "text/csv"),
)
async def get_compliance_report(request: RequestContext) -> Response:
    """Return the report of one agent to a key of its organisation."""
    target = require_own_agent(request)
    if isinstance(target, Problem):
        return error_response(target)
    _actor, agent = target
    slot = request.services.reports.take(agent.organisation_id)
    if isinstance(slot, Problem):
        return error_response(slot)
    streaming = False
    try:
        response = await _build_report(request, agent, slot)
        streaming = response.chunks is not None
        return response
    finally:
        if not streaming:
            slot.leave()


async def _build_report(request: RequestContext, agent: Agent, slot: ReportSlot) -> Response:
    query = parse_query(request.query, ReportRequest)
    if isinstance(query, Problem):
        return error_response(query)
    loop, threads = asyncio.get_running_loop(), request.services.reports.threads
    report = await loop.run_in_executor(threads, compliance_report, agent, query, request.services)
    if isinstance(report, Problem):
        return error_response(report)
    if report.format == "pdf":
        # Rendered completely, in a thread: the number of pages is known at the end only.
        body = await loop.run_in_executor(threads, _render_all, report)
        return Response(200, body, _headers(report))
    return stream_response(request.app.streams.from_thread(ReportChunks(report.chunks(), slot)), *_headers(report))


def _render_all(report: ComplianceReport) -> bytes:
    return b"".join(report.chunks())


def _headers(report: ComplianceReport) -> Headers:
    return (
        (b"content-type", report.media.encode()),
        (b"content-disposition", f'attachment; filename="{report.file_name}"'.encode()),
        (b"cache-control", b"no-store"),
        (b"qwed-report-id", report.data.report_id.encode()),
        (b"qwed-report-activities", b"%d" % report.data.activity_count),
    )


class ReportChunks:
    """Bytes of a report; closing it releases the report slot."""

    def __init__(self, chunks: Iterator[bytes], slot: ReportSlot) -> None:
        self._chunks = chunks
        self._slot = slot

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Release the slot."""
        self._slot.leave()
