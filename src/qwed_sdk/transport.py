"""Requests over HTTP, one at a time, within their seconds: the same twice, blocking and awaiting."""

import asyncio
import os
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from qwed_sdk.errors import QWEDConnectionError, QWEDError, QWEDProtocolError, QWEDTimeoutError
from qwed_sdk.wire import Attempt, Outcome, Request, Response

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://localhost:8000"
_CONNECTIONS = 100


class Address:
    """Where the server is, and with what credential it is asked."""

    def __init__(self, base_url: str | None, api_key: str | None, agent_token: str | None) -> None:
        self.base_url = _base(base_url or os.environ.get("QWED_BASE_URL") or DEFAULT_URL)
        self._key = _credential(api_key or os.environ.get("QWED_API_KEY"), "API key")
        self._token = _credential(agent_token, "agent token")

    def headers(self, request: Request) -> dict[str, str]:
        """One credential, and the weaker where there are two: a token opens one agent, a key the organisation."""
        headers = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "identity", "User-Agent": "qwed-sdk"}
        token = _credential(request.agent_token, "agent token") or self._token
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        elif self._key is not None:
            headers["X-API-Key"] = self._key
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        return headers


def _base(url: str) -> str:
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.query)
        _ = parts.port
    except ValueError:
        plain = None
    if not plain:
        raise ValueError("`base_url` must look like https://qwed.example.com, without a user or a query")
    return url.rstrip("/")


def _credential(text: str | None, what: str) -> str | None:
    if text is None or not text.strip():
        return None
    if not text.isascii() or not text.strip().isprintable():
        # Said without the text: it may be all but one character of a secret.
        raise ValueError(f"the {what} is not one: it has characters that none has")
    return text.strip()


class _Reading:
    """The body of an answer as it grows, bounded in bytes and seconds."""

    def __init__(self, attempt: Attempt) -> None:
        self._ends = time.monotonic() + attempt.seconds
        self._largest = attempt.request.largest
        self._content = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take in what came."""
        self._content += chunk
        if len(self._content) > self._largest:
            raise QWEDProtocolError(f"the answer is larger than {self._largest} bytes")
        if time.monotonic() > self._ends:
            raise QWEDTimeoutError("the answer did not end in time", sent=True)

    def response(self, status: int, headers: Mapping[str, str]) -> Response:
        """All of it."""
        if headers.get("content-encoding", "identity") != "identity":
            raise QWEDProtocolError("the answer is compressed, which nobody asked for")
        return Response(status, headers.get("retry-after"), bytes(self._content))


def _arguments(address: Address, attempt: Attempt) -> dict[str, Any]:
    request = attempt.request
    return {
        "method": request.method,
        "url": address.base_url + request.path,
        "params": request.query,
        "content": request.body,
        "headers": address.headers(request),
        "timeout": attempt.seconds,
    }


def _pooled(address: Address) -> dict[str, Any]:
    import httpx

    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    # Where nothing is encrypted and no redirect followed no certificate is met, and reading those we trust takes longer
    # than the question.
    encrypted = address.base_url.startswith("https:")
    return {"limits": limits, "follow_redirects": False, "verify": encrypted}


def _failure(error: Exception, base_url: str) -> QWEDConnectionError:
    import httpx

    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)
    sent = not isinstance(error, unsent)
    if isinstance(error, httpx.TimeoutException):
        return QWEDTimeoutError(f"{base_url} did not answer in time", sent=sent)
    told = str(error) or type(error).__name__
    return QWEDConnectionError(f"{base_url} could not be asked: {told}", sent=sent)


class SyncTransport:
    """A pool of connections for threads; after a fork the child begins its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client: httpx.Client | None = None
        self._pid = 0

    def send(self, attempt: Attempt) -> Outcome:
        """What came of it; a connection that broke is a value."""
        import httpx

        reading = _Reading(attempt)
        try:
            with self._pool().stream(**_arguments(self.address, attempt)) as response:
                for chunk in response.iter_raw():
                    reading.add(chunk)
                return reading.response(response.status_code, response.headers)
        except QWEDError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return _failure(error, self.address.base_url)

    def _pool(self) -> "httpx.Client":
        # The child of a fork must not read answers from its parent's connections.
        if self._client is None or self._pid != os.getpid():
            import httpx

            self._client, self._pid = httpx.Client(**_pooled(self.address)), os.getpid()
            # For whoever uses no `with`: the connections end with the client.
            weakref.finalize(self, _close, self._client, self._pid)
        return self._client

    def close(self) -> None:
        """Close what is open; the next request opens anew."""
        client, self._client = self._client, None
        if client is not None:
            _close(client, self._pid)


def _close(client: "httpx.Client", pid: int) -> None:
    # Not those of a parent: it still uses them.
    if pid == os.getpid():
        client.close()


class AsyncTransport:
    """A pool of connections for one event loop; in another loop it begins another."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client: httpx.AsyncClient | None = None
        self._home: tuple[int, object] | None = None

    async def send(self, attempt: Attempt) -> Outcome:
        """What came of it; a connection that broke is a value."""
        import httpx

        reading = _Reading(attempt)
        try:
            async with self._pool().stream(**_arguments(self.address, attempt)) as response:
                async for chunk in response.aiter_raw():
                    reading.add(chunk)
                return reading.response(response.status_code, response.headers)
        except QWEDError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return _failure(error, self.address.base_url)

    def _pool(self) -> "httpx.AsyncClient":
        home = (os.getpid(), _loop())
        if self._client is None or self._home != home:
            import httpx

            self._client, self._home = httpx.AsyncClient(**_pooled(self.address)), home
        return self._client

    async def close(self) -> None:
        """Close what is open; the next request opens anew."""
        client, self._client = self._client, None
        if client is not None and self._home == (os.getpid(), _loop()):
            await client.aclose()


def _loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        # Another library's loop, such as trio's: it has one per thread.
        return None
