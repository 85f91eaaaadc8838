"""Builds the compliance report of one agent and one period, reading the log in pages (spec 7.3)."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from qwed.domain.agent import Agent
from qwed.kernel.admin.approvals import submit_expiry_of
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit import audit_log
from qwed.kernel.pagination import FROM, TO, one_of
from qwed.kernel.reports.rows import csv_rows, json_rows
from qwed.kernel.reports.statistics import ActivityStatistics
from qwed.kernel.request_schema import RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.time_range import read_time_range
from qwed.kernel.views.agent_views import agent_view
from qwed.ledger import leaf
from qwed.ledger.sequencer import Head
from qwed.ledger.verifier import read_head
from qwed.model import ErrorCode, Event
from qwed.model.clock import DAY, rfc3339
from qwed.reports import csv_format, json_format, pdf_format, report_data
from qwed.reports.framework_mapping import mapping_of
from qwed.reports.verification_howto import STEPS
from qwed.reports.yield_gil import yield_gil
from qwed.store.protocol import ActivityQuery, ActivityRecord

DEFAULT_DAYS, MAX_DAYS = 30, 366
MAX_ACTIVITIES = 200_000
"""Limit of one report; a longer record needs several."""
FORMAT_NAMES = ("pdf", "json", "csv")
_PAGE = 500
_TIMEOUT = 30.0


class ReportFormat(NamedTuple):
    """Format of a report: its media type and its writer."""

    media: str
    write: Callable[["ComplianceReport"], Iterator[bytes]]


class ComplianceReport(NamedTuple):
    """A report with its statistics; its bytes are generated as they are read."""

    data: report_data.ReportData
    format: str
    reader: "ActivityReader"

    @property
    def media(self) -> str:
        """Media type of the bytes."""
        return FORMATS[self.format].media

    @property
    def file_name(self) -> str:
        """Suggested file name."""
        period = self.data.period
        return f"compliance-{self.data.agent_id}-{period.since[:10]}-{period.until[:10]}.{self.format}"

    def chunks(self) -> Iterator[bytes]:
        """Return the bytes piece by piece; JSON and CSV hold at most one page of activities in memory."""
        return FORMATS[self.format].write(self)


class ActivityReader(NamedTuple):
    """Reads an agent's activities of a period, newest first, up to one head of the log."""

    agent: Agent
    since: float
    until: float
    size: int
    services: Services

    def entries(self) -> Iterator[ActivityRecord]:
        """Return every activity under the head, read page by page."""
        return self._pages(self.agent.agent_id, "all")

    def halts(self) -> Iterator[ActivityRecord]:
        """Return the uses of the organisation's kill switch in the period, which halt or resume the agent."""
        return self._pages(self.agent.organisation_id, "halt")

    def _pages(self, owner_id: str, kind: str) -> Iterator[ActivityRecord]:
        query = ActivityQuery(owner_id, _PAGE, None, None, self.since, self.until, kind)
        while page := self.services.store.activities(query):
            for entry in page:
                if entry.log_index < self.size:
                    yield_gil()
                    yield entry
            query = query._replace(before=page[-1].log_index)


class ReportRequest(RequestStruct, rename={"since": "from", "until": "to"}):
    """Format and period of a report."""

    format: Annotated[
        str,
        Meta(description="Format of the report.", extra_json_schema={"enum": [*FORMAT_NAMES]}),
        one_of(FORMAT_NAMES),
    ] = "pdf"
    since: Annotated[str, FROM] | None = None
    until: Annotated[str, TO] | None = None


def compliance_report(agent: Agent, query: ReportRequest, services: Services) -> ComplianceReport | Problem:
    """Return the requested report with its statistics, or the problem with the query."""
    time_range = _time_range_of(query, services)
    if isinstance(time_range, Problem):
        return time_range
    _record_expired(agent, services)
    head = audit_log.newest_head(agent.organisation_id, services)
    reader = ActivityReader(agent, *time_range, head.size, services)
    data = _gather(reader, head)
    return data if isinstance(data, Problem) else ComplianceReport(data, query.format, reader)


def _time_range_of(query: ReportRequest, services: Services) -> tuple[float, float] | Problem:
    time_range = read_time_range(query.since, query.until)
    if isinstance(time_range, Problem):
        return time_range
    # The next millisecond: everything up to now is before it.
    until = (int(services.clock.now() * 1000) + 1) / 1000 if time_range.until is None else time_range.until
    # Not before 1970: earlier times cannot always be formatted.
    since = max(until - DEFAULT_DAYS * DAY, 0.0) if time_range.since is None else time_range.since
    if since >= until:
        return problem(ErrorCode.BAD_OPTION, f"`from` must be before `to`, which is {rfc3339(until)}")
    if until - since > MAX_DAYS * DAY:
        message = f"a report covers at most {MAX_DAYS} days: request the period in parts"
        return problem(ErrorCode.BAD_OPTION, message)
    return since, until


