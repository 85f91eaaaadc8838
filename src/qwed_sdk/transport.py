"""HTTP transports of the sync and the async client, with a deadline for each request."""

import os
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from qwed.model.defaults import DEFAULT_URL
from qwed_sdk.errors import QWEDArgumentError, QWEDConnectionError, QWEDError, QWEDProtocolError, QWEDTimeoutError
from qwed_sdk.http_request import Attempt, AttemptResult, Request, Response, error_of
from qwed_sdk.step_counter import running_loop

if TYPE_CHECKING:
    import httpx

    from qwed_sdk.network_backend import RequestDeadline

T = TypeVar("T")

_MAX_CONNECTIONS = 100


class ServerAddress:
    """Base URL of the server, and the credentials to send."""

    def __init__(self, base_url: str | None, api_key: str | None, agent_token: str | None) -> None:
        self.base_url = _parse_base_url(
            _stripped_text(base_url) or _stripped_text(os.environ.get("QWED_BASE_URL")) or DEFAULT_URL
        )
        self._key = parse_credential(_stripped_text(api_key) or os.environ.get("QWED_API_KEY"), "API key")
        self._token = parse_credential(agent_token, "agent token")

    def __deepcopy__(self, memo: dict[int, Any]) -> "ServerAddress":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a client has a secret and open connections: make one in each process instead of pickling it")

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "identity", "User-Agent": "qwed-sdk"}
        if not request.public:
            headers |= self._credential(request)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        return {**headers, **request.headers}

    def _credential(self, request: Request) -> dict[str, str]:
        """Return the header of one credential. A token wins over a key, because it opens one agent only."""
        token = parse_credential(request.agent_token, "agent token") or self._token
        if token is not None:
            return {"Authorization": f"Bearer {token}"}
        return {} if self._key is None else {"X-API-Key": self._key}


def _stripped_text(text: str | None) -> str:
    if text is not None and not isinstance(text, str):
        raise QWEDArgumentError(f"a base URL and a key must be text, not {type(text).__name__}")
    return (text or "").strip()


def _parse_base_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and not set("@?#\\") & set(url)
        _ = parts.port
    except ValueError:
        is_plain = None
    if not is_plain or not url.isprintable():
        raise QWEDArgumentError(
            f"`base_url` must look like {DEFAULT_URL} or https://qwed.example.com, "
            "without a user, a query or a fragment"
        )
    # As the parser writes it: `HTTPS:` becomes `https:`, which later checks compare with.
    return parts.geturl().rstrip("/")


def is_loopback_url(url: str) -> bool:
    """Return True if the URL names an address of this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def parse_credential(text: str | None, what: str) -> str | None:
    """Return the credential without surrounding white space, or None if it is blank."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if not isinstance(text, str) or not text.isascii() or not text.strip().isprintable() or " " in text.strip():
        # Without the text: it may be all but one character of a secret.
        raise QWEDArgumentError(f"the {what} is not valid: it contains spaces or other characters that are not allowed")
    return text.strip()


class _BodyReader:
    """Response body that is read in chunks, limited in bytes and seconds."""

    def __init__(self, attempt: Attempt) -> None:
        self._ends = time.monotonic() + attempt.seconds
        self._largest = attempt.request.largest
        self._content = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append a chunk; raise QWEDError if a limit is exceeded."""
        self._content += chunk
        if len(self._content) > self._largest:
            raise QWEDProtocolError(f"the answer is larger than {self._largest} bytes")
        if time.monotonic() > self._ends:
            raise QWEDTimeoutError("the answer did not end in time", sent=True)

    def response(self, response: "httpx.Response") -> Response:
        """Return the complete response, and tell its connection where the body ended."""
        response.extensions["network_stream"].counter.on_end(len(self._content))
        if response.headers.get("content-encoding", "identity") != "identity":
            raise QWEDProtocolError("the answer is compressed although the request did not accept that")
        headers = response.headers
        media = headers.get("content-type", "").partition(";")[0].strip()
        return Response(response.status_code, headers.get("retry-after"), bytes(self._content), media)


def _request_arguments(address: ServerAddress, attempt: Attempt) -> dict[str, Any]:
    request = attempt.request
    return {
        "method": request.method,
        "url": address.base_url + request.path,
        "params": request.query,
        "content": request.body,
        "headers": address.headers(request),
        "timeout": attempt.seconds,
    }


def _client_options(address: ServerAddress) -> dict[str, Any]:
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    limits = httpx.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS)
    # Cookies of one response are not sent with the next request.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    # A proxy named in the environment cannot reach this machine.
    is_remote = not is_loopback_url(address.base_url)
    # Plain HTTP on this machine needs no certificates, and loading the trusted ones takes longer than the request.
    is_plain_local = not is_remote and address.base_url.startswith("http:")
    return {
        "limits": limits,
        "follow_redirects": False,
        "verify": not is_plain_local,
        "cookies": no_cookies,
        "trust_env": is_remote,
    }


def _sdk_error_of(error: Exception, base_url: str, deadline: "RequestDeadline") -> QWEDError:
    import httpx

    if isinstance(error, QWEDError):
        return error
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return QWEDTimeoutError(f"{base_url} did not answer in time", sent=deadline.sent)
    cause = str(error) or type(error).__name__
    return QWEDConnectionError(f"request to {base_url} failed: {cause}", sent=deadline.sent)


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions a request can end with: HTTP errors, a bad proxy, a client closed by another thread."""
    import httpx

    return (QWEDError, httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError, ValueError, ImportError)


