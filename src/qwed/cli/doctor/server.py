"""The server that clients would ask: whether it answers, whether it can decide, what our credentials open."""

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
from qwed.cli.doctor.finding import Finding, broken, fine, warning
from qwed.words.roles import METRICS

if TYPE_CHECKING:
    import httpx

_SECONDS = 5.0
_MOST_BYTES = 8 << 20
_MOST_KEY = 4_096
_SKEW, _MUCH_SKEW = 5.0, 300.0
"""Seconds: a warning above the first, broken above the second."""
_CONTRADICTED = "contradicted"
_SILENT = " does not answer"
"""How `/ready` ends what it says of a store or a limiter elsewhere that is away."""


class Unusable(Exception):
    """What answered is not what was asked for; the message says what it is."""


class Reply(NamedTuple):
    """One answer."""

    status: int
    members: Mapping[str, Any]
    date: str | None
    seconds: float


class Asking:
    """Asks one server, each time within seconds and bytes."""

    def __init__(self, client: "httpx.Client", base_url: str) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """The answer as a JSON object; Unusable where it is none."""
        import httpx

        named = {name.replace("_", "-"): value for name, value in headers.items()}
        began = time.perf_counter()
        try:
            with self._client.stream(method, self._base_url + path, json=body, headers=named) as response:
                content = self._content(response, began)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unusable(str(error) or type(error).__name__) from None
        return Reply(response.status_code, _object(content), response.headers.get("date"), time.perf_counter() - began)

    def _content(self, response: "httpx.Response", began: float) -> bytes:
        content = bytearray()
        for chunk in response.iter_raw():
            content += chunk
            if len(content) > _MOST_BYTES or time.perf_counter() - began > 2 * _SECONDS:
                raise Unusable("the answer does not end")
        return bytes(content)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(content)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise Unusable("the answer is no JSON object: this is no qwed server")
    return members


def look_at_server(url: str, *, named: bool, key: str) -> Iterator[Finding]:
    """Everything about it; nothing is changed there."""
    import httpx

    try:
        where = _without_credentials(url)
    except ValueError:
        yield broken("server", "the address is none", "set QWED_BASE_URL to one such as https://qwed.example.com")
        return
    try:
        with httpx.Client(timeout=_SECONDS, headers={"Accept-Encoding": "identity"}, verify=_trusted(url)) as client:
            yield from _looked(Asking(client, url), where, key)
    except Unusable as error:
        yield _unreachable(where, str(error), named)
    except ValueError:
        # A credential with a character that no header may have.
        yield broken(
            "server", f"{where} could not be asked with what is set", "look at QWED_API_KEY and QWED_AGENT_TOKEN"
        )


def _trusted(url: str) -> ssl.SSLContext:
    """The authorities whose certificates count; none where none is needed, because to read them takes a while."""
    import httpx

    return httpx.create_ssl_context() if url.lower().startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _unreachable(where: str, why: str, named: bool) -> Finding:
    if named:
        return broken("server", f"{where}: {why}", "start it, or set QWED_BASE_URL to where it is")
    return warning("server", f"none answers at {where}", "start one with `qwed serve`, or set QWED_BASE_URL")


def _looked(ask: Asking, where: str, key: str) -> Iterator[Finding]:
    health = ask("GET", "/health")
    if health.status != 200 or health.members.get("status") != "ok":
        raise Unusable(f"it answers /health with status {health.status}: this is no qwed server")
    yield _itself(ask, where)
    yield _readiness(ask("GET", "/ready"))
    yield _clock(health)
    yield from _key(ask, key)
    yield from _agent(ask)


def _itself(ask: Asking, where: str) -> Finding:
    info = ask("GET", "/openapi.json").members.get("info")
    version = str(info.get("version")) if isinstance(info, dict) else "unknown"
    took = min(ask("GET", "/health").seconds for _ in range(3)) * 1000
    said = f"{where}: qwed {version}, answers in {took:.1f} ms"
    if version != qwed.__version__:
        return warning("server", said, f"this command is of version {qwed.__version__}: install the same on both sides")
    return fine("server", said)


