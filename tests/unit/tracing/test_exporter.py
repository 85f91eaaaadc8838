"""Export to a collector that works, is down, hangs, is slow or rejects spans: no request waits for it."""

import logging
import ssl
from collections.abc import Callable, Iterator

import pytest

from qwed.tracing.collector import Collector as Sender
from qwed.tracing.collector import ExportRejectedError
from qwed.tracing.exporter import BATCH_SPANS, MAX_ATTEMPTS, Exporter
from qwed.tracing.trace import FinishedTrace
from tests.support.trace_collector import TraceCollector, spans_in
from tests.support.webhook_receivers import (
    LOOPBACK,
    PATIENCE,
    Behaviour,
    LocalCertificateAuthority,
    WebhookReceiver,
    answering,
    dripping,
    redirecting,
    saying,
    silent,
    unaccepted_port,
    unused_port,
)

QUICK = 0.01
SECRET = "Bearer hunter2"
LOG = logging.getLogger("qwed.tests.traces")

Start = Callable[..., Exporter]


def request(name: str = "GET /agents") -> FinishedTrace:
    return FinishedTrace(name, None, 1, 2, False, {"http.response.status_code": 200}, (("authenticate", 1),))


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Exporter] = []

    def begin(url: str, **how: float) -> Exporter:
        exporter = Exporter(Sender(url, {"authorization": SECRET}), "1.2", LOG, **{"batch_seconds": QUICK, **how})  # type: ignore[arg-type]
        exporter.start()
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
    exporter.put(request())
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
    start(collector.url + path).put(request())
    assert collector.receiver.next().line == line


def test_many_are_sent_in_batches_and_in_their_order(start: Start, collector: TraceCollector) -> None:
    exporter = start(collector.url, batch_seconds=60)
    for number in range(BATCH_SPANS):
        exporter.put(request(str(number)))
    exporter.close(PATIENCE)
    spans = collector.spans()
    assert [span.name for span in spans if span.name != "authenticate"] == [
        str(number) for number in range(BATCH_SPANS)
    ]
    assert max(len(spans_in(heard.body)) for heard in collector.heard) <= BATCH_SPANS + 1
    assert (exporter.exported, exporter.dropped) == (2 * BATCH_SPANS, 0)


def test_the_end_sends_what_is_left(start: Start, collector: TraceCollector) -> None:
    exporter = start(collector.url, batch_seconds=60)
    exporter.put(request())
    exporter.close(PATIENCE)
    assert len(collector.spans()) == 2
    exporter.put(request())
    assert (exporter.exported, exporter.dropped) == (2, 2)


def test_a_missing_collector_is_logged_once_and_counted(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    exporter = start(f"http://{LOOPBACK}:{unused_port()}", batch_seconds=60)
    with caplog.at_level(logging.INFO):
        for _ in range(2 * BATCH_SPANS):
            exporter.put(request())
        exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (0, 4 * BATCH_SPANS)
    assert [record.getMessage() for record in caplog.records] == [
        "trace export failed; spans are dropped until it works again: ConnectionRefusedError"
    ]


def test_one_that_never_answers_keeps_the_end_waiting_no_longer_than_it_is_told(start: Start) -> None:
    with unaccepted_port() as port:
        exporter = start(f"http://{LOOPBACK}:{port}")
        exporter.put(request())
        exporter.close(0.05)
    assert (exporter.exported, exporter.dropped) == (0, 2)


def test_what_finds_no_room_is_dropped_and_what_waits_is_kept(start: Start) -> None:
    heard = WebhookReceiver(silent)
    exporter = start(heard.url("", scheme="http"), max_spans=6)
    exporter.put(request())
    heard.next()
    # The first is being sent and is not accepted; two more fit the queue.
    for _ in range(5):
        exporter.put(request())
    assert (exporter.exported, exporter.dropped) == (0, 6)
    exporter.close(0.05)
    assert (exporter.exported, exporter.dropped) == (0, 12)
    heard.close()


def test_that_there_was_no_room_is_said_once_in_a_while(
    collector: TraceCollector, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = Exporter(Sender(collector.url, {}), "1.2", LOG, max_spans=2, batch_seconds=QUICK)
    for _ in range(3):
        exporter.put(request())
    exporter.start()
    collector.receiver.next()
    exporter.close(PATIENCE)
    exporter.put(request())
    assert [(record.getMessage(), record.__dict__["spans"]) for record in caplog.records] == [
        ("trace queue full; spans dropped", 4)
    ]
    assert (exporter.exported, exporter.dropped) == (2, 6)


INTERIM = "HTTP/1.1 100 Continue\r\n\r\n"
MOMENT = 0.2
"""For one exchange. No test waits longer for what never ends."""


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        # The result of the last attempt is no longer counted.
        (saying(INTERIM * 20_000, "HTTP/1.1 200 Fine\r\ncontent-length: 0\r\n\r\n"), "ResponseTooLargeError"),
        (dripping(INTERIM * 40, MOMENT / 100), "TimeoutError"),
        (dripping("HTTP/1.1 200 Fine\r\ncontent-length: 1000\r\n\r\n" + "x" * 1_000, MOMENT / 100), "TimeoutError"),
    ],
    ids=["interim answers without end", "dripping head", "dripping body"],
)
@pytest.mark.parametrize("secure", [False, True])
def test_the_whole_of_an_exchange_has_an_end(
    monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, why: str, secure: bool
) -> None:
    authority = LocalCertificateAuthority()
    monkeypatch.setattr(ssl, "create_default_context", authority.client_context)
    hostile = WebhookReceiver(behaviour, authority.server_context([LOOPBACK]) if secure else None)
    url = hostile.url("", scheme="https" if secure else "http")
    with pytest.raises(ExportRejectedError, match=why) as refused:
        Sender(url, {}, seconds=PATIENCE if why == "ResponseTooLargeError" else MOMENT).send(b"spans")
    assert refused.value.retryable
    hostile.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_that_reads_nothing_is_left_in_time(scheme: str) -> None:
    with unaccepted_port() as port, pytest.raises(ExportRejectedError, match="TimeoutError"):
        Sender(f"{scheme}://{LOOPBACK}:{port}", {}, seconds=MOMENT).send(b"x" * (32 << 20))


