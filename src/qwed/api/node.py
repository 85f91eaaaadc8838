"""The node itself: is it there, is it ready, which key does it sign with."""

from qwed.api.http import Call, Response, ok


async def health(_call: Call) -> Response:
    """The process answers."""
    return ok({"status": "ok"})


async def ready(call: Call) -> Response:
    """Whether every part that a decision may need is there."""
    warm = call.services.engines.ready
    parts = {"store": "ready", "engines": "ready" if warm else "starting", "rate_limiter": call.node.windows.kind}
    return ok({"ready": warm, "parts": parts}, 200 if warm else 503)


async def jwks(call: Call) -> Response:
    """The public keys that attestations are checked with."""
    return ok({"keys": [call.services.signer.jwk]})
