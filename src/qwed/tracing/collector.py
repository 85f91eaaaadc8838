"""OTLP/HTTP client of the trace collector: one POST per batch, no redirects, no proxy settings of the environment."""

import ssl
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from qwed.tracing.deadline_socket import DeadlineSocket

PATH = "/v1/traces"
TIMEOUT_SECONDS = 5.0
"""Total time after the DNS lookup: connection, TLS, request, response."""
_MAX_RESPONSE_BYTES = 1 << 16
"""Response bytes that are read, so that the request is known to be received completely."""
_RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses that OTLP defines as retryable."""
_HEADERS = {"content-type": "application/x-protobuf", "user-agent": "qwed"}


class ExportRejectedError(Exception):
    """A batch was not accepted. The text contains no address and no header."""

    def __init__(self, reason: str, *, retryable: bool) -> None:
        super().__init__(reason)
        self.retryable = retryable


class Collector:
    """Trace collector."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, seconds: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.hostname or ""
        self._port = parts.port
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(PATH) else path + PATH
        self._headers = {name.lower(): value for name, value in headers.items()} | _HEADERS
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._seconds = seconds

    def send(self, body: bytes) -> None:
        """Send a batch; raise ExportRejectedError if it is not accepted."""
        try:
            status = self._post(body)
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            # http.client raises the last two for an invalid chunk length.
            raise ExportRejectedError(type(error).__name__, retryable=True) from None
        if not 200 <= status < 300:
            raise ExportRejectedError(f"status {status}", retryable=status in _RETRYABLE_STATUSES)

    def _post(self, body: bytes) -> int:
        connection = self._connection()
        connection_socket = DeadlineSocket(connection.host, connection.port, self._context, self._seconds)
        with closing(connection), closing(connection_socket.socket):
            connection.sock = connection_socket
            connection.request("POST", self._path, body, self._headers | {"content-length": str(len(body))})
            answer = connection.getresponse()
            answer.read(_MAX_RESPONSE_BYTES)
            return answer.status

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port)
        return HTTPSConnection(self._host, self._port, context=self._context)
