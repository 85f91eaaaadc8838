"""A connection to PostgreSQL, or one sentence that says why there is none and repeats no password."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from qwed.store.postgres.dialect import adapt
from qwed.store.protocol import Unreachable as Unreachable

Connection = psycopg.Connection[tuple[Any, ...]]
CONNECT_SECONDS = 5
"""For whoever waits at a command; the address may say otherwise."""


FAITHFULLY = (
    "set_config('extra_float_digits', '1', false), "
    "set_config('default_transaction_isolation', 'read committed', false), "
    "set_config('standard_conforming_strings', 'on', false), set_config('quote_all_identifiers', 'off', false)"
)
"""Moments are read to their last bit, a statement sees what was committed before it, bytes are written as they are and
names told as they were given, whatever the database or the role is used to."""


def connected(url: str, *, autocommit: bool = True, among: str = "any") -> Connection:
    """A connection that writes values as SQLite does; Unreachable where there is none.

    `among` says which of several servers will do: `any`, or one that is `read-write`.
    """
    asked: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "qwed",
        "target_session_attrs": among,
        **read_address(url),
    }
    try:
        connection = psycopg.connect(**asked, autocommit=True)
        connection.execute(f"SELECT {FAITHFULLY}".encode())
    except psycopg.Error as error:
        raise Unreachable(f"PostgreSQL cannot be reached: {one_line(error)}") from None
    adapt(connection)
    _require_unicode(connection)
    connection.autocommit = autocommit
    return connection


def _require_unicode(connection: Connection) -> None:
    """What people write is kept to the letter, or not at all."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise Unreachable(f"the database in PostgreSQL keeps text as {encoding}: make one with ENCODING 'UTF8'")


def read_address(url: str) -> dict[str, Any]:
    """What the address says; Unreachable where it is none."""
    try:
        known: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise _no_address() from None
    if _holds_a_password(known):
        raise _no_address()
    return {**known, "client_encoding": "UTF8"}


def _holds_a_password(known: dict[str, Any]) -> bool:
    """Whether an `@` or a `/` that was not encoded makes the rest of a password a host, a port or a name."""
    said = [str(known.get(name) or "") for name in ("host", "port", "dbname")]
    # A directory of sockets may be called anything, and the name of an abstract one begins with an `@`.
    hosts = [host.removeprefix("@") for host in said[0].split(",") if not host.startswith("/")]
    return any("@" in text for text in (*hosts, *said[1:]))


def _no_address() -> Unreachable:
    # What is wrong with it could be part of its password.
    return Unreachable(
        "the address of the database is none: write it as postgresql://user@host/qwed, and in a password %40 for an @ "
        "and %2F for a slash"
    )


def one_line(error: psycopg.Error) -> str:
    """What went wrong, as PostgreSQL says it, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
