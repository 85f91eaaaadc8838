"""Reports built from a store: complete, in pages, under one head; and their route."""

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.api.handlers.reports import ReportChunks
from qwed.cli import main
from qwed.domain.agent import Agent
from qwed.gate import Gate, open_gate
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import build_change
from qwed.kernel.reports import builder as reports
from qwed.kernel.reports.builder import ComplianceReport, ReportRequest, compliance_report
from qwed.kernel.reports.concurrency import MAX_PER_ORGANISATION, ReportLimiter, ReportSlot
from qwed.kernel.request_schema import parse
from qwed.ledger import verifier
from qwed.reports.report_data import MAX_LIST_ENTRIES
from qwed.store.queries import MAX_PAGE_CHARACTERS
from tests.support.campaign_table import Figure, campaign
from tests.support.history_writer import write_history
from tests.support.manual_clock import ManualClock

Json = dict[str, Any]


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate(clock=ManualClock().clock()) as opened:
        yield opened


def _agent(gate: Gate, **fields: Any) -> Agent:
    registered: Any = gate.register_agent(**{"name": "tested", "principal_id": "ops", "trust_level": 2, **fields})
    agent = gate.services.store.find_agent(registered.agent_id)
    assert agent is not None
    return agent


def _request(*query: str) -> ReportRequest:
    request = parse(dict(zip(("format", "from", "to"), query, strict=False)), ReportRequest)
    assert isinstance(request, ReportRequest), request
    return request


def _report(gate: Gate, agent: Agent, *query: str) -> ComplianceReport:
    report = compliance_report(agent, _request(*query), gate.services)
    assert isinstance(report, ComplianceReport), report
    return report


def _json(gate: Gate, agent: Agent, *period: str) -> Json:
    read: Json = json.loads(b"".join(_report(gate, agent, "json", *period).chunks()))
    return read


def test_every_activity_of_many_pages_is_there_once(gate: Gate) -> None:
    agent = _agent(gate)
    write_history(gate, agent.agent_id, 1_700)
    report = _json(gate, agent)
    indexes = [activity["log_index"] for activity in report["activities"]]
    assert sorted(indexes) == list(range(1_701))
    assert report["summary"]["total_actions"] == sum(day["total"] for day in report["decisions"]["by_day"]) == 1_530
    assert report["executions"]["done"] == 170
    assert len(report["attestations"]) == report["summary"]["approved"] == 1_190
    rows = csv.DictReader(io.StringIO(b"".join(_report(gate, agent, "csv").chunks()).decode(), newline=""))
    assert [int(row["log_index"]) for row in rows] == indexes


def test_a_list_holds_the_newest_and_the_counts_all(gate: Gate) -> None:
    agent = _agent(gate)
    write_history(gate, agent.agent_id, 3_000)
    refusals = _json(gate, agent)["refusals"]
    assert (refusals["total"], len(refusals["entries"])) == (600, MAX_LIST_ENTRIES)
    indexes = [entry["log_index"] for entry in refusals["entries"]]
    assert indexes == sorted(indexes)
    assert indexes[-1] == 3_000


def test_content_larger_than_a_page_leaves_nothing_out(gate: Gate) -> None:
    agent = _agent(gate)
    assert MAX_PAGE_CHARACTERS < 5 * 900_000
    for step in range(1, 7):
        action = {"type": "calculate", "query": "1+1", "parameters": {"note": "x" * 900_000, "step": step}}
        gate.verify_action(agent.agent_id, action, {"conversation_id": "c", "step_number": step})
    report = _json(gate, agent)
    assert [activity["step_number"] for activity in report["activities"]] == [*range(6, 0, -1), None]


def test_what_comes_after_the_head_is_left_for_the_next_report(gate: Gate) -> None:
    agent = _agent(gate)
    report = _report(gate, agent, "json")
    gate.verify_action(
        agent.agent_id, {"type": "calculate", "query": "1+1"}, {"conversation_id": "c", "step_number": 1}
    )
    read = json.loads(b"".join(report.chunks()))
    assert len(read["activities"]) == read["activity_count"] == 1
    assert _json(gate, agent)["activity_count"] == 2


