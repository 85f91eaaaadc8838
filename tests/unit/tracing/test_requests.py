"""Traced requests: a span per request and per stage, and no content of the request."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from qwed.api.app import App
from qwed.api.server.offload import MAX_INLINE_BYTES
from qwed.gate import Gate
from qwed.kernel.analysis.content_scan import LARGE
from qwed.kernel.bootstrap import close_services, open_services
from qwed.settings import Settings
from tests.support.metrics_scrape import value
from tests.support.trace_collector import TraceCollector, attributes_of, below, roots

ADMISSION = ["load", "admit", "reserve"]
WHOLE = [*ADMISSION, "check_permissions", "run_engine", "assess_risk", "decide", "commit", "attest"]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class TracedApp:
    """Application with a collector."""

    def __init__(self, share: float = 1.0, **more: Any) -> None:
        self.collector = TraceCollector()
        settings = Settings(otel_endpoint=self.collector.url, otel_sample=share, **more)
        self.opened = open_services(settings, in_memory=True)
        self.app = App(self.opened.services)
        self.key = {"X-API-Key": self.opened.owner_key or ""}
        registered: Any = Gate(self.opened).register_agent(name="a", principal_id="p")
        self.agent: str = registered["agent_id"]
        self.token: str = registered["agent_token"]

    def ask(self, *requests: dict[str, Any]) -> list[httpx.Response]:
        """Send all requests at once, on one event loop."""

        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)  # type: ignore[arg-type]  # the same ASGI
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                return await asyncio.gather(*(client.request(**request_args) for request_args in requests))

        return asyncio.run(run())

    def verify(self, action: dict[str, Any], step: int = 1, **headers: str) -> dict[str, Any]:
        context = {"conversation_id": "the-secret-conversation", "step_number": step}
        body = {"action": action, "context": context}
        url = f"/agents/{self.agent}/verify"
        return {"method": "POST", "url": url, "json": body, "headers": self.key | headers}

    def spans(self) -> list[Span]:
        """Flush, and return all spans."""
        tracer = self.app.context.tracer
        assert tracer is not None
        tracer.close()
        return self.collector.spans()

    def close(self) -> None:
        close_services(self.opened.services)
        self.collector.close()


@pytest.fixture
def traced() -> Iterator[TracedApp]:
    created = TracedApp()
    yield created
    created.close()


SUM = {"type": "calculate", "query": "1 + 1 = 2"}


def test_a_decision_is_a_span_with_a_child_for_each_stage_and_words_of_ours(traced: TracedApp) -> None:
    [answer] = traced.ask(traced.verify(SUM))
    assert answer.json()["decision"] == "APPROVED"
    spans = traced.spans()
    [root] = roots(spans)
    assert root.name == "POST /agents/{agent_id}/verify"
    assert root.parent_span_id == b""
    assert attributes_of(root) == {
        "http.request.method": "POST",
        "http.route": "/agents/{agent_id}/verify",
        "http.response.status_code": 200,
        "qwed.decision": "APPROVED",
        "qwed.engine": "math",
        "qwed.risk": "low",
        "qwed.action_type": "calculate",
        "qwed.organisation_id": traced.opened.organisation_id,
        "qwed.agent_id": traced.agent,
    }
    children = below(spans, root)
    assert [span.name for span in children] == WHOLE
    assert all(
        root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
        for span in children
    )


def test_a_refusal_says_its_code_and_how_far_it_came(traced: TracedApp) -> None:
    first, second = traced.verify(SUM), traced.verify(SUM)
    traced.ask(first)
    traced.ask(second)
    spans = traced.spans()
    root = roots(spans)[1]
    attributes = attributes_of(root)
    assert (attributes["qwed.decision"], attributes["qwed.error_code"]) == ("DENIED", "QWED-AGENT-LOOP-002")
    assert [span.name for span in below(spans, root)] == ["load", "admit", "commit"]


def test_requests_that_are_decided_at_the_same_time_are_told_apart(traced: TracedApp) -> None:
    many = 40
    parents = [f"{number:032x}" for number in range(1, many + 1)]
    answers = traced.ask(
        *(
            traced.verify(
                {**SUM, "query": f"{number} + 1 = {number + 1}"}, number, traceparent=f"00-{parent}-{PARENT}-01"
            )
            for number, parent in enumerate(parents, 1)
        )
    )
    assert {answer.json()["decision"] for answer in answers} == {"APPROVED"}
    spans = traced.spans()
    assert sorted(root.trace_id.hex() for root in roots(spans)) == parents
    for root in roots(spans):
        assert root.parent_span_id.hex() == PARENT
        assert [span.name for span in below(spans, root)] == WHOLE


@pytest.mark.parametrize("size", [MAX_INLINE_BYTES + 1, LARGE + 1])
def test_a_request_that_runs_in_threads_has_its_stages_too(traced: TracedApp, size: int) -> None:
    traced.ask(traced.verify({"type": "tool_call", "tool": "get_weather", "parameters": {"note": "x" * size}}))
    spans = traced.spans()
    [root] = roots(spans)
    names = [span.name for span in below(spans, root)]
    assert names[: len(ADMISSION)] == ADMISSION
    assert "commit" in names


NEVER = ("the-secret-conversation", "hunter2", "qwed_agent_", "qwed_live_", "DROP", "a-key-of-mine")


def test_nothing_of_the_action_its_conversation_or_a_credential_is_sent(traced: TracedApp) -> None:
    nasty = {"type": "tool_call", "tool": "hunter2_tool", "parameters": {"q": "DROP TABLE hunter2"}}
    stranger = {**traced.verify(SUM), "headers": {"Authorization": "Bearer qwed_agent_hunter2"}}
    elsewhere = {"method": "GET", "url": "/agents/hunter2", "headers": traced.key}
    nowhere = {"method": "GET", "url": "/hunter2?key=hunter2", "headers": traced.key}
    odd = traced.verify({"type": "hunter2", "query": "hunter2"}, 2)
    own = traced.verify(SUM, 3, **{"Idempotency-Key": "a-key-of-mine"})
    own["headers"] = {"Authorization": f"Bearer {traced.token}", "Idempotency-Key": "a-key-of-mine"}
    traced.ask(
        traced.verify(nasty, tracestate="x=hunter2", baggage="y=hunter2"), stranger, elsewhere, nowhere, odd, own
    )
    spans = traced.spans()
    assert len(roots(spans)) == 5
    sent = b"".join(heard.body for heard in traced.collector.heard)
    assert [word for word in NEVER if word.encode() in sent] == []
    types = sorted(str(attributes_of(root).get("qwed.action_type")) for root in roots(spans))
    assert types == ["None", "None", "calculate", "other", "tool_call"]


def test_an_agent_in_the_path_of_an_unauthenticated_request_is_not_named(traced: TracedApp) -> None:
    traced.ask({**traced.verify(SUM), "headers": {}})
    [root] = roots(traced.spans())
    attributes = attributes_of(root)
    assert attributes["http.response.status_code"] == 401
    assert not {"qwed.agent_id", "qwed.organisation_id", "qwed.action_type"} & set(attributes)


@pytest.mark.parametrize(
    ("share", "flags", "authenticated", "expected"),
    [
        (1.0, None, False, 1),
        (0.0, None, True, 0),
        (0.0, "01", True, 1),
        (0.0, "01", False, 0),
        (1.0, "00", True, 0),
        (1.0, "01", False, 1),
    ],
)
def test_the_share_decides_and_a_caller_who_is_known_may_ask_for_more_or_none(
    share: float, flags: str | None, authenticated: bool, expected: int
) -> None:
    traced = TracedApp(share)
    requests = traced.verify(SUM) if flags is None else traced.verify(SUM, traceparent=f"00-{TRACE}-{PARENT}-{flags}")
    if not authenticated:
        del requests["headers"]["X-API-Key"]
    traced.ask(requests)
    assert len(roots(traced.spans())) == expected
    traced.close()


def test_a_traceparent_that_stands_twice_or_is_none_is_as_if_it_were_not_there(traced: TracedApp) -> None:
    twice = traced.verify(SUM)
    twice["headers"] = [*traced.key.items(), *[("traceparent", f"00-{TRACE}-{PARENT}-01")] * 2]
    traced.ask(twice, traced.verify(SUM, 2, traceparent="00-nonsense"))
    for root in roots(traced.spans()):
        assert root.trace_id.hex() != TRACE
        assert root.parent_span_id == b""


def test_other_routes_have_spans_and_those_that_only_look_whether_we_live_have_none(traced: TracedApp) -> None:
    register = {"method": "POST", "url": "/agents/register", "json": {"name": "b", "principal_id": "p"}}
    traced.ask(
        {**register, "headers": traced.key},
        *(
            {"method": "GET", "url": path, "headers": traced.key}
            for path in ("/health", "/ready", "/metrics", "/agents")
        ),
    )
    spans = traced.spans()
    assert sorted(root.name for root in roots(spans)) == ["GET /agents", "POST /agents/register"]
    [registered] = [root for root in roots(spans) if root.name == "POST /agents/register"]
    assert [span.name for span in below(spans, registered)] == ["change"]


def test_an_unexpected_error_has_its_code_and_another_hook_is_still_called(traced: TracedApp) -> None:
    def fail_at(stage: str) -> None:
        if stage == "commit":
            raise KeyError

    traced.opened = traced.opened._replace(services=replace(traced.opened.services, at_stage=fail_at))
    traced.app = App(traced.opened.services)
    [answer] = traced.ask(traced.verify(SUM))
    assert answer.json()["decision"] == "DENIED"
    spans = traced.spans()
    [root] = roots(spans)
    assert "commit" in [span.name for span in below(spans, root)]
    assert attributes_of(root)["qwed.error_code"] == answer.json()["error"]["code"]


def test_what_was_sent_and_what_was_dropped_is_in_the_metrics(traced: TracedApp) -> None:
    traced.ask(traced.verify(SUM))
    count = len(traced.spans())
    traced.ask(traced.verify({**SUM, "query": "2 + 2 = 4"}, 2))
    text = traced.ask({"method": "GET", "url": "/metrics", "headers": traced.key})[0].text
    assert value(text, "qwed_spans_total", outcome="exported") == count == 1 + len(WHOLE)
    assert value(text, "qwed_spans_total", outcome="dropped") == count


def test_every_answer_comes_while_the_collector_is_away() -> None:
    traced = TracedApp()
    traced.collector.close()
    tracer = traced.app.context.tracer
    assert tracer is not None
    answers = traced.ask(*(traced.verify({**SUM, "query": f"{step} = {step}"}, step) for step in (1, 2, 3)))
    assert {answer.json()["decision"] for answer in answers} == {"APPROVED"}
    tracer.close()
    assert (tracer.exported, tracer.dropped) == (0, 3 * (1 + len(WHOLE)))
    close_services(traced.opened.services)


def test_names_of_spans_are_templates(traced: TracedApp) -> None:
    traced.ask({"method": "GET", "url": f"/agents/{traced.agent}", "headers": traced.key})
    [root] = roots(traced.spans())
    assert root.name == "GET /agents/{agent_id}"
    assert attributes_of(root)["qwed.agent_id"] == traced.agent
    assert re.fullmatch(r"[0-9a-f]{32}", root.trace_id.hex())
