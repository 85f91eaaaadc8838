"""Bare echo on the same HTTP server: the ceiling for a Python server.

It uses the connection handling of qwed on uvloop and httptools, and an answer as long as a decision with its receipt.
"""

import sys
from typing import Any

import uvicorn

from qwed.api.server.http_protocol import Connections

LENGTH = 2_700
"""Bytes of a decision with receipt in a log of a few thousand leaves, without headers."""


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send the request body back."""
    if scope["type"] != "http":
        raise RuntimeError("only http")
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    body = body.ljust(LENGTH)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    uvicorn.run(
        echo,
        port=int(sys.argv[1]),
        http=Connections(10_000),  # type: ignore[arg-type]  # it is called for a protocol, no more
        loop="uvloop",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="off",
    )
