"""Opens connections to PostgreSQL; errors are one sentence and never contain the password."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from qwed.store.postgres.dialect import register_dumpers
from qwed.store.protocol import DatabaseUnreachableError as DatabaseUnreachableError

Connection = psycopg.Connection[tuple[Any, ...]]
CONNECT_SECONDS = 5
"""For commands; the URL may set another value."""


SESSION_SETTINGS = (
    "set_config('extra_float_digits', '1', false), "
    "set_config('default_transaction_isolation', 'read committed', false), "
    "set_config('standard_conforming_strings', 'on', false), set_config('quote_all_identifiers', 'off', false)"
)
"""Exact floats, READ COMMITTED, standard strings and unquoted names, whatever the defaults of the database or the role
are."""


def open_connection(url: str, *, autocommit: bool = True, among: str = "any") -> Connection:
    """Open a connection that writes values as SQLite does; raise DatabaseUnreachableError if that fails.

    `among` selects among several servers: `any`, or one that is `read-write`.
    """
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "qwed",
        "target_session_attrs": among,
        **parse_url(url),
    }
    try:
        connection = psycopg.connect(**options, autocommit=True)
        connection.execute(f"SELECT {SESSION_SETTINGS}".encode())
    except psycopg.Error as error:
        raise DatabaseUnreachableError(f"PostgreSQL cannot be reached: {one_line(error)}") from None
    register_dumpers(connection)
    _require_unicode(connection)
    connection.autocommit = autocommit
    return connection


def _require_unicode(connection: Connection) -> None:
    """Raise DatabaseUnreachableError unless the database stores text as UTF-8."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise DatabaseUnreachableError(
            f"the database in PostgreSQL keeps text as {encoding}: make one with ENCODING 'UTF8'"
        )


def parse_url(url: str) -> dict[str, Any]:
    """Parse a database URL; raise DatabaseUnreachableError if it is invalid."""
    try:
        options: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise _invalid_url() from None
    if _leaks_password(options):
        raise _invalid_url()
    return {**options, "client_encoding": "UTF8"}


def _leaks_password(options: dict[str, Any]) -> bool:
    """Return True if an unencoded `@` or `/` made part of a password a host, a port or a database name."""
    values = [str(options.get(name) or "") for name in ("host", "port", "dbname")]
    # A socket directory may have any name, and the name of an abstract socket begins with an `@`.
    hosts = [host.removeprefix("@") for host in values[0].split(",") if not host.startswith("/")]
    return any("@" in text for text in (*hosts, *values[1:]))


def _invalid_url() -> DatabaseUnreachableError:
    # The invalid part could belong to the password.
    return DatabaseUnreachableError(
        "the database URL is invalid: write it as postgresql://user@host/qwed, and in a password %40 for an @ "
        "and %2F for a slash"
    )


def one_line(error: psycopg.Error) -> str:
    """Return PostgreSQL's error message on one line."""
    return " ".join(str(error).split()) or type(error).__name__