def test_a_report_contains_nothing_of_other_agents(gate: Gate) -> None:
    mine, other = _agent(gate), _agent(gate, name="OTHER")
    write_history(gate, other.agent_id, 20)
    gate.file_complaint(other.agent_id, "OTHER words")
    report = _json(gate, mine)
    assert report["activity_count"] == 1
    assert "OTHER" not in json.dumps(report)
    assert report["log"]["head"]["size"] > 20


def test_too_many_activities_are_refused_by_name(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_ACTIVITIES", 20)
    agent = _agent(gate)
    write_history(gate, agent.agent_id, 30)
    refused = compliance_report(agent, _request("json"), gate.services)
    assert isinstance(refused, Problem)
    assert (refused.code, refused.message) == (
        "QWED-REQ-005",
        "a report holds at most 20 activities: request the period in parts",
    )


def test_an_event_from_a_later_version_is_counted_and_no_more(gate: Gate) -> None:
    agent = _agent(gate)
    unknown: Any = "promoted"
    change = build_change(
        unknown, "gate", agent.organisation_id, gate.services.clock.now(), gate.services, agent_id=agent.agent_id
    )
    outcome: Any = gate.services.store.commit(change)
    outcome.wait_result(30)
    report = _json(gate, agent)
    assert (report["activity_count"], report["standing"]["history"]["total"]) == (2, 1)


def test_the_halt_of_an_organisation_shows_in_the_status(gate: Gate) -> None:
    agent = _agent(gate)
    gate.suspend_all("for the test")
    assert _json(gate, agent)["agent"]["status"] == "suspended"


def test_a_revoked_attestation_is_listed_with_the_reason(gate: Gate) -> None:
    agent = _agent(gate)
    gate.verify_action(
        agent.agent_id,
        {"type": "calculate", "query": "1+1"},
        {"conversation_id": "c", "step_number": 1},
        {"require_attestation": True},
    )
    (attested,) = _json(gate, agent)["attestations"]
    gate.revoke_attestation(attested["attestation_id"], reason="given by mistake")
    (revocation,) = _json(gate, agent)["revocations"]["entries"]
    assert (revocation["attestation_id"], revocation["reason"]) == (attested["attestation_id"], "given by mistake")


def _tampered(directory: Path, statement: str) -> None:
    with sqlite3.connect(directory / "qwed.db") as database:
        database.execute(statement)
    database.close()


def test_a_log_that_is_not_what_was_signed_gives_no_report(tmp_path: Path) -> None:
    with open_gate(tmp_path) as gate:
        agent = _agent(gate)
        gate.verify_action(
            agent.agent_id, {"type": "shell_command", "query": "rm -rf /"}, {"conversation_id": "c", "step_number": 1}
        )
        _tampered(tmp_path, "UPDATE activities SET leaf = replace(leaf, 'DENIED', 'APPROVED') WHERE decision != ''")
        refused = compliance_report(agent, _request("pdf"), gate.services)
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-SEC-003"


def test_content_that_was_changed_is_counted_as_changed(tmp_path: Path) -> None:
    with open_gate(tmp_path) as gate:
        agent = _agent(gate)
        gate.verify_action(
            agent.agent_id, {"type": "calculate", "query": "1+1"}, {"conversation_id": "c", "step_number": 1}
        )
        _tampered(tmp_path, "UPDATE activities SET payload = 'AAAA' || substr(payload, 5) WHERE decision != ''")
        report = _json(gate, agent)
    assert report["contents"] == {"kept": 1, "erased": 0, "expired": 0, "tampered": 1}


# Over HTTP


class Bench:
    """An application in process."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.app = App(gate.services)
        self.agent = _agent(gate)
        self.url = f"/agents/{self.agent.agent_id}/compliance-report"
        self.limiter = gate.services.reports

    def play(self, acts: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            transport = httpx.ASGITransport(self.app)
            headers = {"X-API-Key": self.gate.owner_key or ""}
            async with httpx.AsyncClient(transport=transport, base_url="http://node", headers=headers) as client:
                return await acts(client)

        return asyncio.run(run())

    def get(self, **query: str) -> httpx.Response:
        return self.play(lambda client: client.get(self.url, params=query))  # type: ignore[no-any-return]


@pytest.fixture
def bench(gate: Gate) -> Bench:
    return Bench(gate)


@pytest.mark.parametrize("form", ["pdf", "json", "csv", "docx"])
def test_a_slot_is_released_however_it_ends(bench: Bench, form: str) -> None:
    for _ in range(MAX_PER_ORGANISATION + 1):
        assert bench.get(format=form).status_code == (400 if form == "docx" else 200)
    assert len(bench.limiter) == 0


def test_one_report_too_many_waits_its_turn(bench: Bench) -> None:
    slots = [bench.limiter.take(bench.agent.organisation_id) for _ in range(MAX_PER_ORGANISATION)]
    busy = bench.get(format="json")
    assert (busy.status_code, busy.json()["error"]["code"]) == (429, "QWED-SYS-001")
    assert int(busy.headers["retry-after"]) > 0
    for slot in slots:
        assert isinstance(slot, ReportSlot)
        slot.leave()
    assert bench.get(format="json").status_code == 200


def test_a_client_that_disconnects_releases_its_slot(bench: Bench) -> None:
    write_history(bench.gate, bench.agent.agent_id, 2_000)

    async def act() -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": bench.url,
            "query_string": b"format=json",
            "headers": [(b"x-api-key", (bench.gate.owner_key or "").encode())],
        }
        gone, sent = asyncio.Event(), []
        requests = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Json:
            if requests:
                return requests.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Json) -> None:
            sent.append(message)
            if len(sent) == 3:
                assert len(bench.limiter) == 1
                gone.set()
                await asyncio.Event().wait()

        await bench.app(scope, receive, send)
        assert sum(len(message.get("body", b"")) for message in sent) < 1_000_000

    asyncio.run(act())
    assert len(bench.limiter) == 0


def test_a_stream_that_never_started_releases_its_slot() -> None:
    limiter = ReportLimiter()
    slot = limiter.take("org_1")
    assert isinstance(slot, ReportSlot)
    ReportChunks(iter(()), slot).close()
    assert len(limiter) == 0


def test_the_head_of_a_report_alone_can_be_asked_for(bench: Bench) -> None:
    response = bench.play(lambda client: client.head(bench.url, params={"format": "csv"}))
    assert response.headers["qwed-report-activities"] == "1"
    assert len(bench.limiter) == 0


@pytest.mark.drill
@campaign("P6", "a report of 50,000 activities")
def test_fifty_thousand_activities_are_reported_within_bounds(tmp_path: Path, figure: Figure) -> None:
    """Memory is bounded by the ids, not by the content; every format has every activity."""
    import tracemalloc

    with open_gate(tmp_path) as gate:
        agent = _agent(gate)
        write_history(gate, agent.agent_id, 50_000, seconds=40)
        for form in ("json", "csv", "pdf"):
            tracemalloc.start()
            report = _report(gate, agent, form)
            size = sum(len(chunk) for chunk in report.chunks())
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert report.data.activity_count == 50_001
            assert size > 500_000
            assert peak < 64 << 20, (form, peak)
            figure("activities reported", 50_001)


def test_the_printed_steps_lead_from_the_report_to_a_checked_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Follow the steps of an auditor: an export, the head of the report, the public keys, and the verifier."""
    with open_gate(tmp_path / "data") as gate:
        agent = _agent(gate)
        write_history(gate, agent.agent_id, 30)
        report = _json(gate, agent)
        gate.verify_action(
            agent.agent_id, {"type": "calculate", "query": "1+1"}, {"conversation_id": "c", "step_number": 1}
        )
        jwks = {"keys": gate.services.signer.keyring.public_jwks()}
    (tmp_path / "head.json").write_text(json.dumps(report["log"]["head"]))
    (tmp_path / "jwks.json").write_text(json.dumps(jwks))
    assert main(["audit", "export", "--data-dir", str(tmp_path / "data"), "--output", str(tmp_path / "log.jsonl")]) == 0
    arguments = [
        str(tmp_path / "log.jsonl"),
        "--head",
        str(tmp_path / "head.json"),
        "--jwks",
        str(tmp_path / "jwks.json"),
    ]
    assert verifier.main(arguments) == 0
    assert main(["audit", "verify", "--export", *arguments]) == 0
    changed = (tmp_path / "log.jsonl").read_text().replace("DENIED", "APPROVED", 1)
    (tmp_path / "log.jsonl").write_text(changed)
    assert verifier.main(arguments) == 1
    capsys.readouterr()
