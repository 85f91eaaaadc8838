"""Redis URLs, connections and errors. Error texts never repeat what the server said."""

import re
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    ConnectionPool,
    SSLConnection,
    UnixDomainSocketConnection,
)
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

REPLY_TIMEOUT_SECONDS = 0.4
"""Reply timeout: a request needs two replies at most, and is refused within a second."""


MAX_REPLY_BYTES = 1 << 20
"""Largest reply or message; ours are smaller."""


class _Parser(_AsyncRESP2Parser):
    """redis-py's parser with a limit: the original waits for as many bytes as the server announces."""

    async def _read(self, length: int) -> bytes:
        if length > MAX_REPLY_BYTES:
            raise ValueError("the reply is too large")
        return await super()._read(length)


def key_prefix(installation: str) -> str:
    """Return the prefix of all our keys in a Redis, which other applications may use too."""
    # A hash tag, so that a cluster keeps the keys of one installation on one node.
    return f"qwed:{{{installation}}}:"


def create_pool(url: str) -> ConnectionPool:
    """Return a pool without open connections; `Settings` has validated the URL."""
    parts = urlsplit(url)
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    for name, value in (("username", parts.username), ("password", parts.password)):
        if value:
            options[name] = unquote(value)
    common: dict[str, Any] = {
        # No retries inside redis-py: callers fail at once, and we reconnect ourselves.
        "retry": Retry(NoBackoff(), 0),
        # Replies are awaited under a deadline per command, not a timeout per read.
        "socket_timeout": None,
        "socket_connect_timeout": REPLY_TIMEOUT_SECONDS,
        "protocol": 2,
        "parser_class": _Parser,
        "driver_info": None,
    }
    if parts.scheme == "unix":
        return ConnectionPool(UnixDomainSocketConnection, path=unquote(parts.path), **options, **common)
    address: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": parts.port or 6379,
        "db": int(parts.path.strip("/") or 0),
    }
    # Certificates and host names are verified: that is the default, and no URL can switch it off.
    return ConnectionPool(SSLConnection if parts.scheme == "rediss" else Connection, **address, **options, **common)


def create_connection(url: str) -> AbstractConnection:
    """Return a connection that is not open yet."""
    connection: AbstractConnection = create_pool(url).make_connection()  # type: ignore[no-untyped-call]  # in redis-py
    return connection


async def connect(connection: AbstractConnection) -> None:
    """Open the connection and authenticate."""
    await connection.connect()  # type: ignore[no-untyped-call]  # untyped in redis-py


_ERROR_TEXTS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLError, "its certificate cannot be verified"),
    (AuthenticationError, "the user name or password is refused"),
    (BusyLoadingError, "it is still loading its data"),
    (ReadOnlyError, "it is a read-only replica"),
    (OutOfMemoryError, "it is out of memory"),
    (NoPermissionError, "its user lacks a permission"),
    (AskError, "it is part of a Redis cluster, which is not supported"),
    (ClusterError, "it is part of a Redis cluster, which is not supported"),
    (ClusterCrossSlotError, "it is part of a Redis cluster, which is not supported"),
    (TimeoutError, f"no answer within {REPLY_TIMEOUT_SECONDS:g} seconds"),
    (NoConnection, "no connection"),
    (OSError, "no connection"),
)
_REPLY_CODES = {
    "READONLY": "it is a read-only replica",
    "OOM": "it is out of memory",
    "NOPERM": "its user lacks a permission",
    "MISCONF": "it cannot save its data and refuses writes",
    "NOREPLICAS": "it lacks replicas and refuses writes",
    "BUSY": "it is busy with a script of another client",
    "UNKILLABLE": "it is busy with a script of another client",
}
"""Codes inside the message of an error raised by a script."""
_CODE = re.compile(rf"\b({'|'.join(_REPLY_CODES)})\b")


def describe_error(error: BaseException) -> str:
    """Return the cause in our own words, because a Redis may repeat the password that it was sent."""
    for cause in _causes(error):
        text = next((message for kind, message in _ERROR_TEXTS if isinstance(cause, kind)), None)
        if text is not None:
            return text
        code = _CODE.search(str(cause)[:1_000]) if isinstance(cause, ResponseError) else None
        if code is not None:
            return _REPLY_CODES[code[1]]
    return "it replied with an error" if isinstance(error, ResponseError) else "it sent an invalid reply"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error inside exception groups, preceded by its context if that says more."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RedisError) and isinstance(error.__context__, ssl.SSLError | TimeoutError):
        yield error.__context__
    yield error
