"""Export to a collector that works, is down, hangs, is slow or rejects spans: no request waits for it."""

import asyncio
import itertools
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qwed.tracing.exporter import BATCH_SPANS, Exporter
from qwed.tracing.trace import Trace
from qwed.tracing.tracer import Tracer
from tests.support.trace_collector import TraceCollector, spans_in
from tests.support.webhook_receivers import (
    LOOPBACK,
    PATIENCE,
    Behaviour,
    LocalCertificateAuthority,
    ReceiverConnection,
    WebhookReceiver,
    answering,
    dripping,
    endless,
    redirecting,
    saying,
    silent,
    unaccepted_port,
    unused_port,
)

QUICK = 0.01
LIMIT = 5.0
"""Far more than a thousand requests take, and less than a collector that never answers would."""
SECRET = "Bearer hunter2"
LOG_NAME = "qwed.tests.traces"


class Sent(Exporter):
    """Exporter that is given whole requests."""

    log_name = ""

    def logged(self, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == self.log_name]

    def put(self, name: str = "GET /agents") -> None:
        trace = Trace(name, None, sampled=True)
        trace.enter_stage("authenticate")
        attributes = {"http.response.status_code": 200}
        Tracer(self, 1.0).end(trace, attributes, failed=False, authenticated=True)


_numbers = itertools.count()
Start = Callable[..., Sent]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Sent] = []

    def begin(url: str, **how: Any) -> Sent:
        # A name of its own: an exporter that was given up may still log during a later test.
        log = logging.getLogger(f"{LOG_NAME}.{next(_numbers)}")
        exporter = Sent(url, {"authorization": SECRET}, "1.2", log, **{"batch_seconds": QUICK, **how})
        exporter.log_name = log.name
        started.append(exporter)
        return exporter

    yield begin
    for exporter in started:
        exporter.close(PATIENCE)


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    created = TraceCollector()
    yield created
    created.close()


def test_what_is_put_in_is_sent_with_the_headers_and_without_being_asked(
    start: Start, collector: TraceCollector
) -> None:
    exporter = start(collector.url)
    exporter.put()
    heard = collector.receiver.next()
    assert heard.line == "POST /v1/traces HTTP/1.1"
    assert (heard.headers["authorization"], heard.headers["content-type"]) == (SECRET, "application/x-protobuf")
    assert [span.name for span in spans_in(heard.body)] == ["GET /agents", "authenticate"]
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", "POST /v1/traces HTTP/1.1"),
        ("/", "POST /v1/traces HTTP/1.1"),
        ("/otlp/", "POST /otlp/v1/traces HTTP/1.1"),
        ("/v1/traces", "POST /v1/traces HTTP/1.1"),
    ],
)
def test_the_path_of_an_endpoint_is_where_traces_lie(
    start: Start, collector: TraceCollector, path: str, line: str
) -> None:
    start(collector.url + path).put()
    assert collector.receiver.next().line == line


def test_many_are_sent_in_batches_and_in_their_order(start: Start, collector: TraceCollector) -> None:
    exporter = start(collector.url, batch_seconds=60)
    for number in range(BATCH_SPANS):
        exporter.put(str(number))
    exporter.close(PATIENCE)
    spans = collector.spans()
    assert [span.name for span in spans if span.name != "authenticate"] == [
        str(number) for number in range(BATCH_SPANS)
    ]
    assert max(len(spans_in(heard.body)) for heard in collector.heard) <= BATCH_SPANS + 1
    assert (exporter.exported, exporter.dropped) == (2 * BATCH_SPANS, 0)


def test_the_end_sends_what_is_left(start: Start, collector: TraceCollector) -> None:
    exporter = start(collector.url, batch_seconds=60)
    exporter.put()
    exporter.close(PATIENCE)
    assert len(collector.spans()) == 2
    exporter.put()
    assert (exporter.exported, exporter.dropped) == (2, 2)


