"""Requests that are over, as spans in the words of OTLP. The one file that needs `qwed[otel]`."""

import secrets
from collections.abc import Mapping, Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from qwed.tracing.trace import Finished, Mark, Value

ENGINE = "qwed.engine"
_INSTANCE = secrets.token_hex(8)
"""Which process it was: several of them serve together."""


def encoded(requests: Sequence[Finished], version: str) -> bytes:
    """All of them as the body of one export, which says that this version of qwed made it."""
    spans = [span for request in requests for span in _spans_of(request)]
    ourselves = {"service.name": "qwed", "service.version": version, "service.instance.id": _INSTANCE}
    scope = ScopeSpans(scope=InstrumentationScope(name="qwed", version=version), spans=spans)
    made = ResourceSpans(resource=Resource(attributes=_attributes(ourselves)), scope_spans=[scope])
    body: bytes = ExportTraceServiceRequest(resource_spans=[made]).SerializeToString()
    return body


def _spans_of(request: Finished) -> list[Span]:
    parent = request.parent
    trace_id = secrets.token_bytes(16) if parent is None else parent.trace_id
    root = Span(
        trace_id=trace_id,
        span_id=secrets.token_bytes(8),
        parent_span_id=b"" if parent is None else parent.span_id,
        name=request.name,
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=request.began,
        end_time_unix_nano=request.ended,
        attributes=_attributes(request.attributes),
        status=Status(code=Status.STATUS_CODE_ERROR) if request.failed else None,
    )
    spans = [root]
    for mark in request.marks:
        above = root if mark.inside is None else spans[mark.inside + 1]
        spans.append(_span_of(mark, trace_id, above.span_id))
    return spans


def _span_of(mark: Mark, trace_id: bytes, parent_id: bytes) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=secrets.token_bytes(8),
        parent_span_id=parent_id,
        name=mark.name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=mark.began,
        end_time_unix_nano=mark.ended,
        attributes=_attributes({ENGINE: mark.engine} if mark.engine else {}),
    )


def _attributes(known: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in known.items()]


def _value(value: Value) -> AnyValue:
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
