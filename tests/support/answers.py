"""Asks any route and comes back: of an answer that has no end, with what comes first."""

from typing import Any

import httpx

ENDLESS = "text/event-stream"


def answer_to(client: httpx.Client, method: str, url: str, **asked: Any) -> httpx.Response:
    """The answer; of a stream of events its head and its first piece."""
    request = client.build_request(method, url, **asked)
    response = client.send(request, stream=True)
    try:
        if response.headers.get("content-type") != ENDLESS:
            response.read()
            return response
        first = next(response.iter_raw())
    finally:
        response.close()
    headers = [(name, value) for name, value in response.headers.multi_items() if name != "transfer-encoding"]
    return httpx.Response(response.status_code, headers=headers, content=first, request=request)
