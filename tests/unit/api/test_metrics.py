"""What is counted, that its labels are a closed set, and that every metric is documented."""

import asyncio
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prometheus_client import Metric

from qwed.api.app import App
from qwed.api.metrics import COMMIT_SECONDS, FAMILIES, METHODS, OTHER, OUTCOMES, OWN_JUDGES, SECONDS, SPANS, STRANGERS
from qwed.api.pressure import REASONS
from qwed.api.routes import ROUTES
from qwed.api.streaming import ENDS
from qwed.engines.table import ENGINES
from qwed.gate import Gate
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.witness.places import KINDS
from qwed.words import Decision, ErrorCode, Status
from qwed.words.timing import BUCKETS
from tests.docs.pages import ROOT
from tests.support.scrape import families, value

Asked = tuple[str, str, dict[str, Any]]


class Counted:
    """An application, asked and then read."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.app = App(opened.services)
        self.key = {"X-API-Key": opened.owner_key or ""}
        registered: Any = Gate(opened).register_agent(name="a", principal_id="p")
        self.agent: str = registered["agent_id"]

    def ask(self, *asked: Asked) -> str:
        async def run() -> str:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                for method, path, more in asked:
                    await client.request(method, path, **more)
                return (await client.get("/metrics", headers=self.key)).text

        return asyncio.run(run())


@pytest.fixture
def counted() -> Iterator[Counted]:
    opened = open_services(Settings(rate_limit_per_key=1_000), in_memory=True)
    yield Counted(opened)
    close_services(opened.services)


def test_every_metric_is_documented_with_its_labels_and_no_other() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(qwed_\w+)` \| (.*?) \|", page, re.MULTILINE)
    documented = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    histograms: dict[str, tuple[str, ...]] = {SECONDS: ("route",), COMMIT_SECONDS: ()}
    assert documented == {name: row.labels for name, row in FAMILIES.items()} | histograms


def test_every_metric_is_there_from_the_start(counted: Counted) -> None:
    shown = families(counted.ask())
    assert {name for name in shown if name.startswith("qwed_")} == {*FAMILIES, SECONDS, COMMIT_SECONDS}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= set(shown)


def test_two_applications_count_apart(counted: Counted) -> None:
    other = Counted(counted.opened)
    assert value(counted.ask(*[("GET", "/health", {})] * 3), "qwed_requests_total", route="/health") == 3
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


def hostile(counted: Counted) -> Iterator[Asked]:
    """Everything a caller can choose, chosen badly."""
    for text in NASTY:
        path = text.replace('"', "%22").replace("\n", "%0a").replace("}", "%7d")
        for place in (f"/{path}", f"/agents/{path}", f"/agents/{path}/verify", f"/agents/{counted.agent}/tools/{path}"):
            yield "GET", place, {"headers": counted.key}
            yield "POST", place, {"headers": counted.key, "json": {"action": {"type": text}}}
        yield "GET", "/agents", {"headers": {"X-API-Key": "qwed_live_" + path[:50].encode("ascii", "ignore").decode()}}
        body = {
            "action": {"type": "tool_call", "tool": text, "parameters": {text: text}},
            "context": {"conversation_id": text[:200], "step_number": 1},
            "options": {"risk_threshold": text},
        }
        yield "POST", f"/agents/{counted.agent}/verify", {"headers": counted.key, "json": body}
    for method in ("BREW", "TRACE", "OPTIONS", "DELETE", "PROPFIND", "X" * 100):
        yield method, "/agents", {"headers": counted.key}


CODES = {row.code for row in ErrorCode} | {"none"}
CLOSED: dict[str, set[str]] = {
    "route": {row.path for row in ROUTES} | {"/openapi.json", "/metrics", "none"},
    "method": {*METHODS, OTHER},
    "decision": set(Decision),
    "code": CODES,
    "engine": {*ENGINES, *OWN_JUDGES, OTHER},
    "reason": set(REASONS),
    "credential": {"key", "token"},
    "outcome": {*OUTCOMES, *SPANS, "published"},
    "place": set(KINDS),
    "end": set(ENDS),
    "le": {*map(str, BUCKETS), "+Inf"},
}


def test_no_label_holds_anything_a_caller_can_choose(counted: Counted) -> None:
    text = counted.ask(*hostile(counted))
    statuses = {status.on_agent_wire for status in Status}
    for name, family in families(text).items():
        if not name.startswith("qwed_") or name == "qwed_build_info":
            continue
        _require_closed(family, statuses if name == "qwed_verdicts_total" else None)
    assert "forged" not in text


def _require_closed(family: Metric, statuses: set[str] | None) -> None:
    for sample in family.samples:
        for label, said in sample.labels.items():
            if label == "status" and statuses is None:
                assert said == "gone" or (said.isdigit() and 200 <= int(said) <= 599), sample
            else:
                assert said in (statuses if label == "status" and statuses else CLOSED[label]), sample


def test_the_text_does_not_grow_with_who_asks(counted: Counted) -> None:
    asked = list(hostile(counted))

    def by(name: str) -> list[Asked]:
        return [(method, path.replace(counted.agent, name), more) for method, path, more in asked]

    counted.ask(*asked, *by("agent_0"))
    lines = [len(counted.ask(*by(f"agent_{number}")).splitlines()) for number in range(1, 4)]
    assert len(set(lines)) == 1


def test_a_method_nobody_knows_is_other(counted: Counted) -> None:
    text = counted.ask(("BREW", "/agents", {}), ("GET", "/nowhere", {}), ("DELETE", "/agents", {}))
    unrouted = {"route": "none"}
    assert value(text, "qwed_requests_total", method=OTHER, status="405", **unrouted) == 1
    assert value(text, "qwed_requests_total", method="GET", status="404", **unrouted) == 1
    assert value(text, "qwed_requests_total", method="DELETE", status="405", **unrouted) == 1


def test_decisions_and_verdicts_are_counted_as_they_were_answered(counted: Counted) -> None:
    def verify(step: int, query: str) -> Asked:
        body = {
            "action": {"type": "calculate", "query": query},
            "context": {"conversation_id": "c", "step_number": step},
        }
        return "POST", f"/agents/{counted.agent}/verify", {"headers": counted.key, "json": body}

    text = counted.ask(verify(1, "2+2=4"), verify(1, "2+2=4"), verify(2, "1+1=2"))
    assert value(text, "qwed_decisions_total", decision="APPROVED", code="none") == 2
    assert value(text, "qwed_decisions_total", decision="DENIED", code="QWED-AGENT-LOOP-002") == 1
    assert value(text, "qwed_verdicts_total", engine="math", status="VERIFIED") == 2


def test_strangers_are_counted_by_what_they_were_told(counted: Counted) -> None:
    text = counted.ask(
        ("GET", "/agents", {}),
        ("GET", "/agents", {"headers": {"X-API-Key": "qwed_live_wrong"}}),
        ("POST", f"/agents/{counted.agent}/verify", {"json": {}}),
        ("GET", "/agents", {"headers": counted.key}),
    )
    assert {code: value(text, "qwed_strangers_refused_total", code=code) for code in STRANGERS} == {
        "QWED-AUTH-001": 1,
        "QWED-AUTH-002": 1,
        "QWED-AGENT-002": 1,
    }


def test_seconds_are_counted_in_buckets_that_only_grow(counted: Counted) -> None:
    text = counted.ask(*[("GET", "/health", {})] * 7)
    buckets = [value(text, f"{SECONDS}_bucket", route="/health", le=edge) for edge in (*map(str, BUCKETS), "+Inf")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == value(text, f"{SECONDS}_count", route="/health") == 7
    assert value(text, f"{SECONDS}_sum", route="/health") > 0


def test_a_request_of_exactly_an_edge_is_within_it(counted: Counted) -> None:
    meter = counted.app._node.metrics.meter("GET", "/edges")
    for seconds in (*BUCKETS, 1_000.0):
        meter.count(200, None, seconds)
    text = counted.ask()
    expected = [*range(1, len(BUCKETS) + 1), len(BUCKETS) + 1]
    edges = [*map(str, BUCKETS), "+Inf"]
    assert [value(text, f"{SECONDS}_bucket", route="/edges", le=edge) for edge in edges] == expected


def test_webhooks_are_read_off_the_postman_where_there_is_one(counted: Counted) -> None:
    assert value(counted.ask(), "qwed_webhooks_total") == 0
    app: Any = counted.app
    app.postman = SimpleNamespace(delivered=3, failed=2, given_up=1)
    text = counted.ask()
    assert [value(text, "qwed_webhooks_total", outcome=outcome) for outcome in OUTCOMES] == [3, 2, 1]


def test_the_request_that_reads_the_numbers_takes_no_place(counted: Counted) -> None:
    text = counted.ask()
    assert value(text, "qwed_requests_in_flight") == 0
    assert value(text, "qwed_body_bytes_in_flight") == 0
