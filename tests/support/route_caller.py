"""Caller of any route that returns also for endless answers, with their first part."""

from typing import Any

import httpx

ENDLESS = "text/event-stream"


def answer_to(client: httpx.Client, method: str, url: str, **options: Any) -> httpx.Response:
    """Return the answer; of an event stream, its headers and first chunk."""
    request = client.build_request(method, url, **options)
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
