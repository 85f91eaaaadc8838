"""The collector that takes spans by OTLP over HTTP: one POST for a batch, no redirect, nothing of the environment."""

import ssl
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from qwed.tracing.line import Line

PATH = "/v1/traces"
SECONDS = 5.0
"""For everything once the name is looked up: connection, TLS, request, answer."""
_MOST = 1 << 16
"""Bytes of an answer that are read, so that what we sent was taken whole."""
_LATER = frozenset({429, 502, 503, 504})
"""Statuses after which OTLP says to come again."""
_HEADERS = {"content-type": "application/x-protobuf", "user-agent": "qwed"}


class Refused(Exception):
    """A batch was not taken; `again` where it may be the next time. The text names no address and no header."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


class Collector:
    """Where spans are sent."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, seconds: float = SECONDS) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.hostname or ""
        self._port = parts.port
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(PATH) else path + PATH
        self._headers = {name.lower(): value for name, value in headers.items()} | _HEADERS
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._seconds = seconds

    def send(self, body: bytes) -> None:
        """Returns when the batch was taken; Refused where it was not."""
        try:
            status = self._post(body)
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            # The last two are what http.client makes of the length of a chunk that is none.
            raise Refused(type(error).__name__, again=True) from None
        if not 200 <= status < 300:
            raise Refused(f"status {status}", again=status in _LATER)

    def _post(self, body: bytes) -> int:
        connection = self._connection()
        line = Line(connection.host, connection.port, self._context, self._seconds)
        with closing(connection), closing(line.socket):
            connection.sock = line
            connection.request("POST", self._path, body, self._headers | {"content-length": str(len(body))})
            answer = connection.getresponse()
            answer.read(_MOST)
            return answer.status

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port)
        return HTTPSConnection(self._host, self._port, context=self._context)
