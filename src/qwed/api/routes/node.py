"""The node itself: keys, health, metrics, and this document."""

from typing import Any

from qwed.api import metrics as measured
from qwed.api import node, reference, shapes
from qwed.api.routes.row import KEY, Route

ROUTES: tuple[Route, ...] = (
    Route("GET", "/.well-known/jwks.json", node.jwks, "The keys that sign attestations", shapes.JwksShape, open=True),
    Route("GET", "/health", node.health, "The process answers", shapes.HealthShape, open=True),
    Route("GET", "/ready", node.ready, "Every part is there", shapes.ReadyShape, open=True),
    Route(
        "GET",
        "/metrics",
        measured.metrics,
        "Metrics for Prometheus; for an owner, or a key for metrics, of the first organisation",
        str,
        errors=KEY,
        media="text/plain",
    ),
    Route("GET", "/openapi.json", reference.openapi, "This document", dict[str, Any], open=True),
    Route("GET", "/docs", reference.docs, "This document as a page", str, open=True, media="text/html"),
)
