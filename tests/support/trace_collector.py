"""Local OTLP trace collector that decodes what it receives."""

from collections.abc import Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.webhook_receivers import Behaviour, ReceivedNotice, WebhookReceiver, answering


class TraceCollector:
    """Receiver of spans."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.receiver = WebhookReceiver(behaviour or answering(200))
        self.url = self.receiver.url("", scheme="http")
        self.heard: list[ReceivedNotice] = []

    def close(self) -> None:
        self.receiver.close()

    def spans(self) -> list[Span]:
        """Return every span received so far, in order."""
        while not self.receiver.heard.empty():
            self.heard.append(self.receiver.next())
        return [span for heard in self.heard for span in spans_in(heard.body)]


def spans_in(body: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(body)
    return [span for made in request.resource_spans for scope in made.scope_spans for span in scope.spans]


def attributes_of(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def roots(spans: Sequence[Span]) -> list[Span]:
    """Return the spans of requests."""
    return [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]


def below(spans: Sequence[Span], parent: Span) -> list[Span]:
    """Return the direct children of a span, in order."""
    return [span for span in spans if span.parent_span_id == parent.span_id and span.trace_id == parent.trace_id]
