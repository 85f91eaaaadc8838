"""Checks of the server: reachability, version, readiness, clock, API key and agent token."""

import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

import qwed
from qwed.cli.doctor.check_result import DoctorCheck, broken, fine, warning
from qwed.model.roles import METRICS

if TYPE_CHECKING:
    import httpx

_TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 8 << 20
_MAX_KEY = 4_096
_SKEW, _MUCH_SKEW = 5.0, 300.0
"""Seconds of clock skew: a warning above the first value, broken above the second."""
_CONTRADICTED = "contradicted"
_SILENT_SUFFIX = " does not answer"
"""Suffix of a part in `/ready` whose remote store or limiter does not answer."""


class UnexpectedReplyError(Exception):
    """Reply that is not from a qwed server; the message says why."""


class ServerReply(NamedTuple):
    """Reply of the server."""

    status: int
    members: Mapping[str, Any]
    date: str | None
    seconds: float


class ServerProbe:
    """Client of one server with limits on time and size."""

    def __init__(self, client: "httpx.Client", base_url: str) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> ServerReply:
        """Send a request and return the reply; raise UnexpectedReplyError if it is not a JSON object."""
        import httpx

        named = {name.replace("_", "-"): value for name, value in headers.items()}
        began = time.perf_counter()
        try:
            with self._client.stream(method, self._base_url + path, json=body, headers=named) as response:
                content = self._content(response, began)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnexpectedReplyError(str(error) or type(error).__name__) from None
        return ServerReply(
            response.status_code, _parse_object(content), response.headers.get("date"), time.perf_counter() - began
        )

    def _content(self, response: "httpx.Response", began: float) -> bytes:
        content = bytearray()
        for chunk in response.iter_raw():
            content += chunk
            if len(content) > _MAX_BYTES or time.perf_counter() - began > 2 * _TIMEOUT_SECONDS:
                raise UnexpectedReplyError("the reply is too large or too slow")
        return bytes(content)


