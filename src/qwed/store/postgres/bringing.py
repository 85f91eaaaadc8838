"""A database in PostgreSQL brought to the newest version without a server."""

from contextlib import closing

import psycopg

from qwed.store.migrate import migrations, require_known
from qwed.store.postgres.locks import try_to_lead
from qwed.store.postgres.months import make_months
from qwed.store.postgres.opening import Unreachable, connected, one_line
from qwed.store.postgres.schema import migrate, version_of


class InUse(RuntimeError):
    """A server runs on the database, and knows its tables as they were."""


def bring_up(url: str, now: float) -> tuple[int, int]:
    """The version it was at, and the one it is at now; one that is at the newest is only looked at.

    Unreachable where we are not let in or may not change tables, InUse, NewerDatabase.
    """
    known = migrations("postgres")
    try:
        with closing(connected(url)) as connection:
            version = version_of(connection)
            require_known(version, known)
            if version == known[-1][0]:
                return version, version
            if not try_to_lead(connection):
                raise InUse("a server runs on that database in PostgreSQL: stop it, and migrate then")
            reached = migrate(connection)
            make_months(connection, now)
            return version, reached
    except psycopg.Error as error:
        raise Unreachable(f"PostgreSQL says: {one_line(error)}") from error
