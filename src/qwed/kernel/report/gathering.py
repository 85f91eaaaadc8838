"""Spec 7.3: the compliance report of one agent and one period, gathered from the log in pages."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.people.approvals import expire_of
from qwed.kernel.period import read_span
from qwed.kernel.proving import audit
from qwed.kernel.report.figures import Figures
from qwed.kernel.report.rows import csv_rows, json_rows
from qwed.kernel.services import Services
from qwed.kernel.views.agents import agent_view
from qwed.ledger import leaf
from qwed.ledger.sequencer import Head
from qwed.ledger.verifier import read_head
from qwed.reports import csv_format, data, json_format, pdf_format
from qwed.reports.checking import STEPS
from qwed.reports.mapping import mapping_of
from qwed.reports.turns import turn
from qwed.store.agent import Agent
from qwed.store.protocol import ActivityQuery, Entry
from qwed.words import ErrorCode, Event
from qwed.words.clock import DAY, rfc3339

USUAL_DAYS, MOST_DAYS = 30, 366
MOST_ACTIVITIES = 200_000
"""In one report; a longer record is asked for in several."""
_PAGE = 500
_PATIENCE = 30.0


class Asked(NamedTuple):
    """The query as it came in."""

    format: str | None = None
    since: str | None = None
    until: str | None = None


class Format(NamedTuple):
    """How a report is written: its media type, and what makes its bytes."""

    media: str
    write: Callable[["Report"], Iterator[bytes]]


class Report(NamedTuple):
    """A report whose figures are known; its bytes are made as they are taken."""

    data: data.ReportData
    format: str
    walk: "Walk"

    @property
    def media(self) -> str:
        """The media type of the bytes."""
        return FORMATS[self.format].media

    @property
    def file_name(self) -> str:
        """What to call it on disk."""
        period = self.data.period
        return f"compliance-{self.data.agent_id}-{period.since[:10]}-{period.until[:10]}.{self.format}"

    def chunks(self) -> Iterator[bytes]:
        """The bytes, piece by piece; of JSON and CSV no more than a page of activities is held at a time."""
        return FORMATS[self.format].write(self)


class Walk(NamedTuple):
    """Over an agent's activities in a period, newest first, under one head of the log."""

    agent: Agent
    since: float
    until: float
    size: int
    services: Services

    def entries(self) -> Iterator[Entry]:
        """Every activity that the head covers, read page by page."""
        return self._pages(self.agent.agent_id, "all")

    def halts(self) -> Iterator[Entry]:
        """The uses of its organisation's kill switch in the period, each of which stopped it or let it go on."""
        return self._pages(self.agent.organisation_id, "halt")

    def _pages(self, whose: str, kind: str) -> Iterator[Entry]:
        query = ActivityQuery(whose, _PAGE, None, None, self.since, self.until, kind)
        while page := self.services.store.activities(query):
            for entry in page:
                if entry.log_index < self.size:
                    turn()
                    yield entry
            query = query._replace(before=page[-1].log_index)


def compliance_report(agent: Agent, asked: Asked, services: Services) -> Report | Problem:
    """The report asked for, its figures gathered, or what is wrong with the question."""
    name = "pdf" if asked.format is None else asked.format
    if name not in FORMATS:
        return problem(ErrorCode.BAD_OPTION, f"`format` must be one of {', '.join(FORMATS)}")
    span = _span_of(asked, services)
    if isinstance(span, Problem):
        return span
    _settle(agent, services)
    head = audit.newest_head(agent.organisation_id, services)
    walk = Walk(agent, *span, head.size, services)
    gathered = _gathered(walk, head)
    return gathered if isinstance(gathered, Problem) else Report(gathered, name, walk)


def _span_of(asked: Asked, services: Services) -> tuple[float, float] | Problem:
    span = read_span(asked.since, asked.until)
    if isinstance(span, Problem):
        return span
    # The next millisecond: whatever has happened by now is before it.
    until = (int(services.clock.now() * 1000) + 1) / 1000 if span.until is None else span.until
    # Not before there was anything to record: not every earlier moment can be written.
    since = max(until - USUAL_DAYS * DAY, 0.0) if span.since is None else span.since
    if since >= until:
        return problem(ErrorCode.BAD_OPTION, f"`from` must be before `to`, which is {rfc3339(until)}")
    if until - since > MOST_DAYS * DAY:
        message = f"a report covers at most {MOST_DAYS} days: ask for the period in parts"
        return problem(ErrorCode.BAD_OPTION, message)
    return since, until


