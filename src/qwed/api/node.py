"""The node itself: is it there, is it ready, which key does it sign with."""

import qwed
from qwed.api.http import Call, Response, ok
from qwed.witness.witness import CONTRADICTED


async def health(_call: Call) -> Response:
    """The process answers, and which version it is."""
    return ok({"status": "ok", "version": qwed.__version__})


async def ready(call: Call) -> Response:
    """Whether every part that a decision may need is there, and the log is the one that was published."""
    warm, witness, windows = call.services.engines.ready, call.node.witness.state, call.node.windows
    kept = call.services.store.up()
    store, engines = "ready" if kept else "postgresql does not answer", "ready" if warm else "starting"
    parts = {"store": store, "engines": engines, "rate_limiter": windows.kind, "witness": witness}
    if call.node.crew is not None:
        manned = call.node.crew.manned
        parts["workers"] = f"{manned.up} of {manned.of}"
    well = kept and warm and windows.up and witness != CONTRADICTED
    return ok({"ready": well, "parts": parts}, 200 if well else 503)


async def jwks(call: Call) -> Response:
    """The public keys that attestations are checked with."""
    return ok({"keys": call.services.signer.keyring.public_jwks()})
