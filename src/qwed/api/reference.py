"""The API document: as JSON for programs, as a page for people."""

import base64
import hashlib
from functools import cache

from qwed.api import page
from qwed.api.http import Call, Response, ok


async def openapi(_call: Call) -> Response:
    """The document."""
    return _document()


async def docs(_call: Call) -> Response:
    """The document as one page that needs no other host."""
    return _page()


@cache
def _document() -> Response:
    # The document is made from the route table, and the table has a row for it.
    from qwed.api.openapi import document

    return ok(document())


@cache
def _page() -> Response:
    from qwed.api.openapi import document

    return Response(200, page.render(document()).encode(), _HEADERS)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_hash(page.STYLE)}",
        f"script-src {_hash(page.SCRIPT)}",
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
