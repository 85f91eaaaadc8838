"""OpenTelemetry traces: a span per request and per stage, exported by OTLP. Off unless a collector is configured."""
