"""Handlers of the OpenAPI document and the /docs page."""

import base64
import hashlib
from functools import cache
from typing import Any

from qwed.api.openapi import docs_page
from qwed.api.server.endpoint import RequestContext, Response, json_response
from qwed.kernel.operations.operation import Access, operation
from qwed.model.endpoints import Endpoint


@operation(Endpoint.OPENAPI, "Get the OpenAPI document", access=Access.OPEN, response=dict[str, Any])
async def openapi(_request: RequestContext) -> Response:
    """Return the OpenAPI document."""
    return _document()


@operation(Endpoint.DOCS, "Get the API documentation as HTML", access=Access.OPEN, response=str, media="text/html")
async def docs(_request: RequestContext) -> Response:
    """Return the OpenAPI document as one HTML page that loads nothing from other hosts."""
    return _page()


@cache
def _document() -> Response:
    # Imported here: the document is generated from the route table, which refers to this module.
    from qwed.api.openapi.document import document

    return json_response(document())


@cache
def _page() -> Response:
    from qwed.api.openapi.document import document

    return Response(200, docs_page.render(document()).encode(), _HEADERS)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_hash(docs_page.STYLE)}",
        f"script-src {_hash(docs_page.SCRIPT)}",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)
