"""Where a Redis is, how it is reached, and what is wrong with it, in words that repeat nothing it said."""

import re
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterCrossSlotError,
    ClusterError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as NoConnection

ANSWER_SECONDS = 0.4
"""How long a Redis may take: a request asks it twice at most, and is refused within a second."""


MOST_BYTES = 1 << 20
"""Of one answer, or one message; ours are smaller."""


class _Parser(_AsyncRESP2Parser):
    """redis-py's own, which would wait for as much as it was told will come."""

    async def _read(self, length: int) -> bytes:
        if length > MOST_BYTES:
            raise ValueError("too large for an answer")
        return await super()._read(length)


def prefix_of(installation: str) -> str:
    """What the names of everything we keep in a Redis begin with: others may have theirs in it too."""
    # In braces, so that whatever spreads keys over machines keeps those of one installation together.
    return f"qwed:{{{installation}}}:"


def connection_to(url: str) -> AbstractConnection:
    """A connection that is not made yet; `Settings` has looked at the address."""
    parts = urlsplit(url)
    given: dict[str, Any] = dict(parse_qsl(parts.query))
    for name, value in (("username", parts.username), ("password", parts.password)):
        if value:
            given[name] = unquote(value)
    common: dict[str, Any] = {
        # Nothing is tried again behind our back: whoever waits is told, and we come back ourselves.
        "retry": Retry(NoBackoff(), 0),
        # Every answer is waited for under a deadline of ours, of which one for each read would know nothing.
        "socket_timeout": None,
        "socket_connect_timeout": ANSWER_SECONDS,
        "protocol": 2,
        "parser_class": _Parser,
        "driver_info": None,
    }
    if parts.scheme == "unix":
        return UnixDomainSocketConnection(path=unquote(parts.path), **given, **common)
    place: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": parts.port or 6379,
        "db": int(parts.path.strip("/") or 0),
    }
    # Certificates and the name in them are verified: that is the default, and no address can say otherwise.
    return (SSLConnection if parts.scheme == "rediss" else Connection)(**place, **given, **common)


async def connect(connection: AbstractConnection) -> None:
    """Connect, and say who we are."""
    await connection.connect()  # type: ignore[no-untyped-call]  # redis-py does not say


_TROUBLES: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLError, "its certificate cannot be verified"),
    (AuthenticationError, "it refuses the name or the password"),
    (BusyLoadingError, "it is still loading its data"),
    (ReadOnlyError, "it is a replica, which takes no writes"),
    (OutOfMemoryError, "it is out of memory"),
    (NoPermissionError, "its user lacks a permission"),
    (AskError, "it is one of a cluster, which is not supported"),
    (ClusterError, "it is one of a cluster, which is not supported"),
    (ClusterCrossSlotError, "it is one of a cluster, which is not supported"),
    (TimeoutError, f"no answer within {ANSWER_SECONDS:g} seconds"),
    (NoConnection, "no connection"),
    (OSError, "no connection"),
)
_CODES = {
    "READONLY": "it is a replica, which takes no writes",
    "OOM": "it is out of memory",
    "NOPERM": "its user lacks a permission",
    "MISCONF": "it cannot save its data, and takes no writes",
    "NOREPLICAS": "it lacks replicas, and takes no writes",
    "BUSY": "it is busy with a script of somebody else",
    "UNKILLABLE": "it is busy with a script of somebody else",
}
"""What stands within the words of an error that a script ran into."""
_CODE = re.compile(rf"\b({'|'.join(_CODES)})\b")


def trouble_with(error: BaseException) -> str:
    """What is wrong: words of ours alone, because a Redis may repeat a password it was shown."""
    for each in _causes(error):
        known = next((says for kind, says in _TROUBLES if isinstance(each, kind)), None)
        if known is not None:
            return known
        code = _CODE.search(str(each)[:1_000]) if isinstance(each, ResponseError) else None
        if code is not None:
            return _CODES[code[1]]
    return "it answers with an error" if isinstance(error, ResponseError) else "it answers what no Redis would"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error within groups of them, what it was raised for first where that says more."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RedisError) and isinstance(error.__context__, ssl.SSLError | TimeoutError):
        yield error.__context__
    yield error