def _record_expired(agent: Agent, services: Services) -> None:
    """Make expired approvals durable in the log before the log is read."""
    for resolution in submit_expiry_of(agent, services, services.clock.now()):
        resolution.wait_result(_TIMEOUT)


def _gather(reader: ActivityReader, head: Head) -> report_data.ReportData | Problem:
    statistics, vault = ActivityStatistics(), reader.services.vault
    for entry in reader.entries():
        decoded = leaf.decode(entry.leaf)
        statistics.add(entry, decoded, vault.content(entry, decoded.activity_id))
        if statistics.count > MAX_ACTIVITIES:
            message = f"a report holds at most {MAX_ACTIVITIES:,} activities: request the period in parts"
            return problem(ErrorCode.BAD_OPTION, message)
    for entry in reader.halts():
        decoded = leaf.decode(entry.leaf)
        statistics.add_halt(entry, decoded, vault.content(entry, decoded.activity_id))
    log = _log_of(reader, head, statistics)
    return log if isinstance(log, Problem) else _report_of(reader, head, statistics, log)


def _report_of(
    reader: ActivityReader, head: Head, statistics: ActivityStatistics, log: report_data.ReportedLog
) -> report_data.ReportData:
    agent, services = reader.agent, reader.services
    trust = agent.trust
    bare = report_data.ReportData(
        generated_at=head.time,
        agent_id=agent.agent_id,
        period=report_data.ReportPeriod(since=rfc3339(reader.since), until=rfc3339(reader.until)),
        summary=statistics.summary(),
        activity_count=statistics.count,
        agent=_subject_of(agent, services),
        trust=report_data.ReportedTrust(
            level=int(trust),
            name=trust.word,
            raised=statistics.events[Event.TRUST_RAISED],
            lowered=statistics.events[Event.TRUST_LOWERED],
            degraded=statistics.events[Event.TRUST_DEGRADED],
            history=statistics.trust.listed(),
        ),
        decisions=statistics.decisions(),
        refusals=statistics.refusals.listed(),
        approvals=statistics.approvals.approvals(lambda activity_id: _earlier_leaf(reader, activity_id)),
        executions=statistics.executions(),
        standing=statistics.standing(),
        revocations=statistics.revocations.listed(),
        contents=statistics.contents(),
        log=log,
        verification=STEPS,
        attestations=tuple(statistics.attestations),
    )
    return report_data.with_report_id(msgspec.structs.replace(bare, mapping=mapping_of(bare)))


def _earlier_leaf(reader: ActivityReader, activity_id: str) -> leaf.Leaf | None:
    entry = reader.services.store.find_activity(reader.agent.agent_id, activity_id)
    return None if entry is None else leaf.decode(entry.leaf)


def _subject_of(agent: Agent, services: Services) -> report_data.ReportedAgent:
    view = msgspec.to_builtins(agent_view(agent, halted=services.store.halted(agent.organisation_id)))
    fields = {name: view[name] for name in report_data.ReportedAgent.__struct_fields__ if name in view}
    return report_data.ReportedAgent(**fields, organisation_id=agent.organisation_id, trust_name=agent.trust.word)


def _log_of(reader: ActivityReader, head: Head, statistics: ActivityStatistics) -> report_data.ReportedLog | Problem:
    """Return the log section with proofs for both ends of the period; a Problem if the record does not fit its head."""
    log_head = report_data.LogHead(**msgspec.to_builtins(head))
    ends: dict[str, Any] = {}
    for name, entry in (("first", statistics.first), ("last", statistics.last)):
        if entry is not None:
            proof = audit_log.prove_inclusion(reader.agent.organisation_id, entry.log_index, head.size, reader.services)
            if isinstance(proof, Problem):
                return proof
            ends[name] = report_data.LogReceipt(
                index=proof.index, leaf=entry.leaf, path=tuple(proof.path), head=log_head
            )
    return report_data.ReportedLog(
        issuer=reader.services.signer.keyring.issuer,
        kid=read_head(msgspec.to_builtins(head), None).kid,
        head=log_head,
        **ends,
        leaves_sha256=statistics.leaves_sha256,
    )


def _as_pdf(report: ComplianceReport) -> Iterator[bytes]:
    yield pdf_format.pdf_bytes(report.data)


def _as_json(report: ComplianceReport) -> Iterator[bytes]:
    reader = report.reader
    return json_format.json_chunks(report.data, json_rows(reader.entries(), reader.services))


def _as_csv(report: ComplianceReport) -> Iterator[bytes]:
    reader = report.reader
    return csv_format.csv_chunks(csv_rows(reader.entries(), reader.services))


FORMATS = {
    "pdf": ReportFormat(pdf_format.MEDIA, _as_pdf),
    "json": ReportFormat(json_format.MEDIA, _as_json),
    "csv": ReportFormat(csv_format.MEDIA, _as_csv),
}
"""Formats by name."""
