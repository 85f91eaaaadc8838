"""Requests over HTTP, one at a time, within their seconds: the same twice, blocking and awaiting."""

import os
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from qwed.words.home import DEFAULT_URL
from qwed_sdk.conversation import running_loop
from qwed_sdk.errors import QWEDArgumentError, QWEDConnectionError, QWEDError, QWEDProtocolError, QWEDTimeoutError
from qwed_sdk.wire import Attempt, Outcome, Request, Response, problem_of

if TYPE_CHECKING:
    import httpx

    from qwed_sdk.lines import Errand

T = TypeVar("T")

_CONNECTIONS = 100


class Address:
    """Where the server is, and with what credential it is asked."""

    def __init__(self, base_url: str | None, api_key: str | None, agent_token: str | None) -> None:
        self.base_url = _base(_said(base_url) or _said(os.environ.get("QWED_BASE_URL")) or DEFAULT_URL)
        self._key = credential(_said(api_key) or os.environ.get("QWED_API_KEY"), "API key")
        self._token = credential(agent_token, "agent token")

    def __deepcopy__(self, memo: dict[int, Any]) -> "Address":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a client has a secret and open connections: make one in each process instead of pickling it")

    def headers(self, request: Request) -> dict[str, str]:
        """What is told with a question."""
        headers = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "identity", "User-Agent": "qwed-sdk"}
        if not request.public:
            headers |= self._credential(request)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        return {**headers, **request.headers}

    def _credential(self, request: Request) -> dict[str, str]:
        """One, and the weaker where there are two: a token opens one agent, a key the organisation."""
        token = credential(request.agent_token, "agent token") or self._token
        if token is not None:
            return {"Authorization": f"Bearer {token}"}
        return {} if self._key is None else {"X-API-Key": self._key}


def _said(text: str | None) -> str:
    if text is not None and not isinstance(text, str):
        raise QWEDArgumentError(f"an address and a key are text, not {type(text).__name__}")
    return (text or "").strip()


def _base(url: str) -> str:
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and parts.hostname and not set("@?#\\") & set(url)
        _ = parts.port
    except ValueError:
        plain = None
    if not plain or not url.isprintable():
        raise QWEDArgumentError(
            f"`base_url` must look like {DEFAULT_URL} or https://qwed.example.com, "
            "without a user, a query or a fragment"
        )
    # As the parser writes it, so that `HTTPS:` is no other scheme than `https:` to whoever reads it next.
    return parts.geturl().rstrip("/")


def is_here(url: str) -> bool:
    """Whether it is an address of this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def credential(text: str | None, what: str) -> str | None:
    """The credential without white space around it; None where it is blank."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if not isinstance(text, str) or not text.isascii() or not text.strip().isprintable() or " " in text.strip():
        # Said without the text: it may be all but one character of a secret.
        raise QWEDArgumentError(f"the {what} is not one: it has characters that none has")
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

    def response(self, response: "httpx.Response") -> Response:
        """All of it; its connection is told where it ended."""
        response.extensions["network_stream"].count.ended(len(self._content))
        if response.headers.get("content-encoding", "identity") != "identity":
            raise QWEDProtocolError("the answer is compressed, which nobody asked for")
        headers = response.headers
        media = headers.get("content-type", "").partition(";")[0].strip()
        return Response(response.status_code, headers.get("retry-after"), bytes(self._content), media)


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
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    # Nothing is kept of one answer that would be told with the next question.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    # A proxy named in the environment cannot reach what is on this machine.
    beyond = not is_here(address.base_url)
    # In plain HTTP on this machine no certificate is met, and reading those we trust takes longer than the question.
    bare = not beyond and address.base_url.startswith("http:")
    return {
        "limits": limits,
        "follow_redirects": False,
        "verify": not bare,
        "cookies": no_cookies,
        "trust_env": beyond,
    }


def _failure(error: Exception, base_url: str, errand: "Errand") -> QWEDError:
    import httpx

    if isinstance(error, QWEDError):
        return error
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return QWEDTimeoutError(f"{base_url} did not answer in time", sent=errand.sent)
    told = str(error) or type(error).__name__
    return QWEDConnectionError(f"{base_url} could not be asked: {told}", sent=errand.sent)


def _surprises() -> tuple[type[Exception], ...]:
    """What asking can end with: beside the errors of HTTP a proxy that is none, a client that another thread closed."""
    import httpx

    return (QWEDError, httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError, ValueError, ImportError)


def _require_stream(response: "httpx.Response", reading: _Reading) -> None:
    """Raise what the server answered in place of a stream."""
    found = reading.response(response)
    if found.status != 200:
        raise problem_of(found)
    raise QWEDProtocolError("the answer is no stream of events: is this a qwed server?", status=found.status)


