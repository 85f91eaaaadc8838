"""Handlers of `/health`, `/ready` and the JWKS."""

import qwed
from qwed.api.server.endpoint import RequestContext, Response, json_response
from qwed.witness.witness import CONTRADICTED


async def health(_request: RequestContext) -> Response:
    """Return the version; succeeds whenever the process runs."""
    return json_response({"status": "ok", "version": qwed.__version__})


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
    return json_response({"ready": is_ready, "parts": parts}, 200 if is_ready else 503)


async def jwks(request: RequestContext) -> Response:
    """Return the public keys that verify attestations."""
    return json_response({"keys": request.services.signer.keyring.public_jwks()})