def test_one_behind_tls_is_sent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = LocalCertificateAuthority()
    monkeypatch.setattr(ssl, "create_default_context", authority.client_context)
    honest = WebhookReceiver(answering(200), authority.server_context([LOOPBACK]))
    Sender(honest.url(""), {}).send(b"x" * (1 << 20))
    heard = honest.next()
    assert (heard.headers["Host"], len(heard.body)) == (f"{LOOPBACK}:{honest.port}", 1 << 20)
    honest.close()


def test_a_slow_one_is_waited_for(start: Start) -> None:
    slow = TraceCollector(dripping("HTTP/1.1 200 Fine\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", 0.001))
    exporter = start(slow.url)
    exporter.put(request())
    exporter.close(PATIENCE)
    assert (exporter.exported, exporter.dropped) == (2, 0)
    slow.close()


def test_one_that_has_no_time_is_asked_again(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    busy = TraceCollector(answering(503, 429, 200))
    exporter = start(busy.url)
    with caplog.at_level(logging.INFO):
        exporter.put(request())
        bodies = [busy.receiver.next().body for _ in range(MAX_ATTEMPTS)]
        exporter.close(PATIENCE)
    assert len(set(bodies)) == 1
    assert (exporter.exported, exporter.dropped) == (2, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "trace export failed; spans are dropped until it works again: status 503",
        "trace export restored",
    ]
    busy.close()


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
    exporter.put(request())
    exporter.put(request())
    exporter.close(PATIENCE)
    choosy.spans()
    assert (exporter.exported, exporter.dropped) == (0, 4)
    assert 1 <= len(choosy.heard) <= 2
    assert caplog.messages[0].endswith(why)
    choosy.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\r\n\r\n",
        "HTTP/1.1 \r\n\r\n",
        "HTTP/1.1 200 Fine\r\n" + "a" * 100_000,
        "HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\n-5\r\n",
        "HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\n-1ffffffffffffffff\r\n",
    ],
)
def test_one_that_talks_nonsense_takes_nothing_and_ends_nothing(start: Start, text: str) -> None:
    mad = TraceCollector(saying(text))
    exporter = start(mad.url)
    exporter.put(request())
    for _ in range(MAX_ATTEMPTS):
        mad.receiver.next()
    exporter.put(request())
    mad.receiver.next()
    exporter.close(PATIENCE)
    assert exporter.is_alive() is False
    assert (exporter.exported, exporter.dropped) == (0, 4)
    mad.close()


def test_no_message_tells_what_the_headers_hold(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        exporter = start(f"http://{LOOPBACK}:{unused_port()}")
        exporter.put(request())
        exporter.close(PATIENCE)
    assert "hunter2" not in caplog.text
    assert caplog.records