def test_a_missing_collector_is_logged_once_and_counted(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    exporter = start(f"http://{LOOPBACK}:{unused_port()}", batch_seconds=60)
    with caplog.at_level(logging.INFO):
        for _ in range(2 * BATCH_SPANS):
            exporter.put()
        exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (0, 4 * BATCH_SPANS)
    assert [record.getMessage() for record in exporter.logged(caplog)] == [
        "trace export failed; spans are dropped until it works again: ConnectionError"
    ]


def test_one_that_never_answers_keeps_the_end_waiting_no_longer_than_it_is_told(start: Start) -> None:
    with unaccepted_port() as port:
        exporter = start(f"http://{LOOPBACK}:{port}")
        exporter.put()
        exporter.close(0.05)
    assert (exporter.exported, exporter.dropped) == (0, 2)


def test_what_finds_no_room_is_dropped_and_what_waits_is_kept(start: Start) -> None:
    heard = WebhookReceiver(silent)
    exporter = start(heard.url("", scheme="http"), max_spans=6)
    exporter.put()
    heard.next()
    # The first is being sent and is not accepted; two more fit the queue.
    for _ in range(5):
        exporter.put()
    assert (exporter.exported, exporter.dropped) == (0, 6)
    exporter.close(0.05)
    assert (exporter.exported, exporter.dropped) == (0, 12)
    heard.close()


def test_that_there_was_no_room_is_said_once_in_a_while(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    open_now = threading.Event()

    async def answer_later(line: ReceiverConnection) -> None:
        await asyncio.to_thread(open_now.wait, PATIENCE)
        await answering(200)(line)

    slow = TraceCollector(answer_later)
    exporter = start(slow.url, max_spans=2)
    for _ in range(3):
        exporter.put()
    open_now.set()
    exporter.close(PATIENCE)
    exporter.put()
    assert [(record.getMessage(), record.__dict__["spans"]) for record in exporter.logged(caplog)] == [
        ("trace queue full; spans dropped", 4)
    ]
    assert (exporter.exported, exporter.dropped) == (2, 6)
    slow.close()


@pytest.mark.parametrize("how", ["interim answers", "head", "nothing is read", "nothing is read, TLS"])
def test_one_without_an_end_delays_neither_a_request_nor_the_end(start: Start, how: str) -> None:
    with unaccepted_port() as port:
        interim = dripping("HTTP/1.1 100 Continue\r\n\r\n" * 1_000, QUICK)
        hostile = WebhookReceiver(interim if how == "interim answers" else dripping("HTTP/1.1 200 " * 1_000, QUICK))
        addresses = {
            "nothing is read": f"http://{LOOPBACK}:{port}",
            "nothing is read, TLS": f"https://{LOOPBACK}:{port}",
        }
        exporter = start(addresses.get(how, hostile.url("", scheme="http")))
        began = time.monotonic()
        for _ in range(2 * BATCH_SPANS):
            exporter.put()
        exporter.close(0.05)
        assert time.monotonic() - began < LIMIT
        assert (exporter.exported, exporter.dropped) == (0, 4 * BATCH_SPANS)
        hostile.close()


def test_the_body_of_an_answer_is_not_read(start: Start) -> None:
    endless_body = TraceCollector(endless("HTTP/1.1 200 Fine\r\n\r\n", "x" * 65_536))
    exporter = start(endless_body.url)
    exporter.put()
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)
    endless_body.close()


def test_one_behind_tls_is_sent_to(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = LocalCertificateAuthority()
    monkeypatch.setattr(ssl, "create_default_context", authority.client_context)
    honest = WebhookReceiver(answering(200), authority.server_context([LOOPBACK]))
    exporter = start(honest.url(""))
    exporter.put()
    heard = honest.next()
    assert heard.headers["Host"] == f"{LOOPBACK}:{honest.port}"
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)
    honest.close()


def test_one_whose_certificate_is_not_trusted_is_sent_nothing(start: Start) -> None:
    stranger = WebhookReceiver(answering(200), LocalCertificateAuthority().server_context([LOOPBACK]))
    exporter = start(stranger.url(""))
    exporter.put()
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped, stranger.heard.empty()) == (0, 2, True)
    stranger.close()


def test_settings_of_the_environment_are_not_used(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{LOOPBACK}:{unused_port()}")
    honest = TraceCollector()
    exporter = start(honest.url)
    exporter.put()
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)
    honest.close()


def test_a_slow_one_is_waited_for(start: Start) -> None:
    slow = TraceCollector(dripping("HTTP/1.1 200 Fine\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", 0.001))
    exporter = start(slow.url)
    exporter.put()
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)
    slow.close()


def test_one_that_has_no_time_is_asked_again(start: Start) -> None:
    busy = TraceCollector(answering(503, 429, 200))
    exporter = start(busy.url)
    exporter.put()
    bodies = [busy.receiver.next().body for _ in range(3)]
    exporter.close(PATIENCE)
    assert len(set(bodies)) == 1
    assert (exporter.exported, exporter.dropped) == (2, 0)
    busy.close()


def test_that_it_works_again_is_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    recovering = TraceCollector(answering(400, 400, 200))
    with caplog.at_level(logging.INFO):
        exporter = start(recovering.url)
        for _ in range(3):
            exporter.put()
            recovering.receiver.next()
        exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 4)
    assert [record.getMessage() for record in exporter.logged(caplog)] == [
        "trace export failed; spans are dropped until it works again: status 400",
        "trace export restored",
    ]
    recovering.close()


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (answering(400), "status 400"),
        (answering(401), "status 401"),
        (redirecting(307, "http://127.0.0.1:9/elsewhere"), "status 307"),
    ],
)
def test_one_that_does_not_want_them_is_not_asked_again(
    start: Start, caplog: pytest.LogCaptureFixture, behaviour: Behaviour, why: str
) -> None:
    choosy = TraceCollector(behaviour)
    exporter = start(choosy.url)
    exporter.put()
    exporter.put()
    exporter.close(PATIENCE)
    choosy.spans()
    assert (exporter.exported, exporter.dropped) == (0, 4)
    assert 1 <= len(choosy.heard) <= 2
    assert exporter.logged(caplog)[0].getMessage().endswith(why)
    choosy.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\r\n\r\n",
        "HTTP/1.1 \r\n\r\n",
        "HTTP/1.1 200 Fine\r\n" + "a" * 100_000,
        "HTTP/1.1 500 Broken\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 500 Broken\r\ntransfer-encoding: chunked\r\n\r\n-1ffffffffffffffff\r\n",
    ],
)
def test_one_that_talks_nonsense_takes_nothing_and_ends_nothing(start: Start, text: str) -> None:
    mad = TraceCollector(saying(text))
    exporter = start(mad.url)
    exporter.put()
    mad.receiver.next()
    exporter.put()
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (0, 4)
    mad.close()


def test_no_message_tells_what_the_headers_hold(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        exporter = start(f"http://{LOOPBACK}:{unused_port()}")
        exporter.put()
        exporter.close(PATIENCE)
    assert "hunter2" not in caplog.text
    assert exporter.logged(caplog)
