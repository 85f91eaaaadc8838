"""Spec 7.3: the compliance report. Its figures are gathered first, its bytes are made while the client takes them."""

import asyncio
from collections.abc import Iterator
from typing import Self

from qwed.api.access import require_own_agent
from qwed.api.http import Call, Headers, Response, refused, streamed
from qwed.kernel.answer import Problem
from qwed.kernel.report.desk import Place
from qwed.kernel.report.gathering import Asked, Report, compliance_report
from qwed.store.agent import Agent

QUERY = {"format": "format", "from": "since", "to": "until"}


async def get_compliance_report(call: Call) -> Response:
    """The report of one agent, to any key of its organisation."""
    found = require_own_agent(call)
    if isinstance(found, Problem):
        return refused(found)
    _actor, agent = found
    place = call.services.reports.take(agent.organisation_id)
    if isinstance(place, Problem):
        return refused(place)
    handed_over = False
    try:
        response = await _made(call, agent, place)
        handed_over = response.chunks is not None
        return response
    finally:
        if not handed_over:
            place.leave()


async def _made(call: Call, agent: Agent, place: Place) -> Response:
    asked = Asked(**{QUERY[name]: value for name, value in call.query.items()})
    loop, threads = asyncio.get_running_loop(), call.services.reports.threads
    report = await loop.run_in_executor(threads, compliance_report, agent, asked, call.services)
    if isinstance(report, Problem):
        return refused(report)
    if report.format == "pdf":
        # Whole, and in one of our threads: it is known only at the end how many pages there are.
        body = await loop.run_in_executor(threads, _whole, report)
        return Response(200, body, _headers(report))
    return streamed(call.node.streams.from_thread(Pieces(report.chunks(), place)), *_headers(report))


def _whole(report: Report) -> bytes:
    return b"".join(report.chunks())


def _headers(report: Report) -> Headers:
    return (
        (b"content-type", report.media.encode()),
        (b"content-disposition", f'attachment; filename="{report.file_name}"'.encode()),
        (b"cache-control", b"no-store"),
        (b"qwed-report-id", report.data.report_id.encode()),
        (b"qwed-report-activities", b"%d" % report.data.activity_count),
    )


class Pieces:
    """The bytes of a report; whoever closes it, begun or not, gives its place back."""

    def __init__(self, pieces: Iterator[bytes], place: Place) -> None:
        self._pieces = pieces
        self._place = place

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """No more of it."""
        self._place.leave()
