"""Routes of the server: JWKS, health, readiness, metrics and the API document."""

from typing import Any

from qwed.api.handlers import docs, health
from qwed.api.openapi import schemas
from qwed.api.routes.route import KEY, Route
from qwed.api.server import metrics as measured

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/.well-known/jwks.json",
        health.jwks,
        "Get the public keys that verify attestations",
        schemas.JwksShape,
        open=True,
    ),
    Route("GET", "/health", health.health, "Check that the process runs", schemas.HealthShape, open=True),
    Route("GET", "/ready", health.ready, "Check that all components are ready", schemas.ReadyShape, open=True),
    Route(
        "GET",
        "/metrics",
        measured.metrics,
        "Get metrics for Prometheus",
        str,
        errors=KEY,
        media="text/plain",
    ),
    Route("GET", "/openapi.json", docs.openapi, "Get the OpenAPI document", dict[str, Any], open=True),
    Route("GET", "/docs", docs.docs, "Get the API documentation as HTML", str, open=True, media="text/html"),
)
