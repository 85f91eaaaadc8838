"""OTLP encoding of finished traces. The only module that needs `qwed[otel]`."""

import secrets
from collections.abc import Mapping, Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from qwed.tracing.trace import FinishedTrace, SpanMark, Value

ENGINE = "qwed.engine"
_INSTANCE = secrets.token_hex(8)
"""Random id of this process."""


def encode_spans(requests: Sequence[FinishedTrace], version: str) -> bytes:
    """Return the body of one OTLP export request."""
    spans = [span for request in requests for span in _spans_of(request)]
    resource = {"service.name": "qwed", "service.version": version, "service.instance.id": _INSTANCE}
    scope = ScopeSpans(scope=InstrumentationScope(name="qwed", version=version), spans=spans)
    resource_spans = ResourceSpans(resource=Resource(attributes=_attributes(resource)), scope_spans=[scope])
    body: bytes = ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()
    return body


def _spans_of(request: FinishedTrace) -> list[Span]:
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
        parent_span = root if mark.parent_index is None else spans[mark.parent_index + 1]
        spans.append(_span_of(mark, trace_id, parent_span.span_id))
    return spans


def _span_of(mark: SpanMark, trace_id: bytes, parent_id: bytes) -> Span:
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


def _attributes(attributes: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: Value) -> AnyValue:
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
