"""The months that activities lie in: made ahead, so that each has its table before the first row of it comes.

Nothing depends on it: what no month was made for lies in a table of its own, and moves when its month is made.
"""

from datetime import UTC, datetime, timedelta

import psycopg

from qwed.store.postgres.opening import Connection

AHEAD = 2
"""Months beyond this one."""
_LONGEST = timedelta(days=31)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def make_months(connection: Connection, now: float) -> int:
    """Make the months that are due and not there, and say how many were made; in transactions of their own.

    Where somebody reads for long, a month that is needed later is made later.
    """
    made = 0
    for moment in _due(now):
        try:
            made += make_month(connection, moment)
        except psycopg.errors.LockNotAvailable:
            return made
    return made


def make_month(connection: Connection, moment: float) -> bool:
    """Make the month that a moment lies in; False where it was there."""
    row = connection.execute("SELECT make_month(%s)", (moment,)).fetchone()
    return row is not None and row[0] is True


def _due(now: float) -> list[float]:
    if not 0 <= now < _LATEST:
        return []
    month = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    found = [month.timestamp()]
    for _ in range(AHEAD):
        month = (month + _LONGEST).replace(day=1)
        found.append(month.timestamp())
    return found
