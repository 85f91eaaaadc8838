"""Bare echo on the same HTTP server: the ceiling for anything that answers in Python.

The connections of a qwed server, on uvloop and httptools, and an answer as long as a decision with its receipt.
"""

import sys
from typing import Any

import uvicorn

from qwed.api.connection import Connections

LENGTH = 2_700
"""Bytes of a decision and its receipt in a log of a few thousand leaves, headers apart."""


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Read the body, send it back."""
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
