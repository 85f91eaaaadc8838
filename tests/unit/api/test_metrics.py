"""Metrics: what is counted, that labels are closed sets, and that every metric is documented."""

import asyncio
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prometheus_client import Metric

from qwed.api.app import App
from qwed.api.routes import ROUTES
from qwed.api.server.admission import REASONS
from qwed.api.server.metrics import (
    BUILTIN_ANALYZERS,
    COMMIT_SECONDS,
    FAMILIES,
    METHODS,
    OTHER,
    REQUEST_SECONDS,
    SPAN_OUTCOMES,
    UNAUTHENTICATED_CODES,
    WEBHOOK_OUTCOMES,
)
from qwed.api.server.streaming import STREAM_OUTCOMES
from qwed.engines.registry import ENGINES
from qwed.gate import Gate
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.model import Decision, ErrorCode, Status
from qwed.model.histogram import BUCKETS
from qwed.settings import Settings
from qwed.witness.publishers import KINDS
from tests.docs.pages import ROOT
from tests.support.agent_names import unique_name
from tests.support.metrics_scrape import families, value

Request = tuple[str, str, dict[str, Any]]


class ScrapedApp:
    """Application that is sent requests and then scraped."""

    def __init__(self, opened: OpenedServices) -> None:
        self.opened = opened
        self.app = App(opened.services)
        self.key = {"X-API-Key": opened.owner_key or ""}
        registered: Any = Gate(opened).register_agent(name=unique_name(), principal_id="p")
        self.agent: str = registered["agent_id"]

    def ask(self, *requests: Request) -> str:
        async def run() -> str:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                for method, path, more in requests:
                    await client.request(method, path, **more)
                return (await client.get("/metrics", headers=self.key)).text

        return asyncio.run(run())


@pytest.fixture
def scrape() -> Iterator[ScrapedApp]:
    opened = open_services(Settings(rate_limit_per_key=1_000), in_memory=True)
    yield ScrapedApp(opened)
    close_services(opened.services)