def _readiness(ready: Reply) -> Finding:
    parts = ready.members.get("parts")
    listed = ", ".join(f"{name} {state}" for name, state in parts.items()) if isinstance(parts, dict) else "unknown"
    if ready.members.get("ready") is True:
        return fine("readiness", listed)
    if isinstance(parts, dict) and parts.get("witness") == _CONTRADICTED:
        return broken("readiness", listed, "the log contradicts a published head: run `qwed audit verify`")
    silent = " and ".join(_silent(parts))
    if silent:
        return broken(
            "readiness", listed, f"no answer from {silent}: see that the server reaches it, until then all is refused"
        )
    if isinstance(parts, dict) and parts.get("engines") == "starting":
        return warning("readiness", listed, "wait: the engines are starting")
    return warning("readiness", listed, "look into the log of the server, which says what is missing")


def _silent(parts: Any) -> list[str]:
    """What the server needs and gets no answer from, by name."""
    states = parts.values() if isinstance(parts, dict) else ()
    return [state.removesuffix(_SILENT) for state in states if isinstance(state, str) and state.endswith(_SILENT)]


def _clock(health: Reply) -> Finding:
    try:
        there = parsedate_to_datetime(health.date or "").timestamp()
    except ValueError:
        return warning(
            "clock", "the server does not say what time it is", "look whether a proxy removes the Date header"
        )
    # The header has whole seconds, and the answer was on its way.
    skew = time.time() - there - 0.5
    off = max(0.0, abs(skew) - 0.5 - health.seconds)
    said = f"{off:.0f} s {'ahead of' if skew > 0 else 'behind'} the server" if off >= 1 else "the same as the server's"
    if off <= _SKEW:
        return fine("clock", said)
    kind = broken if off > _MUCH_SKEW else warning
    return kind("clock", said, "set both by NTP: attestations and approvals end at their time")


def _key(ask: Asking, key: str) -> Iterator[Finding]:
    if not key:
        yield warning("key", "none is set", "set QWED_API_KEY, or name the server's data directory with --data-dir")
        return
    keys = ask("GET", "/keys", X_API_Key=key)
    own = ask("GET", "/keys/self", X_API_Key=key) if keys.status == 403 else keys
    if _undecided(own):
        yield _not_judged("key", own)
    elif keys.status == 200:
        yield fine("key", "accepted: the role is owner")
    elif keys.status == 403:
        # A key that is for metrics alone may not even ask that.
        yield fine("key", f"accepted: the role is {own.members.get('role', METRICS)}")
    else:
        yield broken(
            "key", f"not accepted ({_code(keys)})", "it may be revoked, or of another server: ask an owner for one"
        )


def _undecided(reply: Reply) -> bool:
    """Whether it says nothing of who asked: the server could not look, or had no time to."""
    return reply.status >= 500 or reply.status == 429


def _not_judged(name: str, reply: Reply) -> Finding:
    said = f"the server cannot say whether it is accepted ({_code(reply)})"
    return warning(name, said, "that is no verdict on it: look again when the server is ready")


def _agent(ask: Asking) -> Iterator[Finding]:
    agent_id, token = os.environ.get("QWED_AGENT_ID", "").strip(), os.environ.get("QWED_AGENT_TOKEN", "").strip()
    if not agent_id or not token:
        return
    found = ask("GET", f"/agents/{quote(agent_id, safe='')}", Authorization=f"Bearer {token}")
    if _undecided(found):
        yield _not_judged("agent", found)
        return
    if found.status != 200:
        yield broken("agent", f"the token is not accepted ({_code(found)})", "give it a new one with `rotate-token`")
        return
    said = f"{found.members.get('name')}: {found.members.get('status')}, trust level {found.members.get('trust_level')}"
    if found.members.get("status") != "active":
        yield warning("agent", said, "everything it asks is refused until an owner or approver reactivates it")
    else:
        yield fine("agent", said)


def _code(reply: Reply) -> str:
    error = reply.members.get("error")
    return str(error.get("code")) if isinstance(error, dict) else f"status {reply.status}"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def key_in(directory: Path) -> str:
    """The owner's key, where we may read it; otherwise nothing."""
    with suppress(OSError, ValueError), (directory / "owner.key").open("rb") as stream:
        return stream.read(_MOST_KEY).decode("ascii").strip()
    return ""
