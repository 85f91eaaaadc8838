"""HTTP server parts: connection protocol, admission control, request context, metrics."""