def test_every_metric_is_documented_with_its_labels_and_no_other() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(qwed_\w+)` \| (.*?) \|", page, re.MULTILINE)
    documented = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    histograms: dict[str, tuple[str, ...]] = {REQUEST_SECONDS: ("route",), COMMIT_SECONDS: ()}
    assert documented == {name: row.labels for name, row in FAMILIES.items()} | histograms


def test_every_metric_is_there_from_the_start(scrape: ScrapedApp) -> None:
    metric_families = families(scrape.ask())
    assert {name for name in metric_families if name.startswith("qwed_")} == {
        *FAMILIES,
        REQUEST_SECONDS,
        COMMIT_SECONDS,
    }
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= set(metric_families)


def test_two_applications_count_apart(scrape: ScrapedApp) -> None:
    other = ScrapedApp(scrape.opened)
    assert value(scrape.ask(*[("GET", "/health", {})] * 3), "qwed_requests_total", route="/health") == 3
    assert value(other.ask(), "qwed_requests_total", route="/health") == 0


NASTY = (
    'x"} 1\nqwed_forged_total{a="b',
    "%0aqwed_forged_total%201",
    "../../etc/passwd",
    "\u202egnp.exe",
    "a" * 5_000,
    "%00",
    "{agent_id}",
)


def hostile(scrape: ScrapedApp) -> Iterator[Request]:
    """Yield requests with a hostile value in every place that a caller can choose."""
    for text in NASTY:
        path = text.replace('"', "%22").replace("\n", "%0a").replace("}", "%7d")
        for place in (f"/{path}", f"/agents/{path}", f"/agents/{path}/verify", f"/agents/{scrape.agent}/tools/{path}"):
            yield "GET", place, {"headers": scrape.key}
            yield "POST", place, {"headers": scrape.key, "json": {"action": {"type": text}}}
        yield "GET", "/agents", {"headers": {"X-API-Key": "qwed_live_" + path[:50].encode("ascii", "ignore").decode()}}
        body = {
            "action": {"type": "tool_call", "tool": text, "parameters": {text: text}},
            "context": {"conversation_id": text[:200], "step_number": 1},
            "options": {"risk_threshold": text},
        }
        yield "POST", f"/agents/{scrape.agent}/verify", {"headers": scrape.key, "json": body}
    for method in ("BREW", "TRACE", "OPTIONS", "DELETE", "PROPFIND", "X" * 100):
        yield method, "/agents", {"headers": scrape.key}


CODES = {row.code for row in ErrorCode} | {"none"}
CLOSED: dict[str, set[str]] = {
    "route": {row.path for row in ROUTES} | {"/openapi.json", "/metrics", "none"},
    "method": {*METHODS, OTHER},
    "decision": set(Decision),
    "code": CODES,
    "engine": {*ENGINES, *BUILTIN_ANALYZERS, OTHER},
    "reason": set(REASONS),
    "credential": {"key", "token"},
    "outcome": {*WEBHOOK_OUTCOMES, *SPAN_OUTCOMES, *STREAM_OUTCOMES, "published"},
    "publisher": set(KINDS),
    "le": {*map(str, BUCKETS), "+Inf"},
}


def test_no_label_holds_anything_a_caller_can_choose(scrape: ScrapedApp) -> None:
    text = scrape.ask(*hostile(scrape))
    statuses = {status.on_agent_wire for status in Status}
    for name, family in families(text).items():
        if not name.startswith("qwed_") or name == "qwed_build_info":
            continue
        _require_closed(family, statuses if name == "qwed_verdicts_total" else None)
    assert "forged" not in text


def _require_closed(family: Metric, statuses: set[str] | None) -> None:
    for sample in family.samples:
        for label, text in sample.labels.items():
            if label == "status" and statuses is None:
                assert text == "disconnected" or (text.isdigit() and 200 <= int(text) <= 599), sample
            else:
                assert text in (statuses if label == "status" and statuses else CLOSED[label]), sample


def test_the_text_does_not_grow_with_who_asks(scrape: ScrapedApp) -> None:
    requests = list(hostile(scrape))

    def by(name: str) -> list[Request]:
        return [(method, path.replace(scrape.agent, name), more) for method, path, more in requests]

    scrape.ask(*requests, *by("agent_0"))
    lines = [len(scrape.ask(*by(f"agent_{number}")).splitlines()) for number in range(1, 4)]
    assert len(set(lines)) == 1


def test_an_unknown_method_is_other(scrape: ScrapedApp) -> None:
    text = scrape.ask(("BREW", "/agents", {}), ("GET", "/nowhere", {}), ("DELETE", "/agents", {}))
    unrouted = {"route": "none"}
    assert value(text, "qwed_requests_total", method=OTHER, status="405", **unrouted) == 1
    assert value(text, "qwed_requests_total", method="GET", status="404", **unrouted) == 1
    assert value(text, "qwed_requests_total", method="DELETE", status="405", **unrouted) == 1


def test_decisions_and_verdicts_are_counted_as_they_were_answered(scrape: ScrapedApp) -> None:
    def verify(step: int, query: str) -> Request:
        body = {
            "action": {"type": "calculate", "query": query},
            "context": {"conversation_id": "c", "step_number": step},
        }
        return "POST", f"/agents/{scrape.agent}/verify", {"headers": scrape.key, "json": body}

    text = scrape.ask(verify(1, "2+2=4"), verify(1, "2+2=4"), verify(2, "1+1=2"))
    assert value(text, "qwed_decisions_total", decision="APPROVED", code="none") == 2
    assert value(text, "qwed_decisions_total", decision="DENIED", code="QWED-AGENT-LOOP-002") == 1
    assert value(text, "qwed_verdicts_total", engine="math", status="VERIFIED") == 2


def test_unauthenticated_requests_are_counted_by_code(scrape: ScrapedApp) -> None:
    text = scrape.ask(
        ("GET", "/agents", {}),
        ("GET", "/agents", {"headers": {"X-API-Key": "qwed_live_wrong"}}),
        ("POST", f"/agents/{scrape.agent}/verify", {"json": {}}),
        ("GET", "/agents", {"headers": scrape.key}),
    )
    assert {code: value(text, "qwed_unauthenticated_total", code=code) for code in UNAUTHENTICATED_CODES} == {
        "QWED-AUTH-001": 1,
        "QWED-AUTH-002": 1,
        "QWED-AGENT-002": 1,
    }


def test_seconds_are_counted_in_buckets_that_only_grow(scrape: ScrapedApp) -> None:
    text = scrape.ask(*[("GET", "/health", {})] * 7)
    buckets = [
        value(text, f"{REQUEST_SECONDS}_bucket", route="/health", le=edge) for edge in (*map(str, BUCKETS), "+Inf")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == value(text, f"{REQUEST_SECONDS}_count", route="/health") == 7
    assert value(text, f"{REQUEST_SECONDS}_sum", route="/health") > 0


def test_a_request_of_exactly_an_edge_is_within_it(scrape: ScrapedApp) -> None:
    meter = scrape.app.context.metrics.meter("GET", "/edges")
    for seconds in (*BUCKETS, 1_000.0):
        meter.count(200, None, seconds)
    text = scrape.ask()
    expected = [*range(1, len(BUCKETS) + 1), len(BUCKETS) + 1]
    edges = [*map(str, BUCKETS), "+Inf"]
    assert [value(text, f"{REQUEST_SECONDS}_bucket", route="/edges", le=edge) for edge in edges] == expected


def test_webhook_counters_are_those_of_the_dispatcher(scrape: ScrapedApp) -> None:
    assert value(scrape.ask(), "qwed_webhook_deliveries_total") == 0
    app: Any = scrape.app
    app.dispatcher = SimpleNamespace(delivered=3, failed=2, given_up=1)
    text = scrape.ask()
    assert [value(text, "qwed_webhook_deliveries_total", outcome=outcome) for outcome in WEBHOOK_OUTCOMES] == [3, 2, 1]


def test_the_request_that_reads_the_numbers_takes_no_place(scrape: ScrapedApp) -> None:
    text = scrape.ask()
    assert value(text, "qwed_requests_in_flight") == 0
    assert value(text, "qwed_body_bytes_in_flight") == 0