def _is_stream(response: "httpx.Response") -> bool:
    media = response.headers.get("content-type", "").partition(";")[0].strip()
    return response.status_code == 200 and media == "text/event-stream"


class SyncTransport:
    """A pool of connections for threads; after a fork the child begins its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client: httpx.Client | None = None
        self._pid = 0

    def send(self, attempt: Attempt) -> Outcome:
        """What came of it; a connection that broke is a value."""
        from qwed_sdk.lines import errand

        reading = _Reading(attempt)
        with errand(attempt.seconds) as begun:
            try:
                with self._pool().stream(**_arguments(self.address, attempt)) as response:
                    for chunk in response.iter_raw():
                        reading.add(chunk)
                    return reading.response(response)
            except _surprises() as error:
                return _failure(error, self.address.base_url, begun)

    def follow(self, attempt: Attempt, silence: float) -> Generator[bytes, None, None]:
        """The bytes of an answer without end, as they come; QWEDError where it is none, or breaks off."""
        from qwed_sdk.lines import errand

        with errand(attempt.seconds) as begun, self._told(begun):
            client = self._pool()
            asked = client.build_request(**_arguments(self.address, attempt) | {"timeout": silence})
            response = client.send(asked, stream=True)
        with closing(response):
            chunks = response.iter_raw()
            reading = _Reading(attempt)
            while True:
                # For each piece anew: what waits in between for whoever listens has the time it takes.
                with errand(silence) as begun, self._told(begun):
                    chunk = next(chunks, None)
                if not _is_stream(response):
                    _require_stream(response, reading) if chunk is None else reading.add(chunk)
                elif chunk is None:
                    return
                else:
                    yield chunk

    @contextmanager
    def _told(self, begun: "Errand") -> Iterator[None]:
        try:
            yield
        except _surprises() as error:
            raise _failure(error, self.address.base_url, begun) from None

    def _pool(self) -> "httpx.Client":
        client = self._client
        # The child of a fork must not read answers from its parent's connections.
        if client is None or self._pid != os.getpid():
            import httpx

            from qwed_sdk.lines import strung

            client = strung(httpx.Client(**_pooled(self.address)))
            self._client, self._pid = client, os.getpid()
            # For whoever uses no `with`: the connections end with the client.
            weakref.finalize(self, _close, client, self._pid)
        return client

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
    """A pool of connections for each event loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._clients: weakref.WeakKeyDictionary[Any, httpx.AsyncClient] = weakref.WeakKeyDictionary()
        self._pid = os.getpid()

    async def send(self, attempt: Attempt) -> Outcome:
        """What came of it; a connection that broke is a value."""
        import anyio

        from qwed_sdk.lines import errand

        reading = _Reading(attempt)
        with errand(attempt.seconds) as begun:
            try:
                with anyio.fail_after(attempt.seconds):
                    async with self._pool().stream(**_arguments(self.address, attempt)) as response:
                        async for chunk in response.aiter_raw():
                            reading.add(chunk)
                        return reading.response(response)
            except _surprises() as error:
                return _failure(error, self.address.base_url, begun)

    async def follow(self, attempt: Attempt, silence: float) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer without end, as they come; QWEDError where it is none, or breaks off."""
        client = self._pool()
        asked = client.build_request(**_arguments(self.address, attempt) | {"timeout": silence})
        response = await self._within(attempt.seconds, client.send(asked, stream=True))
        try:
            chunks = aiter(response.aiter_raw())
            reading = _Reading(attempt)
            while True:
                chunk: bytes | None = await self._within(silence, anext(chunks, None))
                if not _is_stream(response):
                    _require_stream(response, reading) if chunk is None else reading.add(chunk)
                elif chunk is None:
                    return
                else:
                    yield chunk
        finally:
            await response.aclose()

    async def _within(self, seconds: float, step: Awaitable[T]) -> T:
        import anyio

        from qwed_sdk.lines import errand

        with errand(seconds) as begun:
            try:
                with anyio.fail_after(seconds):
                    return await step
            except _surprises() as error:
                raise _failure(error, self.address.base_url, begun) from None

    def _pool(self) -> "httpx.AsyncClient":
        if self._pid != os.getpid():
            self._clients, self._pid = weakref.WeakKeyDictionary(), os.getpid()
        client = self._clients.get(running_loop())
        if client is None:
            import httpx

            from qwed_sdk.lines import async_strung

            client = self._clients[running_loop()] = async_strung(httpx.AsyncClient(**_pooled(self.address)))
        return client

    async def close(self) -> None:
        """Close what is open in this event loop; the next request opens anew."""
        client = self._clients.pop(running_loop(), None)
        if client is not None and self._pid == os.getpid():
            await client.aclose()
