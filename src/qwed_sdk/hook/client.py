"""Client of the hook: the operations of the SDK without the packages that its clients import."""

import http.client
import time
from urllib.parse import urlencode, urlsplit

from qwed.model.lazy_import import skip_httpx_command
from qwed_sdk.errors import QWEDConnectionError, QWEDProtocolError, QWEDTimeoutError
from qwed_sdk.http_request import Attempt, AttemptResult, Response
from qwed_sdk.sync_async import SyncDriver
from qwed_sdk.transport import ServerAddress, SyncTransport, is_loopback_url


class HookClient(SyncDriver):
    """Runs operations: over plain HTTP on this machine, and otherwise as the blocking client of the SDK does."""

    def _open(self, address: ServerAddress) -> None:
        if address.base_url.startswith("http:") and is_loopback_url(address.base_url):
            self._transport = PlainTransport(address)
        else:
            # httpx handles TLS and proxies, but takes longer to import than a decision takes.
            skip_httpx_command()
            self._transport = SyncTransport(address)


class PlainTransport(SyncTransport):
    """One connection for each request; the command's own time limit ends a server that answers byte by byte."""

    def send(self, attempt: Attempt) -> AttemptResult:
        """Send the request; return the response, or the error as a value."""
        parts = urlsplit(self.address.base_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=attempt.seconds)
        try:
            connection.connect()
        except OSError as error:
            return self._error(error, sent=False)
        try:
            return self._exchange(connection, parts.path, attempt)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return self._error(error, sent=True)
        finally:
            connection.close()

    def _exchange(self, connection: http.client.HTTPConnection, prefix: str, attempt: Attempt) -> AttemptResult:
        request, ends = attempt.request, time.monotonic() + attempt.seconds
        query = f"?{urlencode(request.query)}" if request.query else ""
        headers = self.address.headers(request)
        connection.request(request.method, prefix + request.path + query, request.body, headers)
        response = connection.getresponse()
        content = bytearray()
        while chunk := response.read1(request.largest + 1 - len(content)):
            content += chunk
            if len(content) > request.largest:
                return QWEDProtocolError(f"the answer is larger than {request.largest} bytes")
            if time.monotonic() > ends:
                return QWEDTimeoutError("the answer did not end in time", sent=True)
        if response.headers.get("content-encoding", "identity") != "identity":
            return QWEDProtocolError("the answer is compressed although the request did not accept that")
        media = response.headers.get_content_type() if "content-type" in response.headers else ""
        return Response(response.status, response.headers.get("retry-after"), bytes(content), media)

    def _error(self, error: Exception, *, sent: bool) -> QWEDConnectionError:
        base_url = self.address.base_url
        if isinstance(error, TimeoutError):
            return QWEDTimeoutError(f"{base_url} did not answer in time", sent=sent)
        return QWEDConnectionError(f"request to {base_url} failed: {error or type(error).__name__}", sent=sent)
