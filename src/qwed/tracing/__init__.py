"""Traces: a span for each request and each of its stages, sent to a collector by OTLP. Off where none is named."""