def _parse_object(content: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(content)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise UnexpectedReplyError("the reply is not a JSON object: this is not a qwed server")
    return members


def check_server(url: str, *, named: bool, key: str) -> Iterator[DoctorCheck]:
    """Check the server; nothing is changed there."""
    import httpx

    try:
        address = _without_credentials(url)
    except ValueError:
        yield broken(
            "server", "the address is not a URL", "set QWED_BASE_URL to a URL such as https://qwed.example.com"
        )
        return
    try:
        with httpx.Client(
            timeout=_TIMEOUT_SECONDS, headers={"Accept-Encoding": "identity"}, verify=_ssl_context(url)
        ) as client:
            yield from _check_all(ServerProbe(client, url), address, key)
    except UnexpectedReplyError as error:
        yield _unreachable(address, str(error), named)
    except ValueError:
        # A credential has a character that is not allowed in a header.
        yield broken(
            "server", f"the credentials cannot be sent to {address}", "check QWED_API_KEY and QWED_AGENT_TOKEN"
        )


def _ssl_context(url: str) -> ssl.SSLContext:
    """Return the TLS context; without certificate authorities for plain HTTP, because loading them is slow."""
    import httpx

    return httpx.create_ssl_context() if url.lower().startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _unreachable(address: str, reason: str, named: bool) -> DoctorCheck:
    if named:
        return broken("server", f"{address}: {reason}", "start it, or set QWED_BASE_URL to its address")
    return warning("server", f"no server answers at {address}", "start one with `qwed serve`, or set QWED_BASE_URL")


def _check_all(probe: ServerProbe, address: str, key: str) -> Iterator[DoctorCheck]:
    health = probe("GET", "/health")
    if health.status != 200 or health.members.get("status") != "ok":
        raise UnexpectedReplyError(f"/health returns status {health.status}: this is not a qwed server")
    yield _check_version(probe, address)
    yield _check_readiness(probe("GET", "/ready"))
    yield _check_clock(health)
    yield from _check_key(probe, key)
    yield from _check_agent(probe)


def _check_version(probe: ServerProbe, address: str) -> DoctorCheck:
    info = probe("GET", "/openapi.json").members.get("info")
    version = str(info.get("version")) if isinstance(info, dict) else "unknown"
    latency = min(probe("GET", "/health").seconds for _ in range(3)) * 1000
    message = f"{address}: qwed {version}, answers in {latency:.1f} ms"
    if version != qwed.__version__:
        return warning(
            "server", message, f"this command is version {qwed.__version__}: install the same version on both sides"
        )
    return fine("server", message)


def _check_readiness(ready: ServerReply) -> DoctorCheck:
    parts = ready.members.get("parts")
    listed = ", ".join(f"{name} {state}" for name, state in parts.items()) if isinstance(parts, dict) else "unknown"
    if ready.members.get("ready") is True:
        return fine("readiness", listed)
    if isinstance(parts, dict) and parts.get("witness") == _CONTRADICTED:
        return broken("readiness", listed, "the log contradicts a published head: run `qwed audit verify`")
    names = " and ".join(_silent_parts(parts))
    if names:
        return broken(
            "readiness",
            listed,
            f"no answer from {names}: check the connection from the server; it denies all requests until then",
        )
    if isinstance(parts, dict) and parts.get("engines") == "starting":
        return warning("readiness", listed, "wait: the engines are starting")
    return warning("readiness", listed, "check the log of the server for what is missing")


def _silent_parts(parts: Any) -> list[str]:
    """Return the names of parts from which the server gets no answer."""
    states = parts.values() if isinstance(parts, dict) else ()
    return [
        state.removesuffix(_SILENT_SUFFIX)
        for state in states
        if isinstance(state, str) and state.endswith(_SILENT_SUFFIX)
    ]


def _check_clock(health: ServerReply) -> DoctorCheck:
    try:
        server_time = parsedate_to_datetime(health.date or "").timestamp()
    except ValueError:
        return warning("clock", "the server does not send its time", "check whether a proxy removes the Date header")
    # The header has whole seconds, and the reply took time to arrive.
    skew = time.time() - server_time - 0.5
    off = max(0.0, abs(skew) - 0.5 - health.seconds)
    message = (
        f"{off:.0f} s {'ahead of' if skew > 0 else 'behind'} the server" if off >= 1 else "the same as the server's"
    )
    if off <= _SKEW:
        return fine("clock", message)
    kind = broken if off > _MUCH_SKEW else warning
    return kind("clock", message, "synchronize both with NTP: attestations and approvals expire by the clock")


def _check_key(probe: ServerProbe, key: str) -> Iterator[DoctorCheck]:
    if not key:
        yield warning(
            "key", "no API key is set", "set QWED_API_KEY, or give the server's data directory with --data-dir"
        )
        return
    keys = probe("GET", "/keys", X_API_Key=key)
    own = probe("GET", "/keys/self", X_API_Key=key) if keys.status == 403 else keys
    if _is_inconclusive(own):
        yield _inconclusive("key", own)
    elif keys.status == 200:
        yield fine("key", "accepted: the role is owner")
    elif keys.status == 403:
        # A metrics key may not read its own role.
        yield fine("key", f"accepted: the role is {own.members.get('role', METRICS)}")
    else:
        yield broken(
            "key",
            f"not accepted ({_code(keys)})",
            "it may be revoked or belong to another server: ask an owner for a new one",
        )


def _is_inconclusive(reply: ServerReply) -> bool:
    """Return True if the reply says nothing about the credential: the server was unavailable or busy."""
    return reply.status >= 500 or reply.status == 429


def _inconclusive(name: str, reply: ServerReply) -> DoctorCheck:
    message = f"the server could not check it ({_code(reply)})"
    return warning(name, message, "it may still be valid: check again when the server is ready")


def _check_agent(probe: ServerProbe) -> Iterator[DoctorCheck]:
    agent_id, token = os.environ.get("QWED_AGENT_ID", "").strip(), os.environ.get("QWED_AGENT_TOKEN", "").strip()
    if not agent_id or not token:
        return
    reply = probe("GET", f"/agents/{quote(agent_id, safe='')}", Authorization=f"Bearer {token}")
    if _is_inconclusive(reply):
        yield _inconclusive("agent", reply)
        return
    if reply.status != 200:
        yield broken(
            "agent", f"the token is not accepted ({_code(reply)})", "create a new one with `qwed agents rotate-token`"
        )
        return
    message = (
        f"{reply.members.get('name')}: {reply.members.get('status')}, trust level {reply.members.get('trust_level')}"
    )
    if reply.members.get("status") != "active":
        yield warning("agent", message, "all its requests are denied until an owner or approver reactivates it")
    else:
        yield fine("agent", message)


def _code(reply: ServerReply) -> str:
    error = reply.members.get("error")
    return str(error.get("code")) if isinstance(error, dict) else f"status {reply.status}"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def read_owner_key(directory: Path) -> str:
    """Return the owner's key if it can be read, else an empty string."""
    with suppress(OSError, ValueError), (directory / "owner.key").open("rb") as stream:
        return stream.read(_MAX_KEY).decode("ascii").strip()
    return ""
