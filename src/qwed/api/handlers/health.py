"""Operations `/health`, `/ready`, the JWKS and the metrics."""

from typing import Literal

import qwed
from qwed.api.server.endpoint import RequestContext, Response, json_response
from qwed.api.server.metrics import metrics as write_metrics
from qwed.kernel.operations.operation import Access, Call, operation
from qwed.kernel.views.agent_views import View
from qwed.model.endpoints import Endpoint
from qwed.witness.witness import CONTRADICTED


class HealthView(View, frozen=True, kw_only=True):
    """Status and version of the process."""

    status: Literal["ok"]
    version: str


class ReadyView(View, frozen=True, kw_only=True):
    """Readiness of the components."""

    ready: bool
    parts: dict[str, str]


class JwksView(View, frozen=True, kw_only=True):
    """JSON Web Key Set (RFC 7517)."""

    keys: list[dict[str, str]]


@operation(Endpoint.HEALTH, "Check that the process runs", access=Access.OPEN, response=HealthView)
async def health(_request: RequestContext) -> Response:
    """Return the version; succeeds whenever the process runs."""
    return json_response(HealthView(status="ok", version=qwed.__version__))


@operation(Endpoint.READY, "Check that all components are ready", access=Access.OPEN, response=ReadyView)
async def ready(request: RequestContext) -> Response:
    """Return whether every component that a decision may need is available and the log matches its witness."""
    engines_up, witness, limiter = request.services.engines.ready, request.app.witness.state, request.app.rate_limiter
    store_up = request.services.store.is_available()
    store, engines = "ready" if store_up else "postgresql does not answer", "ready" if engines_up else "starting"
    parts = {"store": store, "engines": engines, "rate_limiter": limiter.kind, "witness": witness}
    if request.app.worker_group is not None:
        workers = request.app.worker_group.worker_count
        parts["workers"] = f"{workers.up} of {workers.of}"
    is_ready = store_up and engines_up and limiter.up and witness != CONTRADICTED
    return json_response(ReadyView(ready=is_ready, parts=parts), 200 if is_ready else 503)


@operation(Endpoint.JWKS, "Get the public keys that verify attestations", access=Access.OPEN)
async def jwks(call: Call) -> JwksView:
    """Return the public keys that verify attestations."""
    return JwksView(keys=call.services.signer.keyring.public_jwks())


metrics = operation(Endpoint.METRICS, "Get metrics for Prometheus", response=str, media="text/plain")(write_metrics)