def _settle(agent: Agent, services: Services) -> None:
    """What ran out is on record, and on disk, before the record is read."""
    if expire_of(agent, services, services.clock.now()):
        services.store.durable().block(_PATIENCE)


def _gathered(walk: Walk, head: Head) -> data.ReportData | Problem:
    figures, vault = Figures(), walk.services.vault
    for entry in walk.entries():
        kept = leaf.decode(entry.leaf)
        figures.add(entry, kept, vault.content(entry, kept.activity_id))
        if figures.count > MOST_ACTIVITIES:
            message = f"a report holds at most {MOST_ACTIVITIES:,} activities: ask for the period in parts"
            return problem(ErrorCode.BAD_OPTION, message)
    for entry in walk.halts():
        kept = leaf.decode(entry.leaf)
        figures.add_halt(entry, kept, vault.content(entry, kept.activity_id))
    log = _log_of(walk, head, figures)
    return log if isinstance(log, Problem) else _report_of(walk, head, figures, log)


def _report_of(walk: Walk, head: Head, figures: Figures, log: data.Log) -> data.ReportData:
    agent, services = walk.agent, walk.services
    trust = agent.trust
    bare = data.ReportData(
        generated_at=head.time,
        agent_id=agent.agent_id,
        period=data.ReportPeriod(since=rfc3339(walk.since), until=rfc3339(walk.until)),
        summary=figures.summary(),
        activity_count=figures.count,
        agent=_subject_of(agent, services),
        trust=data.Trust(
            level=int(trust),
            name=trust.word,
            raised=figures.events[Event.TRUST_RAISED],
            lowered=figures.events[Event.TRUST_LOWERED],
            degraded=figures.events[Event.TRUST_DEGRADED],
            history=figures.trust.listed(),
        ),
        decisions=figures.decisions(),
        refusals=figures.refusals.listed(),
        approvals=figures.waiting.approvals(lambda activity_id: _earlier(walk, activity_id)),
        executions=figures.executions(),
        standing=figures.standing(),
        revocations=figures.revocations.listed(),
        contents=figures.contents(),
        log=log,
        verification=STEPS,
        attestations=tuple(figures.attestations),
    )
    return data.identified(msgspec.structs.replace(bare, mapping=mapping_of(bare)))


def _earlier(walk: Walk, activity_id: str) -> leaf.Leaf | None:
    found = walk.services.store.find_activity(walk.agent.agent_id, activity_id)
    return None if found is None else leaf.decode(found.leaf)


def _subject_of(agent: Agent, services: Services) -> data.Subject:
    shown = msgspec.to_builtins(agent_view(agent, halted=services.store.halted(agent.organisation_id)))
    known = {name: shown[name] for name in data.Subject.__struct_fields__ if name in shown}
    return data.Subject(**known, organisation_id=agent.organisation_id, trust_name=agent.trust.word)


def _log_of(walk: Walk, head: Head, figures: Figures) -> data.Log | Problem:
    """Where the log stands, with proofs for both ends of the period; Problem where the record does not fit its head."""
    shown = data.LogHead(**msgspec.to_builtins(head))
    ends: dict[str, Any] = {}
    for name, entry in (("first", figures.first), ("last", figures.last)):
        if entry is not None:
            proof = audit.prove_inclusion(walk.agent.organisation_id, entry.log_index, head.size, walk.services)
            if isinstance(proof, Problem):
                return proof
            ends[name] = data.LogReceipt(index=proof.index, leaf=entry.leaf, path=tuple(proof.path), head=shown)
    return data.Log(
        issuer=walk.services.signer.keyring.issuer,
        kid=read_head(msgspec.to_builtins(head), None).kid,
        head=shown,
        **ends,
        leaves_sha256=figures.leaves_sha256,
    )


def _as_pdf(report: Report) -> Iterator[bytes]:
    yield pdf_format.pdf_bytes(report.data)


def _as_json(report: Report) -> Iterator[bytes]:
    walk = report.walk
    return json_format.json_chunks(report.data, json_rows(walk.entries(), walk.services))


def _as_csv(report: Report) -> Iterator[bytes]:
    walk = report.walk
    return csv_format.csv_chunks(csv_rows(walk.entries(), walk.services))


FORMATS = {
    "pdf": Format(pdf_format.MEDIA, _as_pdf),
    "json": Format(json_format.MEDIA, _as_json),
    "csv": Format(csv_format.MEDIA, _as_csv),
}
"""Every format, by the name it is asked for with."""