def _raise_for_body(response: "httpx.Response", reading: _BodyReader) -> None:
    """Raise the error of a response that is not an event stream."""
    body = reading.response(response)
    if body.status != 200:
        raise error_of(body)
    raise QWEDProtocolError("the answer is not an event stream: is this a qwed server?", status=body.status)


def _is_stream(response: "httpx.Response") -> bool:
    media = response.headers.get("content-type", "").partition(";")[0].strip()
    return response.status_code == 200 and media == "text/event-stream"


class SyncTransport:
    """Connection pool for threads; after a fork the child opens its own."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._client: httpx.Client | None = None
        self._pid = 0

    def send(self, attempt: Attempt) -> AttemptResult:
        """Send the request; return the response, or the error as a value."""
        from qwed_sdk.network_backend import request_deadline

        reading = _BodyReader(attempt)
        with request_deadline(attempt.seconds) as deadline:
            try:
                with self._pool().stream(**_request_arguments(self.address, attempt)) as response:
                    for chunk in response.iter_raw():
                        reading.add(chunk)
                    return reading.response(response)
            except _transport_errors() as error:
                return _sdk_error_of(error, self.address.base_url, deadline)

    def follow(self, attempt: Attempt, silence: float) -> Generator[bytes, None, None]:
        """Yield the chunks of an event stream; raise QWEDError if the response is not one, or breaks off."""
        from qwed_sdk.network_backend import request_deadline

        with request_deadline(attempt.seconds) as deadline, self._convert_errors(deadline):
            client = self._pool()
            request = client.build_request(**_request_arguments(self.address, attempt) | {"timeout": silence})
            response = client.send(request, stream=True)
        with closing(response):
            chunks = response.iter_raw()
            reading = _BodyReader(attempt)
            while True:
                # A new deadline for each chunk: the time the caller spends between two chunks does not count.
                with request_deadline(silence) as deadline, self._convert_errors(deadline):
                    chunk = next(chunks, None)
                if not _is_stream(response):
                    _raise_for_body(response, reading) if chunk is None else reading.add(chunk)
                elif chunk is None:
                    return
                else:
                    yield chunk

    @contextmanager
    def _convert_errors(self, deadline: "RequestDeadline") -> Iterator[None]:
        try:
            yield
        except _transport_errors() as error:
            raise _sdk_error_of(error, self.address.base_url, deadline) from None

    def _pool(self) -> "httpx.Client":
        client = self._client
        # The child of a fork must not read answers from its parent's connections.
        if client is None or self._pid != os.getpid():
            import httpx

            from qwed_sdk.network_backend import use_deadline_backend

            client = use_deadline_backend(httpx.Client(**_client_options(self.address)))
            self._client, self._pid = client, os.getpid()
            # For callers that use no `with`: the connections are closed with the client.
            weakref.finalize(self, _close, client, self._pid)
        return client

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            _close(client, self._pid)


def _close(client: "httpx.Client", pid: int) -> None:
    # The parent process still uses its own connections.
    if pid == os.getpid():
        client.close()


class AsyncTransport:
    """Connection pools, one for each event loop."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._clients: weakref.WeakKeyDictionary[Any, httpx.AsyncClient] = weakref.WeakKeyDictionary()
        self._pid = os.getpid()

    async def send(self, attempt: Attempt) -> AttemptResult:
        """Send the request; return the response, or the error as a value."""
        import anyio

        from qwed_sdk.network_backend import request_deadline

        reading = _BodyReader(attempt)
        with request_deadline(attempt.seconds) as deadline:
            try:
                with anyio.fail_after(attempt.seconds):
                    async with self._pool().stream(**_request_arguments(self.address, attempt)) as response:
                        async for chunk in response.aiter_raw():
                            reading.add(chunk)
                        return reading.response(response)
            except _transport_errors() as error:
                return _sdk_error_of(error, self.address.base_url, deadline)

    async def follow(self, attempt: Attempt, silence: float) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of an event stream; raise QWEDError if the response is not one, or breaks off."""
        client = self._pool()
        request = client.build_request(**_request_arguments(self.address, attempt) | {"timeout": silence})
        response = await self._within(attempt.seconds, client.send(request, stream=True))
        try:
            chunks = aiter(response.aiter_raw())
            reading = _BodyReader(attempt)
            while True:
                chunk: bytes | None = await self._within(silence, anext(chunks, None))
                if not _is_stream(response):
                    _raise_for_body(response, reading) if chunk is None else reading.add(chunk)
                elif chunk is None:
                    return
                else:
                    yield chunk
        finally:
            await response.aclose()

    async def _within(self, seconds: float, step: Awaitable[T]) -> T:
        import anyio

        from qwed_sdk.network_backend import request_deadline

        with request_deadline(seconds) as deadline:
            try:
                with anyio.fail_after(seconds):
                    return await step
            except _transport_errors() as error:
                raise _sdk_error_of(error, self.address.base_url, deadline) from None

    def _pool(self) -> "httpx.AsyncClient":
        if self._pid != os.getpid():
            self._clients, self._pid = weakref.WeakKeyDictionary(), os.getpid()
        client = self._clients.get(running_loop())
        if client is None:
            import httpx

            from qwed_sdk.network_backend import use_async_backend

            client = self._clients[running_loop()] = use_async_backend(
                httpx.AsyncClient(**_client_options(self.address))
            )
        return client

    async def close(self) -> None:
        """Close the connections of this event loop; the next request opens new ones."""
        client = self._clients.pop(running_loop(), None)
        if client is not None and self._pid == os.getpid():
            await client.aclose()
